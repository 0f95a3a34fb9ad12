/* Signals: what each does to a run that Weir executes, and when its state forbids it. */
#include "unit/engine/engine_rig.h"

#include "base/json.h"
#include "engine/signal_apply.h"

#include "base/banned.h"

#define PLAN(id, rest)  "{\"planId\":\"" id "\",\"planVersion\":\"1\"," rest "}"
#define STEP(id, needs) "{\"stepId\":\"" id "\",\"dependsOn\":[" needs "]}"
#define STEPS(list)     "\"steps\":[" list "]"

static const char chain[] = PLAN("chain", STEPS(STEP("a", "") "," STEP("b", "\"a\"") "," STEP("c", "\"b\"")));
static const char pair[] = PLAN("pair", "\"onFailure\":\"wait\"," STEPS(STEP("x", "") "," STEP("y", "")));
static const char tries[] = PLAN(
    "tries", "\"onFailure\":\"wait\"," STEPS("{\"stepId\":\"a\",\"maxAttempts\":2}," STEP("b", "\"a\"")));

static bool none_ready(struct rig *r)
{
    return rig_claim_count(r, "w", 1) == 0;
}

static bool says(struct str text, const char *part)
{
    return text.ptr && memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

static struct str last_payload(struct rig *r, const char *run)
{
    size_t count;
    const struct run_event_row *e = events_of(r, run, &count);
    return e[count - 1].payload;
}

/* --- pause and resume ----------------------------------------------------------------------------------- */

/* [SIG-002] [SIG-003]: what is ready is taken back, what runs ends, and goes on afterwards */
RIG_TEST(test_a_paused_run_starts_nothing_and_lets_running_steps_end, r)
{
    struct claimed_task x, y;
    put_plan(r, pair);
    start_run(r, "run", "pair");
    begin_step(r, "run", "x", &x);
    y = claim_step(r, "run", "y"); /* leased, not started */
    assert_int_equal(signal_run(r, "run", SIGNAL_PAUSE, "{\"reason\":\"lunch\"}"), ERR_OK);
    assert_true(says(last_payload(r, "run"), "{\"reason\":\"lunch\"}"));
    assert_status(r, "run", "PAUSED");
    assert_int_equal(rig_work(r, &start_command_type, &y).code, ERR_LEASE_LOST);
    assert_true(none_ready(r));
    assert_false(rig_work(r, &heartbeat_command_type, &x).cancel);
    assert_int_equal(succeed_step(r, &x), ERR_OK);
    assert_step(r, "run", "x", "SUCCESS");
    assert_status(r, "run", "PAUSED");
    assert_int_equal(signal_run(r, "run", SIGNAL_RESUME, NULL), ERR_OK);
    do_step(r, "run", "y", true);
    assert_story(
        r, "run",
        "RunQueued RunStarted StepStarted:x:1 RunPaused StepCompleted:x:1 RunResumed StepStarted:y:1 "
        "StepCompleted:y:1 RunCompleted");
}

/* AR-06: the second cycle has attempt 2; and AS-17 */
RIG_TEST(test_each_cycle_of_pausing_has_a_number_and_repeating_changes_nothing, r)
{
    put_plan(r, chain);
    start_run(r, "run", "chain");
    do_step(r, "run", "a", true);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            assert_int_equal(signal_run(r, "run", k ? SIGNAL_RESUME : SIGNAL_PAUSE, NULL), ERR_OK);
    assert_int_equal(signal_run(r, "run", SIGNAL_RESUME, NULL), ERR_OK);
    assert_int_equal(signal_run(r, "run", SIGNAL_PAUSE, NULL), ERR_OK);
    assert_int_equal(signal_run(r, "run", SIGNAL_PAUSE, NULL), ERR_OK);
    assert_story(r, "run",
                 "RunQueued RunStarted StepStarted:a:1 StepCompleted:a:1 RunPaused RunResumed RunPaused:2 "
                 "RunResumed:2 "
                 "RunPaused:3");
    assert_true(none_ready(r));
    signal_run(r, "run", SIGNAL_RESUME, NULL);
    do_step(r, "run", "b", true);
}

/* A run that nobody has begun is started, then paused. */
RIG_TEST(test_a_pending_run_can_be_paused, r)
{
    put_plan(r, chain);
    start_run(r, "run", "chain");
    assert_int_equal(signal_run(r, "run", SIGNAL_PAUSE, NULL), ERR_OK);
    assert_story(r, "run", "RunQueued RunStarted RunPaused");
    assert_true(none_ready(r));
    assert_int_equal(signal_run(r, "run", SIGNAL_RESUME, NULL), ERR_OK);
    do_step(r, "run", "a", true);
}

/* The last step ends while the run is paused: it is completed when it goes on. */
RIG_TEST(test_a_run_whose_steps_ended_while_paused_ends_when_resumed, r)
{
    struct claimed_task x, y;
    put_plan(r, pair);
    start_run(r, "run", "pair");
    begin_step(r, "run", "x", &x);
    begin_step(r, "run", "y", &y);
    signal_run(r, "run", SIGNAL_PAUSE, NULL);
    succeed_step(r, &x);
    succeed_step(r, &y);
    assert_status(r, "run", "PAUSED");
    assert_int_equal(signal_run(r, "run", SIGNAL_RESUME, NULL), ERR_OK);
    assert_status(r, "run", "COMPLETED");
}

/* A step that fails while paused gets its next try afterwards; one that waits for it keeps it. */
RIG_TEST(test_tries_survive_a_pause, r)
{
    struct claimed_task t;
    put_plan(r, tries);
    start_run(r, "run", "tries");
    begin_step(r, "run", "a", &t);
    signal_run(r, "run", SIGNAL_PAUSE, NULL);
    fail_step(r, &t, true);
    rig_pass(r, 100000);
    assert_true(none_ready(r));
    signal_run(r, "run", SIGNAL_RESUME, NULL);
    signal_run(r, "run", SIGNAL_PAUSE, NULL); /* takes the waiting one back */
    rig_pass(r, 100000);
    assert_true(none_ready(r));
    signal_run(r, "run", SIGNAL_RESUME, NULL);
    rig_pass(r, 100000);
    do_step(r, "run", "a", false);
    assert_status(r, "run", "RUNNING"); /* onFailure wait */
    assert_true(none_ready(r));
    assert_int_equal(step_of(r, "run", "a").attempt, 2);
}

/* --- cancel and emergency stop -------------------------------------------------------------------------- */

/* [SIG-004] [SIG-016] [SIG-017]: a running step hears of it and may end by itself */
RIG_TEST(test_a_cancelled_run_waits_for_running_steps, r)
{
    struct claimed_task x;
    put_plan(r, pair);
    start_run(r, "run", "pair");
    begin_step(r, "run", "x", &x);
    assert_int_equal(signal_run(r, "run", SIGNAL_CANCEL, "{\"reason\":\"enough\"}"), ERR_OK);
    assert_status(r, "run", "RUNNING");
    assert_true(none_ready(r)); /* y was taken back */
    struct worker_item beat = rig_work(r, &heartbeat_command_type, &x);
    assert_int_equal(beat.code, ERR_OK);
    assert_true(beat.cancel);
    rig_pass(r, r->settings.engine_cancel_grace_ms - 1);
    rig_work(r, &heartbeat_command_type, &x);
    assert_status(r, "run", "RUNNING");
    assert_int_equal(succeed_step(r, &x), ERR_OK);
    assert_status(r, "run", "CANCELLED");
    assert_story(r, "run", "RunQueued RunStarted StepStarted:x:1 StepCompleted:x:1 RunCancelled");
    assert_true(says(last_payload(r, "run"), "{\"reason\":\"enough\"}"));
    assert_step(r, "run", "y", "PENDING");
}

RIG_TEST(test_a_cancelled_run_ends_when_its_grace_is_over, r)
{
    struct claimed_task x;
    size_t count;
    put_plan(r, pair);
    start_run(r, "run", "pair");
    begin_step(r, "run", "x", &x);
    signal_run(r, "run", SIGNAL_CANCEL, NULL);
    rig_pass(r, r->settings.engine_cancel_grace_ms);
    rig_step(r);
    assert_status(r, "run", "CANCELLED");
    assert_story(r, "run", "RunQueued RunStarted StepStarted:x:1 StepFailed:x:1 RunCancelled");
    const struct run_event_row *e = events_of(r, "run", &count);
    assert_true(says(e[3].payload, "\"reason\":\"cancelled\""));
    assert_int_equal(succeed_step(r, &x), ERR_LEASE_LOST);
    struct worker_item beat = rig_work(r, &heartbeat_command_type, &x);
    assert_true(beat.cancel || beat.code == ERR_LEASE_LOST);
}

/* The time of grace goes on over a restart, and a repeated CANCEL does not prolong it. */
RIG_TEST(test_grace_survives_a_restart_and_is_not_prolonged, r)
{
    struct claimed_task x;
    put_plan(r, pair);
    start_run(r, "run", "pair");
    begin_step(r, "run", "x", &x);
    signal_run(r, "run", SIGNAL_CANCEL, NULL);
    rig_restart(r, 1000);
    rig_pass(r, r->settings.engine_cancel_grace_ms - 2000);
    assert_int_equal(signal_run(r, "run", SIGNAL_CANCEL, NULL), ERR_OK);
    assert_status(r, "run", "RUNNING");
    rig_pass(r, 1001);
    rig_step(r);
    assert_status(r, "run", "CANCELLED");
}

RIG_TEST(test_runs_without_running_steps_are_cancelled_at_once, r)
{
    put_plan(r, chain);
    start_run(r, "pending", "chain");
    assert_int_equal(signal_run(r, "pending", SIGNAL_CANCEL, NULL), ERR_OK);
    assert_story(r, "pending", "RunQueued RunCancelled");
    start_run(r, "paused", "chain");
    signal_run(r, "paused", SIGNAL_PAUSE, NULL);
    assert_int_equal(signal_run(r, "paused", SIGNAL_CANCEL, NULL), ERR_OK);
    assert_story(r, "paused", "RunQueued RunStarted RunPaused RunCancelled");
    assert_true(none_ready(r));
}

RIG_TEST(test_a_paused_run_with_a_running_step_is_cancelled_after_it, r)
{
    struct claimed_task x;
    put_plan(r, pair);
    start_run(r, "run", "pair");
    begin_step(r, "run", "x", &x);
    signal_run(r, "run", SIGNAL_PAUSE, NULL);
    signal_run(r, "run", SIGNAL_CANCEL, NULL);
    assert_status(r, "run", "PAUSED");
    assert_int_equal(signal_run(r, "run", SIGNAL_RESUME, NULL), ERR_RUN_TERMINAL); /* it is being stopped */
    rig_pass(r, r->settings.engine_cancel_grace_ms);
    rig_step(r);
    assert_story(r, "run", "RunQueued RunStarted StepStarted:x:1 RunPaused StepFailed:x:1 RunCancelled");
}

/* [SIG-012] [SIG-018]: AS-18 */
RIG_TEST(test_an_emergency_stop_with_force_waits_for_nobody, r)
{
    struct claimed_task x;
    put_plan(r, pair);
    start_run(r, "run", "pair");
    begin_step(r, "run", "x", &x);
    assert_int_equal(signal_run(r, "run", SIGNAL_EMERGENCY_STOP, "{\"reason\":\"fire\",\"forceKill\":true}"),
                     ERR_OK);
    assert_story(r, "run", "RunQueued RunStarted StepStarted:x:1 StepFailed:x:1 RunCancelled");
    assert_true(
        says(last_payload(r, "run"), "{\"reason\":\"fire\",\"emergencyStop\":true,\"forceKill\":true}"));
    assert_int_equal(succeed_step(r, &x), ERR_LEASE_LOST);
}

RIG_TEST(test_an_emergency_stop_without_force_gives_a_second_and_no_more, r)
{
    struct claimed_task x;
    put_plan(r, pair);
    start_run(r, "run", "pair");
    begin_step(r, "run", "x", &x);
    assert_int_equal(signal_run(r, "run", SIGNAL_EMERGENCY_STOP, "{\"reason\":\"fire\"}"), ERR_OK);
    assert_true(rig_work(r, &heartbeat_command_type, &x).cancel);
    rig_pass(r, 600);
    /* sent again in haste: the first one's second counts */
    assert_int_equal(signal_run(r, "run", SIGNAL_EMERGENCY_STOP, "{\"reason\":\"fire!\"}"), ERR_OK);
    assert_status(r, "run", "RUNNING");
    rig_pass(r, 401);
    rig_step(r);
    assert_status(r, "run", "CANCELLED");
    assert_true(says(last_payload(r, "run"), "\"emergencyStop\":true,\"forceKill\":false"));
}

RIG_TEST(test_an_emergency_stop_overtakes_a_cancel, r)
{
    struct claimed_task x;
    put_plan(r, pair);
    start_run(r, "run", "pair");
    begin_step(r, "run", "x", &x);
    signal_run(r, "run", SIGNAL_CANCEL, NULL);
    assert_int_equal(signal_run(r, "run", SIGNAL_EMERGENCY_STOP, "{\"reason\":\"fire\",\"forceKill\":true}"),
                     ERR_OK);
    assert_status(r, "run", "CANCELLED");
    rig_pass(r, 1000000); /* nothing is left of the cancel */
    rig_step(r);
    assert_story(r, "run", "RunQueued RunStarted StepStarted:x:1 StepFailed:x:1 RunCancelled");
}

/* A worker that is lost after CANCEL: the run ends then, its tries are not used. */
RIG_TEST(test_a_worker_lost_after_cancel_ends_the_run, r)
{
    struct claimed_task t;
    r->settings.engine_cancel_grace_ms = 3600000;
    put_plan(r, tries);
    start_run(r, "run", "tries");
    begin_step(r, "run", "a", &t);
    signal_run(r, "run", SIGNAL_CANCEL, NULL);
    rig_pass(r, r->settings.queue_lease_ms + 1);
    rig_step(r);
    assert_story(r, "run", "RunQueued RunStarted StepStarted:a:1 StepFailed:a:1 RunCancelled");
    assert_true(none_ready(r));
}

/* --- steps ---------------------------------------------------------------------------------------------- */

/* [SIG-005]: the whole count of attempts anew, numbers go on */
RIG_TEST(test_a_retried_step_gets_its_attempts_anew, r)
{
    put_plan(r, tries);
    start_run(r, "run", "tries");
    for (int i = 0; i < 2; i++) {
        do_step(r, "run", "a", false);
        rig_pass(r, 100000);
    }
    assert_int_equal(run_of(r, "run").failed_count, 1);
    assert_int_equal(signal_run(r, "run", SIGNAL_RETRY_STEP, "{\"stepId\":\"a\"}"), ERR_OK);
    assert_int_equal(run_of(r, "run").failed_count, 0);
    do_step(r, "run", "a", false);
    assert_true(none_ready(r));
    assert_int_equal(signal_run(r, "run", SIGNAL_RETRY_STEP, "{\"stepId\":\"a\"}"), ERR_OK); /* at once */
    do_step(r, "run", "a", true);
    do_step(r, "run", "b", true); /* what depends on it is armed again */
    assert_status(r, "run", "COMPLETED");
    assert_true(strstr(story_of(r, "run"), "StepStarted:a:4 StepCompleted:a:4 StepStarted:b:1"));
}

/* AS-08: force lifts the limit of tries, and nothing else. */
RIG_TEST(test_a_step_is_tried_a_thousand_times_and_more_by_force_only, r)
{
    const struct run_row run = {.state = RUN_RUNNING};
    struct run_step_row step = {.state = STEP_FAILED};
    struct applied_signal s = {.type = SIGNAL_RETRY_STEP};
    struct err err;
    for (int force = 0; force < 2; force++) {
        struct str payload = force ? STR("{\"stepId\":\"a\",\"force\":true}") : STR("{\"stepId\":\"a\"}");
        assert_int_equal(json_parse(r->arena, payload, &s.payload, &err), ERR_OK);
        for (step.attempt = 999; step.attempt <= 1001; step.attempt++)
            assert_int_equal(signal_is_possible(&run, &step, &s, &err),
                             step.attempt == 999 || force ? ERR_OK : ERR_STEP_TERMINAL);
    }
    step.state = STEP_RUNNING;
    assert_int_equal(signal_is_possible(&run, &step, &s, &err), ERR_STEP_NOT_TERMINAL);
}

/* [SIG-005]: also of one that waits for its next try */
RIG_TEST(test_a_step_retried_during_its_pause_gets_its_attempts_anew, r)
{
    put_plan(r, tries);
    start_run(r, "run", "tries");
    do_step(r, "run", "a", false);
    assert_true(none_ready(r));
    assert_int_equal(signal_run(r, "run", SIGNAL_RETRY_STEP, "{\"stepId\":\"a\"}"), ERR_OK);
    do_step(r, "run", "a", false); /* at once; one more is left */
    assert_int_equal(run_of(r, "run").failed_count, 0);
    rig_pass(r, 100000);
    do_step(r, "run", "a", false);
    assert_int_equal(run_of(r, "run").failed_count, 1);
    rig_expect_sound(r);
}

RIG_TEST(test_a_step_retried_while_paused_starts_when_resumed, r)
{
    put_plan(r, pair);
    start_run(r, "run", "pair");
    do_step(r, "run", "x", false);
    signal_run(r, "run", SIGNAL_PAUSE, NULL);
    assert_int_equal(signal_run(r, "run", SIGNAL_RETRY_STEP, "{\"stepId\":\"x\"}"), ERR_OK);
    assert_true(none_ready(r));
    rig_expect_sound(r);
    signal_run(r, "run", SIGNAL_RESUME, NULL);
    do_step(r, "run", "x", true); /* at once */
    do_step(r, "run", "y", true);
    assert_status(r, "run", "COMPLETED");
}

/* The negative control of the one before: what nobody asked for waits its time, paused or not. */
RIG_TEST(test_a_step_that_waits_for_its_next_try_does_so_behind_a_pause_too, r)
{
    put_plan(r, tries);
    start_run(r, "run", "tries");
    do_step(r, "run", "a", false);
    signal_run(r, "run", SIGNAL_PAUSE, NULL);
    signal_run(r, "run", SIGNAL_RESUME, NULL);
    assert_true(none_ready(r));
    rig_pass(r, 100000);
    do_step(r, "run", "a", true);
}

/* [SIG-010]: a skipped step satisfies what depends on it */
RIG_TEST(test_a_skipped_step_counts_as_done, r)
{
    put_plan(r, chain);
    start_run(r, "run", "chain");
    assert_int_equal(signal_run(r, "run", SIGNAL_SKIP_STEP, "{\"stepId\":\"b\",\"reason\":\"not today\"}"),
                     ERR_OK);
    assert_true(says(last_payload(r, "run"), "not today"));
    assert_int_equal(signal_run(r, "run", SIGNAL_SKIP_STEP, "{\"stepId\":\"a\"}"), ERR_OK);
    assert_step(r, "run", "a", "SKIPPED");
    do_step(r, "run", "c", true);
    assert_status(r, "run", "COMPLETED");
    assert_story(r, "run",
                 "RunQueued RunStarted StepSkipped:b:1 StepSkipped:a:1 StepStarted:c:1 StepCompleted:c:1 "
                 "RunCompleted");
}

RIG_TEST(test_a_run_whose_steps_are_all_skipped_is_completed, r)
{
    put_plan(r, pair);
    start_run(r, "run", "pair");
    struct claimed_task x = claim_step(r, "run", "x");
    signal_run(r, "run", SIGNAL_SKIP_STEP, "{\"stepId\":\"x\"}");
    assert_int_equal(rig_work(r, &start_command_type, &x).code, ERR_LEASE_LOST);
    signal_run(r, "run", SIGNAL_SKIP_STEP, "{\"stepId\":\"y\"}");
    assert_status(r, "run", "COMPLETED");
    assert_true(none_ready(r));
}

/* [SIG-008]: for one attempt only */
RIG_TEST(test_an_override_holds_for_the_next_attempt_only, r)
{
    struct claimed_task t;
    put_plan(r, tries);
    start_run(r, "run", "tries");
    assert_int_equal(
        signal_run(r, "run", SIGNAL_INJECT_OVERRIDE, "{\"stepId\":\"a\",\"override\":{\"x\": 1}}"), ERR_OK);
    begin_step(r, "run", "a", &t);
    assert_true(str_is(step_of(r, "run", "a").override, "{\"x\": 1}"));
    fail_step(r, &t, true);
    assert_null(step_of(r, "run", "a").override.ptr);
    assert_int_equal(
        signal_run(r, "run", SIGNAL_INJECT_OVERRIDE, "{\"stepId\":\"a\",\"override\":{\"x\":2}}"), ERR_OK);
    rig_pass(r, 100000);
    begin_step(r, "run", "a", &t);
    assert_true(str_is(step_of(r, "run", "a").override, "{\"x\":2}"));
    succeed_step(r, &t);
    assert_null(step_of(r, "run", "a").override.ptr);
}

/* [SIG-011]: stays */
RIG_TEST(test_a_target_stays_with_its_step, r)
{
    put_plan(r, tries);
    start_run(r, "run", "tries");
    assert_int_equal(
        signal_run(r, "run", SIGNAL_UPDATE_TARGET, "{\"stepId\":\"a\",\"newTarget\":{\"db\":\"two\"}}"),
        ERR_OK);
    do_step(r, "run", "a", false);
    assert_true(str_is(step_of(r, "run", "a").target, "{\"db\":\"two\"}"));
    assert_null(step_of(r, "run", "b").target.ptr);
}

/* A worker that has claimed a step and not begun it has the old words: the step is given anew. */
RIG_TEST(test_a_claimed_step_is_given_anew_with_its_override, r)
{
    put_plan(r, chain);
    start_run(r, "run", "chain");
    struct claimed_task t = claim_step(r, "run", "a");
    assert_int_equal(
        signal_run(r, "run", SIGNAL_INJECT_OVERRIDE, "{\"stepId\":\"a\",\"override\":{\"x\":1}}"), ERR_OK);
    assert_int_equal(rig_work(r, &start_command_type, &t).code, ERR_LEASE_LOST);
    do_step(r, "run", "a", true);
    assert_story(r, "run", "RunQueued RunStarted StepStarted:a:1 StepCompleted:a:1");
}

/* [SIG-007]: RFC 7396 */
RIG_TEST(test_params_are_merged, r)
{
    put_plan(r, chain);
    assert_int_equal(
        start_run_of(r, TENANT, "run", "chain", "{\"a\":1,\"b\":{\"c\":2,\"d\":3}}")->base.result, ERR_OK);
    assert_int_equal(
        signal_run(r, "run", SIGNAL_UPDATE_PARAMS, "{\"params\":{\"a\":null,\"b\":{\"c\":9},\"e\":[1]}}"),
        ERR_OK);
    assert_true(str_is(run_of(r, "run").params, "{\"b\":{\"c\":9,\"d\":3},\"e\":[1]}"));
    start_run(r, "bare", "chain");
    assert_int_equal(signal_run(r, "bare", SIGNAL_UPDATE_PARAMS, "{\"params\":{\"a\":null,\"b\":1}}"),
                     ERR_OK);
    assert_true(str_is(run_of(r, "bare").params, "{\"b\":1}"));
    r->settings.jobs_payload_max_bytes = 10;
    assert_int_equal(signal_run(r, "bare", SIGNAL_UPDATE_PARAMS, "{\"params\":{\"long\":\"aaaaaaaaaa\"}}"),
                     ERR_SIGNAL_INVALID_PAYLOAD);
    assert_true(str_is(run_of(r, "bare").params, "{\"b\":1}"));
}

/* --- the run again -------------------------------------------------------------------------------------- */

/* [SIG-006] [SIG-021] [SIG-022] [SIG-023] */
RIG_TEST(test_a_retried_run_is_a_new_one_and_the_first_stays_as_it_was, r)
{
    put_plan(r, chain);
    start_run_of(r, TENANT, "run", "chain", "{\"a\":1}");
    do_step(r, "run", "a", false);
    assert_status(r, "run", "FAILED");
    const struct run_row before = run_of(r, "run");
    const char *story = story_of(r, "run");
    struct signal_command *c = send_signal(r, &(struct sent){.run = "run", .type = SIGNAL_RETRY_RUN});
    assert_int_equal(c->answer.refusal.code, ERR_OK);
    const struct decision_row d = decision_by(r, &c->policy_id);
    assert_true(str_is(d.new_run, "again-run"));
    const struct run_row again = run_of(r, "again-run"), after = run_of(r, "run");
    assert_true(str_is(again.original, "run") && str_is(again.params, "{\"a\":1}"));
    assert_true(str_equal(again.project, before.project) && str_equal(again.plan, before.plan));
    assert_story(r, "run", story);
    assert_int_equal(after.state, before.state);
    assert_int_equal(after.last_seq, before.last_seq);
    do_step(r, "again-run", "a", true);
    do_step(r, "again-run", "b", true);
    do_step(r, "again-run", "c", true);
    assert_status(r, "again-run", "COMPLETED");
    assert_int_equal(signal_run(r, "again-run", SIGNAL_RETRY_RUN, NULL), ERR_RUN_TERMINAL);
    assert_int_equal(signal_run(r, "again-run", SIGNAL_RETRY_RUN, "{\"force\":true}"), ERR_OK);
    assert_true(str_is(run_of(r, "again-again-run").original, "again-run"));
}

/* [SIG-009] [SIG-027] [SIG-033] AS-16 */
RIG_TEST(test_an_escalation_is_an_event_and_an_alert_and_changes_no_state, r)
{
    struct alert_row alert;
    static const char *const levels[] = {"INFO", "WARNING", "CRITICAL", "P1"};
    put_plan(r, chain);
    start_run(r, "run", "chain");
    signal_run(r, "run", SIGNAL_CANCEL, NULL);
    for (int i = 0; i < 4; i++) {
        struct signal_command *c = send_signal(
            r, &(struct sent){
                   .run = "run",
                   .type = SIGNAL_ESCALATE_ALERT,
                   .roles = "System",
                   .payload = arena_printf(r->arena, "{\"level\":\"%s\",\"note\":\"look\"}", levels[i]).ptr});
        assert_int_equal(c->answer.refusal.code, ERR_OK);
        assert_int_equal(count_alerts(r, ALERT_ESCALATION, &alert), i + 1);
        assert_int_equal(alert.severity, i);
        assert_int_equal(alert.seq, 3 + i);
        assert_true(str_is(alert.detail, "look"));
        assert_true(says(last_payload(r, "run"), levels[i]));
    }
    assert_status(r, "run", "CANCELLED");
    assert_story(
        r, "run",
        "RunQueued RunCancelled ALERT_ESCALATED:3 ALERT_ESCALATED:4 ALERT_ESCALATED:5 ALERT_ESCALATED:6");
}

/* --- the table ------------------------------------------------------------------------------------------ */

enum when { PENDING, RUNNING, PAUSED, STOPPING, COMPLETED, FAILED, CANCELLED, WHENS };
static const char *const when_names[] = {"PENDING",   "RUNNING", "PAUSED",   "STOPPING",
                                         "COMPLETED", "FAILED",  "CANCELLED"};

/* Steps: p is PENDING, n RUNNING, s SUCCESS, f FAILED, k SKIPPED; "hold" keeps the run from ending. */
static const char table_plan[] =
    PLAN("table", "\"onFailure\":\"wait\"," STEPS(STEP("s", "") "," STEP("f", "") "," STEP("k", "") "," STEP(
                      "n", "") "," STEP("p", "\"n\"")));

static void do_table_steps(struct rig *r, const char *run)
{
    do_step(r, run, "s", true);
    do_step(r, run, "f", false);
    assert_int_equal(signal_run(r, run, SIGNAL_SKIP_STEP, "{\"stepId\":\"k\"}"), ERR_OK);
}

/* A run in this status; its steps are in all of theirs unless it is pending or was completed. */
static void bring(struct rig *r, const char *run, enum when w)
{
    struct claimed_task t;
    start_run(r, run, w == FAILED ? "fails" : "table");
    if (w == PENDING)
        return;
    if (w == FAILED) {
        do_step(r, run, "f", false);
        return;
    }
    do_table_steps(r, run);
    begin_step(r, run, "n", &t);
    if (w == PAUSED)
        assert_int_equal(signal_run(r, run, SIGNAL_PAUSE, NULL), ERR_OK);
    if (w == STOPPING || w == CANCELLED)
        assert_int_equal(signal_run(r, run, SIGNAL_CANCEL, NULL), ERR_OK);
    if (w != COMPLETED && w != CANCELLED)
        return;
    assert_int_equal(succeed_step(r, &t), ERR_OK);
    if (w == CANCELLED)
        return;
    do_step(r, run, "p", true);
    assert_int_equal(signal_run(r, run, SIGNAL_RETRY_STEP, "{\"stepId\":\"f\"}"), ERR_OK);
    do_step(r, run, "f", true);
}

#define OK_  ERR_OK
#define TERM ERR_RUN_TERMINAL
#define NOT_ ERR_STEP_NOT_TERMINAL
#define DONE ERR_STEP_TERMINAL

/* AS-07, AS-08, AS-14, AS-17, AS-25: signal, its payload, and the code in a run that is PENDING, RUNNING,
 * PAUSED, STOPPING, COMPLETED, FAILED, CANCELLED */
static const struct {
    enum signal_type type;
    const char *payload;
    enum err_code codes[WHENS];
} table[] = {
    {SIGNAL_PAUSE, "{}", {OK_, OK_, OK_, TERM, TERM, TERM, TERM}},
    {SIGNAL_RESUME, "{}", {OK_, OK_, OK_, TERM, TERM, TERM, TERM}},
    {SIGNAL_CANCEL, "{}", {OK_, OK_, OK_, OK_, TERM, TERM, TERM}},
    {SIGNAL_EMERGENCY_STOP, "{\"reason\":\"r\"}", {OK_, OK_, OK_, OK_, TERM, TERM, TERM}},
    {SIGNAL_UPDATE_PARAMS, "{\"params\":{}}", {OK_, OK_, OK_, TERM, TERM, TERM, TERM}},
    {SIGNAL_ESCALATE_ALERT, "{\"level\":\"INFO\"}", {OK_, OK_, OK_, OK_, OK_, OK_, OK_}},
    {SIGNAL_RETRY_RUN, "{}", {NOT_, NOT_, NOT_, NOT_, TERM, OK_, OK_}},
    {SIGNAL_RETRY_RUN, "{\"force\":true}", {NOT_, NOT_, NOT_, NOT_, OK_, OK_, OK_}},
    {SIGNAL_RETRY_STEP, "{\"stepId\":\"f\"}", {NOT_, OK_, OK_, TERM, TERM, TERM, TERM}},
    {SIGNAL_RETRY_STEP, "{\"stepId\":\"f\",\"force\":true}", {NOT_, OK_, OK_, TERM, TERM, TERM, TERM}},
    {SIGNAL_RETRY_STEP, "{\"stepId\":\"p\"}", {NOT_, NOT_, NOT_, TERM, TERM, TERM, TERM}},
    {SIGNAL_RETRY_STEP, "{\"stepId\":\"n\"}", {NOT_, NOT_, NOT_, TERM, TERM, TERM, TERM}},
    {SIGNAL_RETRY_STEP, "{\"stepId\":\"s\"}", {NOT_, DONE, DONE, TERM, TERM, TERM, TERM}},
    {SIGNAL_RETRY_STEP, "{\"stepId\":\"k\"}", {NOT_, DONE, DONE, TERM, TERM, TERM, TERM}},
    {SIGNAL_SKIP_STEP, "{\"stepId\":\"p\"}", {OK_, OK_, NOT_, TERM, TERM, TERM, TERM}},
    {SIGNAL_SKIP_STEP, "{\"stepId\":\"n\"}", {OK_, NOT_, NOT_, TERM, TERM, TERM, TERM}},
    {SIGNAL_SKIP_STEP, "{\"stepId\":\"s\"}", {OK_, DONE, DONE, TERM, TERM, TERM, TERM}},
    {SIGNAL_SKIP_STEP, "{\"stepId\":\"f\"}", {OK_, DONE, DONE, TERM, TERM, TERM, TERM}},
    {SIGNAL_SKIP_STEP, "{\"stepId\":\"k\"}", {OK_, DONE, DONE, TERM, TERM, TERM, TERM}},
    {SIGNAL_INJECT_OVERRIDE, "{\"stepId\":\"p\",\"override\":{}}", {OK_, OK_, OK_, TERM, TERM, TERM, TERM}},
    {SIGNAL_INJECT_OVERRIDE, "{\"stepId\":\"n\",\"override\":{}}", {OK_, NOT_, NOT_, TERM, TERM, TERM, TERM}},
    {SIGNAL_INJECT_OVERRIDE, "{\"stepId\":\"s\",\"override\":{}}", {OK_, DONE, DONE, TERM, TERM, TERM, TERM}},
    {SIGNAL_INJECT_OVERRIDE, "{\"stepId\":\"f\",\"override\":{}}", {OK_, OK_, OK_, TERM, TERM, TERM, TERM}},
    {SIGNAL_INJECT_OVERRIDE, "{\"stepId\":\"k\",\"override\":{}}", {OK_, DONE, DONE, TERM, TERM, TERM, TERM}},
    {SIGNAL_UPDATE_TARGET, "{\"stepId\":\"p\",\"newTarget\":{}}", {OK_, OK_, OK_, TERM, TERM, TERM, TERM}},
    {SIGNAL_UPDATE_TARGET, "{\"stepId\":\"n\",\"newTarget\":{}}", {OK_, NOT_, NOT_, TERM, TERM, TERM, TERM}},
    {SIGNAL_UPDATE_TARGET, "{\"stepId\":\"s\",\"newTarget\":{}}", {OK_, DONE, DONE, TERM, TERM, TERM, TERM}},
    {SIGNAL_UPDATE_TARGET, "{\"stepId\":\"f\",\"newTarget\":{}}", {OK_, OK_, OK_, TERM, TERM, TERM, TERM}},
    {SIGNAL_UPDATE_TARGET, "{\"stepId\":\"k\",\"newTarget\":{}}", {OK_, DONE, DONE, TERM, TERM, TERM, TERM}},
};

/* What is refused is recorded and changes nothing: AS-10. */
static void send_by_table(struct rig *r, const char *run, size_t line, enum when w)
{
    const struct run_row before = run_of(r, run);
    struct signal_command *c = send_signal(
        r, &(struct sent){.run = run,
                          .type = table[line].type,
                          .payload = table[line].payload,
                          .reason = "because",
                          .roles = table[line].type == SIGNAL_ESCALATE_ALERT ? "System" : "Admin"});
    if (c->answer.refusal.code != table[line].codes[w])
        print_error("%s %s in %s: %s\n", signal_type_text(table[line].type), table[line].payload,
                    when_names[w], err_wire(c->answer.refusal.code));
    assert_int_equal(c->base.result, ERR_OK);
    assert_int_equal(c->answer.refusal.code, table[line].codes[w]);
    const struct decision_row d = decision_by(r, &c->policy_id);
    bool done = table[line].codes[w] == ERR_OK;
    assert_int_equal(d.state, DECISION_ACCEPTED);
    assert_true(d.processed_ms != 0);
    assert_int_equal(d.succeeded, done);
    if (done) {
        assert_null(d.error_code.ptr);
        return;
    }
    assert_true(str_is(d.error_code, err_wire(table[line].codes[w])));
    const struct run_row after = run_of(r, run);
    assert_int_equal(after.last_seq, before.last_seq);
    assert_int_equal(after.state, before.state);
}

/* [SIG-029] [SIG-030] [SIG-031] [SIG-032] [SIG-126] [SIG-127] [SIG-128] */
RIG_TEST(test_every_signal_in_every_status, r)
{
    r->settings.engine_cancel_grace_ms = 3600000;
    put_plan(r, table_plan);
    put_plan(r, PLAN("fails", STEPS(STEP("f", "") "," STEP("s", "\"f\"") "," STEP("k", "\"f\"") "," STEP(
                                  "n", "\"f\"") "," STEP("p", "\"f\""))));
    for (size_t i = 0; i < LENGTH_OF(table); i++)
        for (int w = 0; w < WHENS; w++) {
            const char *run = arena_printf(r->arena, "run-%zu-%d", i, w).ptr;
            bring(r, run, (enum when)w);
            send_by_table(r, run, i, (enum when)w);
            /* whatever is left of it is out of the way of the next */
            for (int k = 0; k < 2; k++) {
                const char *left = k ? arena_printf(r->arena, "again-%s", run).ptr : run;
                struct run_row row;
                if (find_run(r, left, &row) && row.state < RUN_COMPLETED)
                    assert_int_equal(
                        signal_run(r, left, SIGNAL_EMERGENCY_STOP, "{\"reason\":\"r\",\"forceKill\":true}"),
                        ERR_OK);
            }
        }
}

/* AS-08: force lifts the limit of attempts, and nothing else; AS-11 */
RIG_TEST(test_unknown_steps_and_runs, r)
{
    put_plan(r, chain);
    start_run(r, "run", "chain");
    assert_int_equal(signal_run(r, "run", SIGNAL_RETRY_STEP, "{\"stepId\":\"nowhere\"}"),
                     ERR_SIGNAL_INVALID_PAYLOAD);
    assert_int_equal(signal_run(r, "nowhere", SIGNAL_PAUSE, NULL), ERR_RUN_HIDDEN);
    assert_int_equal(count_rows(r, &table_decision_row), 0);
}

int main(void)
{
    return rig_run_all();
}
