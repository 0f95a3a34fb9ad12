/* Draining in order, stragglers, a dead root. */
#include "case.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/must.h"
#include "runtime/data_lock.h"
#include "unit/runtime/fake_root.h"
#include "pace.h"

#include "base/banned.h"

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

/* Starts root with core and one or two runners; pids by [0] core, [1], [2] runners. */
static void started(pid_t pids[3])
{
    fake_start(&root);
    pids[0] = fake_await(&root, EVENT_STARTED, PROCESS_CORE, 1).pid;
    for (int64_t i = 0; i < root.settings.runner_processes;) {
        struct fake_event e = fake_next(&root);
        if (e.type == EVENT_STARTED) {
            pids[e.instance] = e.pid;
            i++;
        }
    }
    fake_await_topology(&root, "\"name\":\"core\",\"domain\":\"root\",\"pid\"");
}

#define ROOT_TEST(name) TEST_BETWEEN(name, set_up, tear_down)

ROOT_TEST(test_core_is_asked_to_stop_only_after_the_last_runner_has_left)
{
    pid_t pids[3];
    struct fake_event e;
    root.plans.runner = FAKE_WAIT_GATE;
    started(pids);
    kill(root.pid, SIGTERM);
    fake_await(&root, EVENT_ASKED_TO_STOP, PROCESS_RUNNER, 0);
    e = fake_await(&root, EVENT_ASKED_TO_STOP, PROCESS_RUNNER, 0);
    assert_false(fake_next_within(&root, 300, &e)); /* core is left alone while they work */
    assert_int_equal(kill(pids[0], 0), 0);
    fake_open_gate(&root);
    e = fake_await(&root, EVENT_ASKED_TO_STOP, PROCESS_CORE, 1);
    assert_true(fake_gone_within(pids[1], 0) && fake_gone_within(pids[2], 0));
    assert_int_equal(fake_await_exit(&root), 0);
    char *text = fake_topology(&root);
    assert_non_null(strstr(text, "\"name\":\"core\",\"domain\":\"root\",\"pid\":null,\"state\":\"stopped\""));
    free(text);
}

ROOT_TEST(test_sigint_drains_as_sigterm_does_and_sighup_is_ignored)
{
    pid_t pids[3];
    started(pids);
    kill(root.pid, SIGHUP);
    kill(pids[1], SIGKILL);
    fake_await(&root, EVENT_STARTED, PROCESS_RUNNER, 1); /* root lives and works */
    kill(root.pid, SIGINT);
    fake_await(&root, EVENT_ASKED_TO_STOP, PROCESS_RUNNER, 0);
    fake_await(&root, EVENT_ASKED_TO_STOP, PROCESS_CORE, 1);
    assert_int_equal(fake_await_exit(&root), 0);
}

ROOT_TEST(test_a_runner_that_does_not_leave_is_killed_when_the_drain_is_over)
{
    pid_t pids[3];
    root.plans.runner = FAKE_HANG;
    fake_set(&root, "runtime.drain_ms", "100");
    started(pids);
    int64_t asked_ms = fake_now_ms();
    kill(root.pid, SIGTERM);
    struct fake_event core = fake_await(&root, EVENT_ASKED_TO_STOP, PROCESS_CORE, 1);
    assert_true(core.at_ms - asked_ms >= 100 + SUPERVISOR_DRAIN_GRACE_MS);
    assert_int_equal(fake_await_exit(&root), 0);
    assert_true(fake_gone_within(pids[1], 0) && fake_gone_within(pids[2], 0));
}

ROOT_TEST(test_a_second_signal_stops_everything_at_once)
{
    pid_t pids[3];
    root.plans.core = root.plans.runner = FAKE_HANG;
    started(pids);
    kill(root.pid, SIGTERM);
    fake_await(&root, EVENT_ASKED_TO_STOP, PROCESS_RUNNER, 0);
    struct pace second = pace_start();
    kill(root.pid, SIGINT);
    assert_int_equal(fake_await_exit(&root), 0);
    assert_true(pace_quiet_ms(&second) < 1500);
    for (int i = 0; i < 3; i++)
        assert_true(fake_gone_within(pids[i], 0));
}

ROOT_TEST(test_a_stopped_runner_process_that_was_frozen_is_killed_too)
{
    pid_t pids[3];
    fake_set(&root, "runtime.drain_ms", "0");
    fake_set(&root, "runner.processes", "1");
    started(pids);
    kill(pids[1], SIGSTOP);
    kill(root.pid, SIGTERM);
    assert_int_equal(fake_await_exit(&root), 0);
    assert_true(fake_gone_within(pids[1], 0));
}

static void kill_root(void)
{
    kill(root.pid, SIGKILL);
    waitpid(root.pid, NULL, 0);
    root.pid = 0;
}

ROOT_TEST(test_children_do_not_outlive_a_root_that_was_killed)
{
    pid_t pids[3];
    started(pids);
    kill_root();
    for (int i = 0; i < 3; i++)
        if (!fake_gone_within(pids[i], 5000))
            fail_msg("child %d outlives its root", i);
}

ROOT_TEST(test_an_orphaned_core_keeps_the_lock_until_it_is_ended_by_its_alarm)
{
    pid_t pids[3];
    struct err err;
    int fd = -1;
    root.plans.core = FAKE_HANG;
    fake_set(&root, "runtime.drain_ms", "0");
    started(pids);
    kill_root();
    fake_await(&root, EVENT_ASKED_TO_STOP, PROCESS_CORE, 1);
    assert_int_not_equal(data_lock_take(root.data, 0, &fd, &err), ERR_OK); /* never two writers */
    assert_int_equal(data_lock_take(root.data, FAKE_WAIT_MS, &fd, &err), ERR_OK);
    assert_true(fake_gone_within(pids[0], 1000));
    data_lock_release(fd);
}

ROOT_TEST(test_a_start_right_after_a_killed_root_waits_for_the_old_core_and_succeeds)
{
    pid_t pids[3];
    started(pids);
    kill_root();
    fake_start(&root);
    fake_await(&root, EVENT_STARTED, PROCESS_CORE, 1); /* what the old root told comes before */
    fake_await(&root, EVENT_ON_READY, PROCESS_CORE, 0);
    assert_true(fake_gone_within(pids[0], 1000)); /* its lock was free, so it was past its last write */
    kill(root.pid, SIGTERM);
    assert_int_equal(fake_await_exit(&root), 0);
}

ROOT_TEST(test_runners_of_a_dead_root_do_not_drain)
{
    pid_t pids[3];
    root.plans.runner = FAKE_WAIT_GATE; /* asked to leave it would wait for ever */
    started(pids);
    kill_root();
    assert_true(fake_gone_within(pids[1], 5000) && fake_gone_within(pids[2], 5000));
    assert_true(fake_gone_within(pids[0], 5000));
}

/* The kernel lets one that has come to its stop go on when root dies, so it is killed right after. */
ROOT_TEST(test_a_runner_that_was_stopped_does_not_outlive_its_root)
{
    pid_t pids[3];
    for (int round = 0; round < 5; round++) {
        started(pids);
        kill(pids[1], SIGSTOP);
        kill_root();
        if (!fake_gone_within(pids[1], 5000)) {
            kill(pids[1], SIGKILL);
            fail_msg("a stopped runner outlives its root");
        }
        assert_true(fake_gone_within(pids[2], 5000) && fake_gone_within(pids[0], 5000));
    }
}
