#include "unit/runtime/fake_root.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heart.h"
#include "base/must.h"
#include "base/str.h"

#include "base/banned.h"

static struct fake_plans plans; /* of the root this process belongs to */
static int event_fd = -1, gate_fd = -1;
static const char *starts_dir;

int64_t fake_now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

static void tell(enum fake_event_type type, enum process_id kind, int instance)
{
    struct fake_event e = {type, kind, instance, getpid(), fake_now_ms()};
    MUST(write(event_fd, &e, sizeof e) == (ssize_t)sizeof e);
}

/* How many times this instance has been started, this time included: one byte in a file each. */
static int count_start(const struct process_start *start)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s-%d", starts_dir, start->kind->name, start->instance);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    MUST(fd >= 0 && write(fd, ".", 1) == 1);
    int count = (int)lseek(fd, 0, SEEK_END);
    close(fd);
    return count;
}

static int leave_when_asked(const struct process_start *start, bool gated)
{
    process_wait_stop(-1);
    tell(EVENT_ASKED_TO_STOP, start->kind->id, start->instance);
    char byte;
    while (gated && read(gate_fd, &byte, 1) < 0 && errno == EINTR)
        ;
    return 0;
}

/* Who waits for its vfork is in state D, and ends when it is killed. */
static _Noreturn void be_held(void)
{
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    _exit(98);
}

static int run_plan(const struct process_start *start, enum fake_plan plan)
{
    int count = count_start(start);
    tell(EVENT_STARTED, start->kind->id, start->instance);
    switch (plan) {
    case FAKE_DIE_UNTIL:
    case FAKE_DIE_LATER:
        count -= plan == FAKE_DIE_LATER;
        if (count && count <= plans.deaths)
            _exit(plans.exit_code);
        process_ready(start);
        return leave_when_asked(start, false);
    case FAKE_SERVE:
        process_ready(start);
        return leave_when_asked(start, false);
    case FAKE_NEVER_READY:
        return leave_when_asked(start, false);
    case FAKE_DIE:
        _exit(plans.exit_code);
    case FAKE_WAIT_GATE:
        process_ready(start);
        return leave_when_asked(start, true);
    case FAKE_STILL:
    case FAKE_DISK:
        heart_waits(heart_open("loop"), plan == FAKE_DISK);
        process_ready(start);
        return leave_when_asked(start, false);
    case FAKE_HELD:
        heart_open("loop");
        process_ready(start);
        be_held();
    case FAKE_HANG:
        process_ready(start);
        process_wait_stop(-1);
        tell(EVENT_ASKED_TO_STOP, start->kind->id, start->instance);
        for (;;)
            pause();
    }
    return 99;
}

static int run_fake(const struct process_start *start)
{
    if (start->kind->id == PROCESS_CORE)
        return run_plan(start, plans.core);
    bool first = start->instance == 1 && plans.runner_1 != FAKE_SERVE;
    return run_plan(start, first ? plans.runner_1 : plans.runner);
}

static void told_ready(void *self)
{
    (void)self;
    tell(EVENT_ON_READY, PROCESS_CORE, 0);
}

void fake_open(struct fake_root *f)
{
    *f = (struct fake_root){.events = -1, .gate = {-1, -1}};
    settings_init(&f->settings);
    snprintf(f->base, sizeof f->base, "/tmp/weir-runtime-XXXXXX");
    assert_non_null(mkdtemp(f->base));
    snprintf(f->data, sizeof f->data, "%s/data", f->base);
    fake_set(f, "data", f->data);
    fake_set(f, "runner.processes", "2");
    fake_set(f, "gateway.processes", "0");
    fake_set(f, "runtime.sandbox", "off"); /* the fakes keep their books beside the data directory */
}

void fake_set(struct fake_root *f, const char *key, const char *value)
{
    struct err err = {0};
    if (settings_set(&f->settings, key, value, ORIGIN_FLAG, &err))
        fail_msg("%s", err.detail);
}

static int open_stderr(const struct fake_root *f)
{
    char path[128], byte = 0;
    int ends[2];
    snprintf(path, sizeof path, "%s/stderr", f->base);
    if (!f->stderr_stuck)
        return open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    MUST(pipe2(ends, O_NONBLOCK) == 0);
    while (write(ends[1], &byte, 1) == 1)
        ;
    MUST(fcntl(ends[1], F_SETFL, 0) == 0); /* as a service's is */
    return ends[1];
}

static _Noreturn void be_root(struct fake_root *f)
{
    static const int caught_by_cmocka[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that dies leaves nothing behind */
    for (size_t i = 0; i < LENGTH_OF(caught_by_cmocka); i++)
        signal(caught_by_cmocka[i], SIG_DFL); /* else a crash would jump back into the test */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    int fd = open_stderr(f);
    MUST(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    plans = f->plans;
    starts_dir = f->base;
    struct supervisor_config config = {
        .secrets_fd = -1,
        .settings = &f->settings,
        .run = f->run ? f->run : run_fake,
        .on_ready = told_ready,
    };
    _exit(supervisor_run(&config));
}

void fake_start(struct fake_root *f)
{
    int ends[2];
    if (f->events < 0) {
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        assert_int_equal(pipe2(f->gate, O_CLOEXEC), 0);
        f->events = ends[0];
        event_fd = ends[1];
        gate_fd = f->gate[0];
    }
    fflush(NULL);
    f->pid = fork();
    assert_true(f->pid >= 0);
    if (f->pid == 0)
        be_root(f);
}

void fake_open_gate(struct fake_root *f)
{
    assert_int_equal(write(f->gate[1], "gggggggg", 8), 8);
}

void fake_close(struct fake_root *f)
{
    char command[128];
    if (f->pid > 0) {
        kill(f->pid, SIGTERM);
        kill(f->pid, SIGTERM); /* merged or not, the wait is bounded */
        if (!fake_gone_within(f->pid, 4000))
            kill(f->pid, SIGKILL);
        waitpid(f->pid, NULL, 0);
    }
    close(f->events);
    close(event_fd);
    close(f->gate[0]);
    close(f->gate[1]);
    settings_free(&f->settings);
    snprintf(command, sizeof command, "rm -rf %s", f->base);
    assert_int_equal(system(command), 0);
}

bool fake_next_within(struct fake_root *f, int64_t quiet_ms, struct fake_event *ret_event)
{
    struct pollfd fd = {.fd = f->events, .events = POLLIN};
    if (poll(&fd, 1, (int)quiet_ms) != 1)
        return false;
    assert_int_equal(read(f->events, ret_event, sizeof *ret_event), sizeof *ret_event);
    return true;
}

struct fake_event fake_next(struct fake_root *f)
{
    struct fake_event e = {0};
    if (!fake_next_within(f, FAKE_WAIT_MS, &e)) {
        char *text = fake_stderr(f);
        fail_msg("no event came; root said:\n%s", text);
    }
    return e;
}

struct fake_event fake_await(struct fake_root *f, enum fake_event_type type, enum process_id kind,
                             int instance)
{
    for (;;) {
        struct fake_event e = fake_next(f);
        if (e.type == type && e.kind == kind && (!instance || e.instance == instance))
            return e;
    }
}

bool fake_gone_within(pid_t pid, int64_t wait_ms)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return true;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool gone = poll(&p, 1, (int)wait_ms) == 1;
    close(fd);
    return gone;
}

int fake_await_exit(struct fake_root *f)
{
    int status;
    assert_true(fake_gone_within(f->pid, FAKE_WAIT_MS));
    assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
    f->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static char *read_text(const char *dir, const char *name)
{
    char path[160], chunk[4096];
    struct strbuf text = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    strbuf_add_text(&text, "");
    FILE *file = fopen(path, "re");
    for (size_t n; file && (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
        strbuf_add(&text, chunk, n);
    if (file)
        fclose(file);
    return text.ptr;
}

char *fake_topology(const struct fake_root *f)
{
    return read_text(f->data, "topology.json");
}
char *fake_stderr(const struct fake_root *f)
{
    return read_text(f->base, "stderr");
}

/* The file tells of no change by itself, so this one wait looks again and again. */
void fake_await_topology(struct fake_root *f, const char *part)
{
    for (int64_t end = fake_now_ms() + FAKE_WAIT_MS; fake_now_ms() < end;) {
        char *text = fake_topology(f);
        bool found = strstr(text, part) != NULL;
        free(text);
        if (found)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    fail_msg("topology.json never held %s: %s", part, fake_topology(f));
}
