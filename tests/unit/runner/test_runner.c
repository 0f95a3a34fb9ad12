/* The runner as a process of its own, against a fake core. */
#include "case.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/must.h"
#include "lifecycle/work_kinds.h"
#include "runtime/process_signals.h"
#include "unit/runner/fake_core.h"

#include "base/banned.h"

enum { PATIENCE_MS = 30000, MAX_RUNTIME_MS = 125000, LONG_MS = 60000 };

struct world {
    char dir[64], socket_path[96], log_path[96];
    struct fake_core *core;
    struct settings settings;
    struct process_start start;
    pid_t pid; /* 0: not running */
};

static int open_world(void **state)
{
    struct world *w = must_alloc(sizeof *w);
    snprintf(w->dir, sizeof w->dir, "/tmp/weir-runner-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->socket_path, sizeof w->socket_path, "%s/core.sock", w->dir);
    snprintf(w->log_path, sizeof w->log_path, "%s/log", w->dir);
    w->core = fake_core_new(w->socket_path);
    settings_init(&w->settings);
    w->settings.runner_workers = 4;
    w->settings.runner_concurrency = 1;
    w->settings.runner_time_scale = 1.0;
    w->settings.queue_heartbeat_ms = 5000;
    w->settings.runtime_drain_ms = 0;
    w->start = (struct process_start){
        .settings = &w->settings,
        .kind = &process_kinds[PROCESS_RUNNER],
        .instance = 7,
        .name = "runner 7",
        .socket_path = w->socket_path,
        .root_pid = getpid(),
        .ready_fd = -1,
        .scratch_fd = open(w->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600),
    };
    *state = w;
    return 0;
}

/* The runner is forked before the fake's thread exists, so the child is a plain process. As under root it
 * hears of no signal before it can. */
static void run(struct world *w)
{
    sigset_t stop, before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, &before);
    fflush(NULL);
    w->pid = fork();
    assert_true(w->pid >= 0);
    if (w->pid == 0) {
        int log = open(w->log_path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
        dup2(log, STDERR_FILENO);
        process_signals_install(&w->start);
        sigprocmask(SIG_SETMASK, &before, NULL);
        exit(runner_main(&w->start));
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    fake_core_run(w->core);
}

static void ask_to_stop(struct world *w)
{
    assert_int_equal(kill(w->pid, SIGTERM), 0);
}

static int exit_status(struct world *w)
{
    int status;
    assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
    w->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Every test ends with a stop: a leak or a bad access in the child shows in its status. */
static int close_world(void **state)
{
    struct world *w = *state;
    int status = 0;
    if (w->pid) {
        ask_to_stop(w);
        status = exit_status(w);
    }
    if (status) {
        char line[512];
        FILE *log = fopen(w->log_path, "r");
        while (log && fgets(line, sizeof line, log))
            fputs(line, stderr);
        if (log)
            fclose(log);
    }
    fake_core_free(w->core);
    close(w->start.scratch_fd);
    settings_free(&w->settings);
    unlink(w->log_path);
    status = status ? status : rmdir(w->dir); /* a file left behind counts as a failure */
    free(w);
    return status;
}

static int add(struct world *w, enum work_kind kind, int64_t duration_ms, int64_t max_runtime_ms,
               int64_t attempt)
{
    struct work_definition d;
    char text[256];
    work_define(kind, max_runtime_ms, &d);
    snprintf(text, sizeof text,
             "{\"work_kind\":\"%s\",\"duration_ms\":%" PRId64 ",\"should_fail\":%s,"
             "\"payload_size\":%" PRId64 "}",
             work_kind_text(kind), duration_ms < 0 ? d.duration_ms : duration_ms,
             d.should_fail ? "true" : "false", d.payload_size);
    return fake_core_add(w->core, text, max_runtime_ms, attempt);
}

static int add_plain(struct world *w, int64_t duration_ms)
{
    return add(w, WORK_SUCCESS_FAST, duration_ms, MAX_RUNTIME_MS, 1);
}

/* ---- facts to wait for ---- */

static bool finished_reaches(struct fake_core *f, void *count)
{
    return fake_core_counts(f).finished >= *(int *)count;
}
static bool is_running(struct fake_core *f, void *index)
{
    return fake_core_task(f, *(int *)index).state == FAKE_RUNNING;
}
static bool is_finished(struct fake_core *f, void *index)
{
    return fake_core_task(f, *(int *)index).state == FAKE_FINISHED;
}

/* A macro, so that a failure names the line that waited. */
#define await(world, fact, number)                                                                           \
    assert_true(fake_core_await((world)->core, fact, &(int){number}, PATIENCE_MS))

/* ---- the catalog ---- */

#define CORE_TEST(name, parameter) TEST_WITH(name, struct world *parameter, open_world, close_world)

/* JOB-022 to JOB-051 as far as the runner goes: what each kind reports. */
CORE_TEST(test_every_kind_ends_as_the_catalog_says, w)
{
    int64_t durations_ms[WORK_KIND_COUNT];
    w->settings.runner_concurrency = 8;
    w->settings.runner_time_scale = 0.01;
    for (unsigned k = 0; k < WORK_PAYLOAD_INVALID; k++) {
        struct work_definition d;
        work_define((enum work_kind)k, MAX_RUNTIME_MS, &d);
        durations_ms[k] = d.duration_ms;
        assert_int_equal(add(w, (enum work_kind)k, -1, MAX_RUNTIME_MS, 1), k);
    }
    run(w);
    await(w, finished_reaches, WORK_PAYLOAD_INVALID);
    for (unsigned k = 0; k < WORK_PAYLOAD_INVALID; k++) {
        struct fake_task t = fake_core_task(w->core, (int)k);
        int64_t took_ms = t.finished_at_ms - t.started_at_ms;
        assert_int_equal(t.starts, 1);
        assert_int_equal(t.finishes, 1);
        struct work_definition d;
        work_define((enum work_kind)k, 1000, &d);
        assert_int_equal(t.success, !work_fails_on_attempt(&d, 1));
        if (k == WORK_RUNS_OVER_TIMEOUT) {
            assert_string_equal(t.error_code, "timeout");
            assert_true(took_ms >= MAX_RUNTIME_MS / 100);
            assert_true(t.retryable);
            continue;
        }
        assert_true(took_ms >= durations_ms[k] / 100); /* never early */
        assert_string_equal(t.error_code, t.success ? "" : "work_failed");
        assert_int_equal(t.retryable, work_failure_is_retryable((enum work_kind)k));
        assert_int_equal(t.result != NULL, t.success);
    }
}

CORE_TEST(test_retry_on_fail_succeeds_on_its_second_attempt, w)
{
    w->settings.runner_time_scale = 0.001;
    int first = add(w, WORK_RETRY_ON_FAIL, -1, MAX_RUNTIME_MS, 1);
    int second = add(w, WORK_RETRY_ON_FAIL, -1, MAX_RUNTIME_MS, 2);
    run(w);
    await(w, finished_reaches, 2);
    assert_false(fake_core_task(w->core, first).success);
    assert_true(fake_core_task(w->core, first).retryable);
    assert_true(fake_core_task(w->core, second).success);
}

CORE_TEST(test_the_stored_numbers_count_not_the_tables, w)
{
    int index = fake_core_add(w->core,
                              "{\"work_kind\":\"SUCCESS_SLOW\",\"duration_ms\":1,"
                              "\"should_fail\":true,\"payload_size\":1}",
                              MAX_RUNTIME_MS, 1);
    run(w);
    await(w, is_finished, index);
    assert_string_equal(fake_core_task(w->core, index).error_code, "work_failed");
    assert_false(fake_core_task(w->core, index).retryable);
}

CORE_TEST(test_a_task_without_a_usable_definition_fails_and_says_so, w)
{
    int none = fake_core_add(w->core, "", MAX_RUNTIME_MS, 1);
    int odd = fake_core_add(w->core, "{\"command\":\"/bin/sh\"}", MAX_RUNTIME_MS, 1);
    run(w);
    await(w, finished_reaches, 2);
    assert_string_equal(fake_core_task(w->core, none).error_code, "definition_missing");
    assert_string_equal(fake_core_task(w->core, odd).error_code, "definition_missing");
    assert_false(fake_core_task(w->core, odd).retryable);
}

CORE_TEST(test_a_job_is_stopped_at_its_own_runtime_limit, w)
{
    int over = add(w, WORK_SUCCESS_FAST, LONG_MS, 40, 1);
    int at = add(w, WORK_SUCCESS_FAST, 40, 40, 1); /* elapsed >= limit is over it */
    int under = add(w, WORK_SUCCESS_FAST, 39, LONG_MS, 1);
    run(w);
    await(w, finished_reaches, 3);
    struct fake_task t = fake_core_task(w->core, over);
    assert_string_equal(t.error_code, "timeout");
    assert_true(t.retryable);
    assert_true(t.finished_at_ms - t.started_at_ms >= 40);
    assert_string_equal(fake_core_task(w->core, at).error_code, "timeout");
    assert_true(fake_core_task(w->core, under).success);
}

/* [JOB-016] */
CORE_TEST(test_a_started_job_logs_scenario_duration_and_expected_outcome, w)
{
    char line[1024];
    int found = 0;
    w->settings.runner_time_scale = 0.001;
    int index = add(w, WORK_FAIL_AFTER_RETRYABLE, -1, MAX_RUNTIME_MS, 1);
    run(w);
    await(w, is_finished, index);
    FILE *log = fopen(w->log_path, "r");
    while (fgets(line, sizeof line, log)) {
        struct arena *a = arena_new(1024);
        const struct json *root;
        struct err err;
        assert_int_equal(json_parse(a, str_of(line), &root, &err), ERR_OK);
        if (str_is(json_get(root, "event")->text, "job_started")) {
            found++;
            assert_true(str_is(json_get(root, "job_id")->text, "job-0"));
            assert_true(str_is(json_get(root, "scenario")->text, "FAIL_AFTER_RETRYABLE"));
            assert_true(str_is(json_get(root, "duration_ms")->text, "5000"));
            assert_true(str_is(json_get(root, "expected_outcome")->text, "FAILED (retryable)"));
        }
        arena_free(a);
    }
    fclose(log);
    assert_int_equal(found, 1);
}

/* ---- slots ---- */

/* [JOB-140], and the default of JOB-145 */
CORE_TEST(test_a_worker_of_concurrency_one_never_holds_two_tasks, w)
{
    for (int i = 0; i < 200; i++)
        add_plain(w, i % 3);
    run(w);
    await(w, finished_reaches, 200);
    struct fake_counts c = fake_core_counts(w->core);
    assert_int_equal(c.held_max, 1);
    assert_int_equal(c.claim_max_asked, 1);
    assert_int_equal(c.workers, 4);
}

/* [JOB-145]: set to 3, up to three in parallel */
CORE_TEST(test_a_worker_fills_its_concurrency_and_no_more, w)
{
    w->settings.runner_workers = 1;
    w->settings.runner_concurrency = 3;
    for (int i = 0; i < 60; i++)
        add_plain(w, 2);
    run(w);
    await(w, finished_reaches, 60);
    assert_int_equal(fake_core_counts(w->core).held_max, 3);
    assert_int_equal(fake_core_counts(w->core).claim_max_asked, 3);
}

static bool sixteen_wait(struct fake_core *f, void *self)
{
    (void)self;
    return fake_core_counts(f).claims_waiting == 16;
}

CORE_TEST(test_two_thousand_workers_share_sixteen_long_polls, w)
{
    w->settings.runner_workers = 2000;
    run(w);
    await(w, sixteen_wait, 0);
    for (int i = 0; i < 100; i++)
        add_plain(w, 0);
    await(w, finished_reaches, 100);
    await(w, sixteen_wait, 0);
    struct fake_counts c = fake_core_counts(w->core);
    assert_int_equal(c.claims_waiting_max, 16);
    assert_true(c.workers > 16); /* they take turns */
    assert_int_equal(c.held_max, 1);
}

/* Memory of its own, without the pages it shares with the libraries and with this test. */
static long private_kb(pid_t pid)
{
    char path[64], line[256];
    long kb = -1;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *f = fopen(path, "r");
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "Private_Dirty: %ld", &kb) == 1)
            break;
    fclose(f);
    assert_true(kb >= 0);
    return kb;
}

static bool all_running(struct fake_core *f, void *count)
{
    for (int i = *(int *)count; i-- > 0;)
        if (fake_core_task(f, i).state != FAKE_RUNNING)
            return false;
    return true;
}

CORE_TEST(test_five_thousand_jobs_run_at_once_in_one_small_process, w)
{
    const int jobs = 5000;
    w->settings.runner_workers = 50;
    w->settings.runner_concurrency = 100;
    run(w);
    await(w, sixteen_wait, 0);
    long before_kb = private_kb(w->pid);
    for (int i = 0; i < jobs; i++)
        add_plain(w, LONG_MS);
    await(w, all_running, jobs);
    long grown_kb = private_kb(w->pid) - before_kb;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they use memory of their own */
    assert_true(grown_kb < 5 * 1024);
#endif
    assert_true(grown_kb > 0);
    ask_to_stop(w);
    assert_int_equal(exit_status(w), 0);
    assert_int_equal(fake_core_counts(w->core).finished, jobs);
    assert_string_equal(fake_core_task(w->core, jobs - 1).error_code, "shutdown");
}

/* ---- heartbeats ---- */

static bool each_beat_thrice(struct fake_core *f, void *count)
{
    for (int i = 0; i < *(int *)count; i++)
        if (fake_core_task(f, i).heartbeats < 3)
            return false;
    return true;
}

CORE_TEST(test_all_running_tasks_are_renewed_in_one_call, w)
{
    w->settings.runner_concurrency = 10;
    w->settings.queue_heartbeat_ms = 50;
    for (int i = 0; i < 40; i++)
        add_plain(w, LONG_MS);
    run(w);
    await(w, each_beat_thrice, 40);
    struct fake_counts c = fake_core_counts(w->core);
    assert_int_equal(c.heartbeat_tasks_max, 40);
    assert_true(c.calls[FAKE_HEARTBEAT] < 40);
}

CORE_TEST(test_a_cancelled_job_stops_at_once_and_reports_nothing, w)
{
    w->settings.runner_workers = 1;
    w->settings.queue_heartbeat_ms = 20;
    int cancelled = add_plain(w, LONG_MS);
    run(w);
    await(w, is_running, cancelled);
    fake_core_cancel(w->core, cancelled);
    int next = add_plain(w, 1); /* the only slot is free again */
    await(w, is_finished, next);
    assert_int_equal(fake_core_task(w->core, cancelled).finishes, 0);
    assert_int_equal(fake_core_counts(w->core).calls[FAKE_FINISH], 1);
}

static bool started_twice(struct fake_core *f, void *index)
{
    return fake_core_task(f, *(int *)index).starts == 2;
}

CORE_TEST(test_a_lost_lease_ends_the_work_and_frees_the_slot_at_once, w)
{
    w->settings.runner_workers = 1;
    w->settings.queue_heartbeat_ms = 20;
    int index = add_plain(w, LONG_MS);
    run(w);
    await(w, is_running, index);
    fake_core_lose_lease(w->core, index);
    await(w, started_twice, index); /* by the only slot there is */
    struct fake_task t = fake_core_task(w->core, index);
    assert_int_equal(t.refusals, 1); /* the heartbeat; nothing was reported under the old token */
    assert_int_equal(t.finishes, 0);
}

/* ---- core in trouble ---- */

CORE_TEST(test_a_restart_of_core_loses_no_report, w)
{
    w->settings.runner_workers = 1;
    w->settings.runner_concurrency = 2;
    w->settings.queue_heartbeat_ms = 20;
    int shorter = add_plain(w, 150), longer = add_plain(w, 500);
    run(w);
    await(w, is_running, longer);
    fake_core_stop(w->core);
    poll(NULL, 0, 300); /* the time of the outage: the shorter one ends in it */
    fake_core_run(w->core);
    await(w, finished_reaches, 2);
    assert_true(fake_core_task(w->core, shorter).success);
    assert_true(fake_core_task(w->core, longer).success);
    int next = add_plain(w, 1);
    await(w, is_finished, next);
}

static bool reconnects_reach(struct fake_core *f, void *count)
{
    return fake_core_counts(f).reconnects >= *(int *)count;
}

/* Waits until the runner's log holds a text. */
static void await_log(const struct world *w, const char *text)
{
    char line[1024];
    int64_t until_ms = clock_mono_ms(&clock_system) + PATIENCE_MS;
    for (bool found = false; !found; poll(NULL, 0, found ? 0 : 5)) {
        FILE *log = fopen(w->log_path, "r");
        assert_non_null(log);
        while (!found && fgets(line, sizeof line, log))
            found = strstr(line, text) != NULL;
        fclose(log);
        assert_true(found || clock_mono_ms(&clock_system) < until_ms);
    }
}

/* [TOP-070] Idle, with nothing but a long poll in flight: it asks whether core is there and tells it once how
 * long it was not. Nothing is told before, and nothing of a core that refuses a call. */
CORE_TEST(test_a_lost_link_to_core_is_told_when_it_is_back, w)
{
    w->settings.runner_workers = 1;
    run(w);
    fake_core_refuse(w->core, FAKE_START, 503, 1);
    await(w, is_finished, add_plain(w, 1));
    assert_int_equal(fake_core_counts(w->core).calls[FAKE_REPORT], 0);
    fake_core_stop(w->core);
    await_log(w, "\"attempt\":1,");
    int64_t noticed_ms = clock_mono_ms(&clock_system);
    await_log(w, "\"attempt\":3,");
    int64_t least_ms = clock_mono_ms(&clock_system) - noticed_ms;
    fake_core_run(w->core);
    await(w, reconnects_reach, 1);
    struct fake_counts c = fake_core_counts(w->core);
    assert_string_equal(c.reporter, "runner 7");
    assert_in_range(c.reconnect_ms, least_ms, PATIENCE_MS);
    assert_in_range(c.reconnect_attempts, 3, 20); /* tries, with growing pauses */
    await(w, is_finished, add_plain(w, 1));
    assert_int_equal(fake_core_counts(w->core).reconnects, 1);
}

CORE_TEST(test_an_unanswered_start_is_asked_again_and_the_job_runs_once, w)
{
    int index = add_plain(w, 5);
    fake_core_cut_answer(w->core, FAKE_START, 1);
    run(w);
    await(w, is_finished, index);
    assert_int_equal(fake_core_task(w->core, index).starts, 2);
    assert_int_equal(fake_core_task(w->core, index).finishes, 1);
}

CORE_TEST(test_an_unanswered_finish_is_asked_again_and_counts_once, w)
{
    w->settings.runner_workers = 1;
    int index = add_plain(w, 5);
    fake_core_cut_answer(w->core, FAKE_FINISH, 1);
    run(w);
    await(w, is_finished, index);
    int next = add_plain(w, 5);
    await(w, is_finished, next); /* so the slot was freed by the second answer */
    assert_int_equal(fake_core_task(w->core, index).finishes, 1);
    assert_true(fake_core_counts(w->core).calls[FAKE_FINISH] >= 3);
}

CORE_TEST(test_an_overloaded_core_is_asked_again_later, w)
{
    int index = add_plain(w, 5);
    fake_core_refuse(w->core, FAKE_CLAIM, 503, 3);
    fake_core_refuse(w->core, FAKE_START, 503, 2);
    fake_core_refuse(w->core, FAKE_FINISH, 503, 2);
    run(w);
    await(w, is_finished, index);
    assert_true(fake_core_task(w->core, index).success);
}

CORE_TEST(test_large_results_go_out_in_calls_of_bounded_size, w)
{
    w->settings.runner_concurrency = 4;
    for (int i = 0; i < 16; i++)
        add(w, WORK_LARGE_OUTPUT, 20, MAX_RUNTIME_MS, 1);
    run(w);
    await(w, finished_reaches, 16);
    assert_true(fake_core_counts(w->core).finish_bytes_max < 600 * 1024);
    for (int i = 0; i < 16; i++)
        assert_in_range(strlen(fake_core_task(w->core, i).result), 262144 - 8, 262144);
}

CORE_TEST(test_a_result_that_core_finds_too_large_becomes_a_failure, w)
{
    w->settings.runner_concurrency = 4;
    fake_core_body_limit(w->core, 100000);
    for (int i = 0; i < 4; i++)
        add(w, i % 2 ? WORK_LARGE_OUTPUT : WORK_SUCCESS_FAST, 20, MAX_RUNTIME_MS, 1);
    run(w);
    await(w, finished_reaches, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(fake_core_task(w->core, i).error_code, i % 2 ? "result_too_large" : "");
}

/* ---- drain ---- */

CORE_TEST(test_drain_lets_short_jobs_end_and_reports_the_rest_as_shutdown, w)
{
    w->settings.runtime_drain_ms = 400;
    int shorter = add_plain(w, 150), longer = add_plain(w, LONG_MS);
    run(w);
    await(w, is_running, shorter);
    await(w, is_running, longer);
    ask_to_stop(w);
    assert_int_equal(exit_status(w), 0);
    assert_true(fake_core_task(w->core, shorter).success);
    struct fake_task t = fake_core_task(w->core, longer);
    assert_string_equal(t.error_code, "shutdown");
    assert_true(t.retryable);
}

static bool one_start_and_two_assigned(struct fake_core *f, void *self)
{
    (void)self;
    return fake_core_counts(f).calls[FAKE_START] == 1 && fake_core_task(f, 0).state == FAKE_ASSIGNED &&
           fake_core_task(f, 1).state == FAKE_ASSIGNED;
}

static bool start_was_called(struct fake_core *f, void *self)
{
    (void)self;
    return fake_core_counts(f).calls[FAKE_START] == 1;
}

static bool was_released(struct fake_core *f, void *index)
{
    return fake_core_task(f, *(int *)index).releases == 1;
}

CORE_TEST(test_drain_releases_what_has_not_started, w)
{
    w->settings.runtime_drain_ms = PATIENCE_MS;
    fake_core_hold(w->core, FAKE_START, true);
    int starting = add_plain(w, 1);
    run(w);
    await(w, start_was_called, 0);
    int waiting = add_plain(w, 1); /* its start has to wait for the first one's */
    await(w, one_start_and_two_assigned, 0);
    ask_to_stop(w);
    await(w, was_released, waiting);
    fake_core_hold(w->core, FAKE_START, false);
    assert_int_equal(exit_status(w), 0);
    assert_true(fake_core_task(w->core, starting).success);
    assert_int_equal(fake_core_task(w->core, waiting).starts, 0);
    assert_int_equal(fake_core_task(w->core, waiting).state, FAKE_QUEUED);
}

static bool no_claim_waits(struct fake_core *f, void *self)
{
    (void)self;
    return fake_core_counts(f).claims_waiting == 0;
}

CORE_TEST(test_drain_gives_up_its_long_polls_and_claims_no_more, w)
{
    w->settings.runtime_drain_ms = PATIENCE_MS;
    int running = add_plain(w, 1);
    fake_core_hold(w->core, FAKE_FINISH, true); /* so it has a reason to stay */
    run(w);
    await(w, is_running, running);
    ask_to_stop(w);
    await(w, no_claim_waits, 0);
    int late = add_plain(w, 1);
    fake_core_hold(w->core, FAKE_FINISH, false);
    assert_int_equal(exit_status(w), 0);
    assert_true(fake_core_task(w->core, running).success);
    assert_int_equal(fake_core_task(w->core, late).state, FAKE_QUEUED);
}

CORE_TEST(test_drain_does_not_wait_for_a_core_that_is_gone, w)
{
    w->settings.runtime_drain_ms = 50;
    int index = add_plain(w, LONG_MS);
    run(w);
    await(w, is_running, index);
    fake_core_stop(w->core);
    ask_to_stop(w);
    assert_int_equal(exit_status(w), 0);
    fake_core_run(w->core);
}

CORE_TEST(test_an_idle_runner_stops_at_once, w)
{
    w->settings.runtime_drain_ms = LONG_MS;
    run(w);
    ask_to_stop(w);
    assert_int_equal(exit_status(w), 0);
}
