/* Start order, restarts, domains that end. */
#include "case.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/must.h"
#include "unit/runtime/fake_root.h"

#include "base/banned.h"

enum { RESTART_LIMIT_MS = 1000 };

static struct fake_root root;

static int set_up(void **state)
{
    (void)state;
    fake_open(&root);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_close(&root);
    return 0;
}

struct fleet {
    pid_t core, runner[3];
};

static struct fleet started(void)
{
    struct fleet fleet = {0};
    fake_start(&root);
    for (int seen = 0; seen < 4;) {
        struct fake_event e = fake_next(&root);
        seen++;
        if (e.type == EVENT_STARTED && e.kind == PROCESS_CORE)
            fleet.core = e.pid;
        else if (e.type == EVENT_STARTED)
            fleet.runner[e.instance] = e.pid;
    }
    assert_true(fleet.core && fleet.runner[1] && fleet.runner[2]);
    return fleet;
}

static void said(const char *part)
{
    char *text = fake_stderr(&root);
    if (!strstr(text, part))
        fail_msg("root did not say %s but:\n%s", part, text);
    free(text);
}

/* The pid topology.json gives for a process; 0 for null. */
static pid_t topology_pid(const char *name)
{
    struct arena *a = arena_new(4096);
    struct err err;
    const struct json *top;
    char *text = fake_topology(&root);
    assert_int_equal(json_parse(a, (struct str){text, strlen(text) - 1}, &top, &err), ERR_OK);
    int64_t pid = 0;
    for (const struct json *p = json_get(top, "processes")->child; p; p = p->next)
        if (str_is(json_get(p, "name")->text, name))
            json_to_int(json_get(p, "pid"), &pid);
    arena_free(a);
    free(text);
    return (pid_t)pid;
}

#define ROOT_TEST(name) TEST_BETWEEN(name, set_up, tear_down)

ROOT_TEST(test_core_starts_first_and_the_others_only_when_it_is_ready)
{
    fake_start(&root);
    struct fake_event e = fake_next(&root);
    assert_int_equal(e.type, EVENT_STARTED);
    assert_int_equal(e.kind, PROCESS_CORE);
    int runners = 0, ready = 0;
    for (int i = 0; i < 3; i++) {
        e = fake_next(&root);
        runners += e.type == EVENT_STARTED && e.kind == PROCESS_RUNNER;
        ready += e.type == EVENT_ON_READY;
    }
    assert_int_equal(runners, 2);
    assert_int_equal(ready, 1);
}

ROOT_TEST(test_nothing_else_starts_while_core_is_not_ready)
{
    root.plans.core = FAKE_NEVER_READY;
    fake_start(&root);
    fake_await(&root, EVENT_STARTED, PROCESS_CORE, 1);
    struct fake_event e;
    assert_false(fake_next_within(&root, 300, &e));
    fake_await_topology(&root,
                        "\"name\":\"runner 1\",\"domain\":\"agents\",\"pid\":null,\"state\":\"waiting\"");
    kill(root.pid, SIGTERM); /* and it can be stopped while it waits */
    assert_int_equal(fake_await_exit(&root), 0);
}

/* [TOP-017] */
ROOT_TEST(test_a_killed_runner_is_back_within_a_second_and_the_others_keep_their_pids)
{
    struct fleet fleet = started();
    int64_t killed_ms = fake_now_ms();
    kill(fleet.runner[1], SIGKILL);
    struct fake_event e = fake_next(&root);
    assert_int_equal(e.type, EVENT_STARTED);
    assert_int_equal(e.instance, 1);
    assert_true(e.at_ms - killed_ms <= RESTART_LIMIT_MS);
    assert_int_not_equal(e.pid, fleet.runner[1]);
    fake_await_topology(&root, "\"restarts\":1");
    assert_int_equal(topology_pid("runner 1"), e.pid);
    assert_int_equal(topology_pid("runner 2"), fleet.runner[2]);
    assert_int_equal(topology_pid("core"), fleet.core);
    fake_await_topology(&root, "\"name\":\"agents\",\"intensity\":\"10/60s\",\"restarts_in_window\":1,"
                               "\"state\":\"running\"");
}

/* [TOP-013] first half */
ROOT_TEST(test_a_killed_core_is_back_within_a_second_and_the_runners_stay)
{
    struct fleet fleet = started();
    int64_t killed_ms = fake_now_ms();
    kill(fleet.core, SIGSEGV);
    struct fake_event e = fake_next(&root);
    assert_int_equal(e.type, EVENT_STARTED);
    assert_int_equal(e.kind, PROCESS_CORE);
    assert_true(e.at_ms - killed_ms <= RESTART_LIMIT_MS);
    assert_false(fake_next_within(&root, 200, &e)); /* no runner moved, no second banner */
    assert_int_equal(kill(fleet.runner[1], 0) | kill(fleet.runner[2], 0), 0);
    fake_await_topology(&root, "\"name\":\"root\",\"intensity\":\"3/10s\",\"restarts_in_window\":1");
}

/* [TOP-013] second half, [TOP-030], [TOP-037] */
ROOT_TEST(test_the_fourth_death_of_core_in_ten_seconds_ends_the_program)
{
    root.plans.core = FAKE_DIE;
    root.plans.exit_code = 3;
    fake_start(&root);
    assert_int_equal(fake_await_exit(&root), 1);
    int starts = 0;
    for (struct fake_event e; fake_next_within(&root, 0, &e);)
        starts += e.type == EVENT_STARTED && e.kind == PROCESS_CORE;
    assert_int_equal(starts, 4);
    said("weir: core failed (exit status 3) after 3 restarts within 10 s; giving up");
    said("\"event\":\"weir.supervisor.escalation\",\"domain\":\"root\",\"source_child\":\"core\","
         "\"restart_count\":3");
}

ROOT_TEST(test_a_log_that_nobody_reads_keeps_no_program_from_its_end)
{
    static const int codes[][2] = {{3, 1}, {PROCESS_EXIT_CONFIG, PROCESS_EXIT_CONFIG}};
    root.stderr_stuck = true;
    root.plans.core = FAKE_DIE;
    for (size_t i = 0; i < LENGTH_OF(codes); i++) {
        root.plans.exit_code = codes[i][0];
        fake_start(&root);
        assert_int_equal(fake_await_exit(&root), codes[i][1]);
    }
}

ROOT_TEST(test_a_core_that_dies_three_times_and_then_lives_goes_on)
{
    root.plans.core = FAKE_DIE_UNTIL;
    root.plans.deaths = 3;
    root.plans.exit_code = 1;
    fake_start(&root);
    fake_await(&root, EVENT_ON_READY, PROCESS_CORE, 0);
    kill(root.pid, SIGTERM);
    assert_int_equal(fake_await_exit(&root), 0);
}

/* [TOP-029] [TOP-051] [TOP-052] */
ROOT_TEST(test_a_domain_beyond_its_window_ends_alone_and_comes_back_as_one_restart_of_root)
{
    root.plans.runner_1 = FAKE_DIE_UNTIL;
    root.plans.deaths = 3;
    root.plans.exit_code = 1;
    fake_set(&root, "runtime.agents.max_restarts", "2");
    fake_start(&root);
    pid_t core = fake_await(&root, EVENT_STARTED, PROCESS_CORE, 1).pid;
    /* three deaths of runner 1: two restarts, the third ends the domain and with it runner 2 */
    fake_await(&root, EVENT_ASKED_TO_STOP, PROCESS_RUNNER, 2);
    int back = 0;
    while (back < 2)
        back += fake_await(&root, EVENT_STARTED, PROCESS_RUNNER, 0).pid != 0;
    fake_await_topology(&root, "\"name\":\"root\",\"intensity\":\"3/10s\",\"restarts_in_window\":1,"
                               "\"state\":\"running\"");
    fake_await_topology(&root, "\"name\":\"agents\",\"intensity\":\"2/60s\",\"restarts_in_window\":0,"
                               "\"state\":\"running\"");
    assert_int_equal(topology_pid("core"), core);
    said("\"event\":\"weir.runtime.failure\",\"mode\":\"restarts_exhausted\",\"component\":\"supervisor\","
         "\"failure_class\":\"fatal\",\"restart_count\":2,\"window_s\":60,\"domain\":\"agents\"");
    said("\"event\":\"weir.supervisor.escalation\",\"domain\":\"agents\",\"source_child\":\"runner 1\","
         "\"restart_count\":2");
}

ROOT_TEST(test_a_domain_that_ends_four_times_in_ten_seconds_ends_the_program)
{
    root.plans.runner = FAKE_DIE;
    root.plans.exit_code = 1;
    fake_set(&root, "runner.processes", "1");
    fake_set(&root, "runtime.agents.max_restarts", "0");
    fake_start(&root);
    fake_await(&root, EVENT_ON_READY, PROCESS_CORE, 0);
    assert_int_equal(fake_await_exit(&root), 1);
    said("weir: agents failed (exit status 1) after 3 restarts within 10 s; giving up");
}

ROOT_TEST(test_restarts_come_at_once_twice_and_then_ever_later)
{
    int64_t at_ms[6];
    root.plans.runner = FAKE_DIE;
    fake_set(&root, "runner.processes", "1");
    fake_start(&root);
    for (int i = 0; i < 6; i++)
        at_ms[i] = fake_await(&root, EVENT_STARTED, PROCESS_RUNNER, 1).at_ms;
    static const int64_t least_ms[] = {0, 0, 100, 200, 400};
    for (int i = 0; i < 5; i++) {
        int64_t gap = at_ms[i + 1] - at_ms[i];
        assert_true(gap >= least_ms[i]);
        assert_true(gap <= least_ms[i] + RESTART_LIMIT_MS);
    }
}

ROOT_TEST(test_a_child_that_does_not_beat_is_killed_and_started_again_alone)
{
    root.plans.runner_1 = FAKE_STILL;
    fake_set(&root, "runtime.heartbeat_timeout_ms", "300");
    fake_start(&root);
    pid_t core = fake_await(&root, EVENT_STARTED, PROCESS_CORE, 1).pid;
    pid_t first = fake_await(&root, EVENT_STARTED, PROCESS_RUNNER, 1).pid;
    pid_t second = fake_await(&root, EVENT_STARTED, PROCESS_RUNNER, 1).pid;
    assert_int_not_equal(first, second);
    assert_int_equal(kill(first, 0), -1); /* gone before the next one began */
    assert_int_equal(topology_pid("core"), core);
    said("\"mode\":\"process_hung\",\"component\":\"runner 1\",\"failure_class\":\"recoverable\","
         "\"domain\":\"agents\",\"loop\":\"loop\"");
}

ROOT_TEST(test_a_child_that_waits_for_a_disk_is_left_alone)
{
    root.plans.runner_1 = FAKE_DISK;
    root.plans.runner = FAKE_STILL; /* the control beside it: killed again and again */
    fake_set(&root, "runtime.heartbeat_timeout_ms", "200");
    fake_start(&root);
    pid_t waiting = fake_await(&root, EVENT_STARTED, PROCESS_RUNNER, 1).pid;
    for (int i = 0; i < 4; i++)
        fake_await(&root, EVENT_STARTED, PROCESS_RUNNER, 2);
    assert_int_equal(topology_pid("runner 1"), waiting);
}

ROOT_TEST(test_a_child_that_the_kernel_holds_is_left_alone_and_told_once)
{
    root.plans.runner_1 = FAKE_HELD;
    root.plans.runner = FAKE_STILL; /* the control beside it: killed again and again */
    fake_set(&root, "runtime.heartbeat_timeout_ms", "200");
    fake_start(&root);
    pid_t held = fake_await(&root, EVENT_STARTED, PROCESS_RUNNER, 1).pid;
    for (int i = 0; i < 4; i++)
        fake_await(&root, EVENT_STARTED, PROCESS_RUNNER, 2);
    assert_int_equal(topology_pid("runner 1"), held);
    said("\"event\":\"process_waits_for_disk\",\"name\":\"runner 1\"");
}

ROOT_TEST(test_exit_78_of_core_stops_the_program_without_a_restart)
{
    root.plans.core = FAKE_DIE;
    root.plans.exit_code = PROCESS_EXIT_CONFIG;
    fake_start(&root);
    assert_int_equal(fake_await_exit(&root), PROCESS_EXIT_CONFIG);
    fake_await(&root, EVENT_STARTED, PROCESS_CORE, 1);
    struct fake_event e;
    assert_false(fake_next_within(&root, 0, &e));
    said("weir: core cannot run with this configuration");
}

ROOT_TEST(test_exit_78_of_one_that_was_ready_before_is_a_failure_like_any_other)
{
    root.plans.core = FAKE_DIE_LATER;
    root.plans.deaths = 2;
    root.plans.exit_code = PROCESS_EXIT_CONFIG;
    struct fleet fleet = started();
    kill(fleet.core, SIGKILL);
    for (int i = 0; i < 3; i++)
        fleet.core = fake_await(&root, EVENT_STARTED, PROCESS_CORE, 1).pid;
    fake_await_topology(&root, "\"state\":\"running\",\"restarts\":3");
}

ROOT_TEST(test_exit_78_of_a_runner_stops_core_too)
{
    root.plans.runner = FAKE_DIE;
    root.plans.exit_code = PROCESS_EXIT_CONFIG;
    fake_set(&root, "runner.processes", "1");
    fake_start(&root);
    assert_int_equal(fake_await_exit(&root), PROCESS_EXIT_CONFIG);
    fake_await(&root, EVENT_ASKED_TO_STOP, PROCESS_CORE, 1);
}

ROOT_TEST(test_processes_carry_their_kind_in_their_name)
{
    struct fleet fleet = started();
    char path[64], comm[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)fleet.runner[2]);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    assert_non_null(fgets(comm, sizeof comm, f));
    fclose(f);
    assert_string_equal(comm, "weir: runner 2\n");
}

ROOT_TEST(test_a_second_start_on_the_same_data_is_refused_with_the_pid)
{
    struct fleet fleet = started();
    pid_t first = root.pid;
    fake_start(&root);
    pid_t second = root.pid;
    assert_int_equal(fake_await_exit(&root), 1);
    assert_int_not_equal(first, second);
    root.pid = first;
    char expected[64];
    snprintf(expected, sizeof expected, "is in use by process %d", (int)first);
    said(expected);
    assert_int_equal(kill(fleet.core, 0), 0); /* the first one goes on */
}
