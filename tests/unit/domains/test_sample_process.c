/* A process that is a row and a folder: a real root starts it, watches it and stops it, and it works. */
#include "case.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/must.h"
#include "machine.h"
#include "runtime/sandbox.h"
#include "unit/runner/fake_core.h"
#include "unit/runtime/fake_root.h"

#include "base/banned.h"

enum { TASKS = 5, SAMPLES = 2 };

/* Shared by the test and the processes under its root. */
static struct {
    _Atomic bool done;
    _Atomic pid_t pids[SAMPLES + 1]; /* by instance */
} * seen;

static struct fake_root root;

static bool all_are_finished(struct fake_core *f, void *self)
{
    (void)self;
    return fake_core_counts(f).finished == TASKS;
}

int core_of_the_test(const struct process_start *start)
{
    struct fake_core *f = fake_core_new(start->socket_path);
    for (int i = 0; i < TASKS; i++)
        fake_core_add(f, "{}", 1000, 1);
    fake_core_run(f);
    process_ready(start);
    bool finished = fake_core_await(f, all_are_finished, NULL, FAKE_WAIT_MS);
    seen->done = finished && fake_core_counts(f).held_max <= 2 && fake_core_task(f, 0).success;
    process_wait_stop(-1);
    fake_core_free(f);
    return 0;
}

static int run(const struct process_start *start)
{
    static process_main_fn *const mains[] = {
#define X(id, name, does, domain, instances, sandbox, store, asked, main) [PROCESS_##id] = main,
        PROCESS_LIST(X)
#undef X
    };
    if (start->kind->id == PROCESS_SAMPLE)
        seen->pids[start->instance] = getpid();
    return mains[start->kind->id](start);
}

static int set_up(void **state)
{
    (void)state;
    fake_open(&root);
    if (sandbox_has_seccomp())
        fake_set(&root, "runtime.sandbox", "enforce");
    root.run = run;
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(seen, MAP_FAILED);
    fake_start(&root);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_close(&root);
    return munmap(seen, sizeof *seen);
}

#define UNDER_ROOT(name) TEST_BETWEEN(name, set_up, tear_down)

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* The pid of an instance, once it is another than this one. */
static pid_t await_pid(int instance, pid_t former)
{
    for (int64_t end = fake_now_ms() + FAKE_WAIT_MS; seen->pids[instance] == former && fake_now_ms() < end;)
        pause_a_little();
    assert_int_not_equal(seen->pids[instance], former);
    return seen->pids[instance];
}

UNDER_ROOT(its_tasks_are_done_within_its_places)
{
    for (int64_t end = fake_now_ms() + FAKE_WAIT_MS; !seen->done && fake_now_ms() < end;)
        pause_a_little();
    if (!seen->done)
        fail_msg("the tasks are not done; root said:\n%s", fake_stderr(&root));
}

UNDER_ROOT(it_stands_in_its_domain_as_often_as_its_setting_says)
{
    fake_await_topology(&root, "\"name\":\"sample 1\",\"domain\":\"operations\"");
    fake_await_topology(&root, "\"name\":\"sample 2\",\"domain\":\"operations\"");
    assert_int_equal(process_instances(PROCESS_SAMPLE, &root.settings), SAMPLES);
}

/* 2: the wall of system calls is up. */
UNDER_ROOT(it_runs_in_the_sandbox_of_its_row)
{
    char path[64], line[256], mode = 0;
    assert_int_equal(sandbox_of(PROCESS_SAMPLE, &root.settings), SANDBOX_RUNNER);
    if (!sandbox_has_seccomp()) {
        assert_false(machine_cannot("the sandbox of a new process", "no seccomp"));
        return;
    }
    snprintf(path, sizeof path, "/proc/%d/status", (int)await_pid(1, 0));
    FILE *status = fopen(path, "re");
    assert_non_null(status);
    while (fgets(line, sizeof line, status))
        sscanf(line, "Seccomp: %c", &mode);
    fclose(status);
    assert_int_equal(mode, '2');
}

UNDER_ROOT(it_is_started_again_alone_and_drains_with_the_others)
{
    pid_t first = await_pid(1, 0), second = await_pid(2, 0);
    kill(first, SIGKILL);
    await_pid(1, first);
    assert_int_equal(seen->pids[2], second);
    kill(root.pid, SIGTERM);
    assert_int_equal(fake_await_exit(&root), 0);
}
