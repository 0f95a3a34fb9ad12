/* Runs that Weir executes: which step gets a task when, what is written of it, how it ends. */
#include "unit/engine/engine_rig.h"

#include "engine/producer.h"

#include "base/banned.h"

#define PLAN(id, rest)  "{\"planId\":\"" id "\",\"planVersion\":\"1\"," rest "}"
#define STEP(id, needs) "{\"stepId\":\"" id "\",\"dependsOn\":[" needs "]}"
#define STEPS(list)     "\"steps\":[" list "]"

static const char chain[] = PLAN("chain", STEPS(STEP("a", "") "," STEP("b", "\"a\"") "," STEP("c", "\"b\"")));
static const char diamond[] =
    PLAN("diamond", STEPS(STEP("top", "") "," STEP("left", "\"top\"") "," STEP("right", "\"top\"") "," STEP(
                        "bottom", "\"left\",\"right\"")));
static const char two_tries[] =
    PLAN("tries", STEPS("{\"stepId\":\"a\",\"maxAttempts\":3}," STEP("b", "\"a\"")));
static const char branches[] =
    PLAN("branches", STEPS(STEP("bad", "") "," STEP("after_bad", "\"bad\"") "," STEP("good", "") "," STEP(
                         "after_good", "\"good\"")));
static const char waiting[] =
    PLAN("waiting", "\"onFailure\":\"wait\"," STEPS(STEP("a", "") "," STEP("b", "\"a\"")));

static bool none_ready(struct rig *r)
{
    return rig_claim_count(r, "w", 1) == 0;
}

/* --- plans and runs ------------------------------------------------------------------------------------- */

RIG_TEST(test_the_same_plan_again_is_the_same_plan_and_other_content_is_refused, r)
{
    struct plan_command *first = put_plan_of(r, TENANT, chain);
    assert_true(first->created);
    rig_pass(r, 1000);
    struct plan_command *again = put_plan_of(r, TENANT, chain);
    assert_int_equal(again->base.result, ERR_OK);
    assert_false(again->created);
    assert_int_equal(again->created_ms, first->created_ms);
    assert_int_equal(put_plan_of(r, TENANT, PLAN("chain", STEPS(STEP("z", ""))))->base.result,
                     ERR_PLAN_CONFLICT);
    assert_true(
        put_plan_of(r, "other", PLAN("chain", STEPS(STEP("z", ""))))->created); /* of another tenant */
}

RIG_TEST(test_the_same_run_again_is_the_same_run_and_anything_else_is_refused, r)
{
    put_plan(r, chain);
    start_run(r, "run", "chain");
    struct run_command *again = start_run_of(r, TENANT, "run", "chain", NULL);
    assert_int_equal(again->base.result, ERR_OK);
    assert_false(again->created);
    assert_int_equal(again->status, RUN_PENDING);
    assert_int_equal(start_run_of(r, TENANT, "run", "chain", "{\"a\":1}")->base.result, ERR_RUN_CONFLICT);
    assert_int_equal(start_run_of(r, "other", "run", "chain", NULL)->base.result, ERR_RUN_CONFLICT);
    assert_int_equal(start_run_of(r, TENANT, "new", "none", NULL)->base.result, ERR_PLAN_NOT_FOUND);
    assert_int_equal(start_run_of(r, "other", "new", "chain", NULL)->base.result, ERR_PLAN_NOT_FOUND);
    append_good(r, "outside", "RunStarted", NULL, 1);
    assert_int_equal(start_run_of(r, TENANT, "outside", "chain", NULL)->base.result, ERR_RUN_CONFLICT);
    assert_story(r, "run", "RunQueued");
    do_step(r, "run", "a", true);
    assert_int_equal(start_run_of(r, TENANT, "run", "chain", NULL)->status, RUN_RUNNING);
}

/* --- order ---------------------------------------------------------------------------------------------- */

RIG_TEST(test_a_chain_goes_step_by_step, r)
{
    put_plan(r, chain);
    start_run(r, "run", "chain");
    assert_status(r, "run", "PENDING");
    assert_int_equal(count_ready(r), 1);
    do_step(r, "run", "a", true);
    assert_status(r, "run", "RUNNING");
    assert_int_equal(count_ready(r), 1);
    do_step(r, "run", "b", true);
    do_step(r, "run", "c", true);
    assert_status(r, "run", "COMPLETED");
    assert_true(none_ready(r));
    assert_story(r, "run",
                 "RunQueued RunStarted StepStarted:a:1 StepCompleted:a:1 StepStarted:b:1 StepCompleted:b:1 "
                 "StepStarted:c:1 StepCompleted:c:1 RunCompleted");
    assert_true(str_is(step_of(r, "run", "b").result, "{\"n\":1}")); /* for those that follow */
}

/* [RUN-045]: and every event of ours has a v4 id of its own */
RIG_TEST(test_our_events_have_the_full_envelope, r)
{
    size_t count;
    put_plan(r, chain);
    start_run(r, "run", "chain");
    do_step(r, "run", "a", true);
    const struct run_event_row *e = events_of(r, "run", &count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(e[i].engine_attempt, 1);
        assert_int_equal(e[i].event_id.len, 16);
        assert_int_equal((unsigned char)e[i].event_id.ptr[6] >> 4, 4);
        assert_true(e[i].emitted.len >= 20 && e[i].emitted.ptr[e[i].emitted.len - 1] == 'Z');
        for (size_t k = 0; k < i; k++)
            assert_false(str_equal(e[i].event_id, e[k].event_id));
    }
    assert_true(str_is(e[3].payload, "{\"output\":{\"n\":1}}")); /* [RUN-061] */
    assert_null(e[1].payload.ptr);                               /* [RUN-062] */
}

RIG_TEST(test_a_diamond_joins_when_both_sides_are_done, r)
{
    struct claimed_task left, right;
    put_plan(r, diamond);
    start_run(r, "run", "diamond");
    do_step(r, "run", "top", true);
    assert_int_equal(count_ready(r), 2);
    begin_step(r, "run", "left", &left);
    begin_step(r, "run", "right", &right); /* at the same time */
    assert_int_equal(succeed_step(r, &right), ERR_OK);
    assert_true(none_ready(r));
    assert_int_equal(succeed_step(r, &left), ERR_OK);
    do_step(r, "run", "bottom", true);
    assert_status(r, "run", "COMPLETED");
}

/* Both sides end in one batch. */
RIG_TEST(test_a_join_is_armed_once_however_its_sides_end, r)
{
    struct claimed_task left, right;
    put_plan(r, diamond);
    start_run(r, "run", "diamond");
    do_step(r, "run", "top", true);
    begin_step(r, "run", "left", &left);
    begin_step(r, "run", "right", &right);
    rig_post_work(r, &finish_command_type, &left, true);
    rig_post_work(r, &finish_command_type, &right, true);
    rig_step(r);
    assert_int_equal(count_ready(r), 1);
    do_step(r, "run", "bottom", true);
    assert_status(r, "run", "COMPLETED");
}

/* --- failure -------------------------------------------------------------------------------------------- */

RIG_TEST(test_a_failed_attempt_is_followed_by_the_next_after_a_pause, r)
{
    size_t count;
    r->settings.jobs_retry_base_ms = 1000;
    r->settings.jobs_retry_jitter = 0;
    put_plan(r, two_tries);
    start_run(r, "run", "tries");
    do_step(r, "run", "a", false);
    assert_step(r, "run", "a", "FAILED");
    assert_true(none_ready(r)); /* not yet */
    rig_pass(r, 999);
    assert_true(none_ready(r));
    rig_pass(r, 1);
    do_step(r, "run", "a", false);
    rig_pass(r, 1999); /* twice as long */
    assert_true(none_ready(r));
    rig_pass(r, 1);
    do_step(r, "run", "a", true);
    do_step(r, "run", "b", true);
    assert_status(r, "run", "COMPLETED");
    assert_story(
        r, "run",
        "RunQueued RunStarted StepStarted:a:1 StepFailed:a:1 StepStarted:a:2 StepFailed:a:2 StepStarted:a:3 "
        "StepCompleted:a:3 StepStarted:b:1 StepCompleted:b:1 RunCompleted");
    const struct run_event_row *e = events_of(r, "run", &count);
    assert_true(str_is(e[3].payload, "{\"reason\":\"broken\",\"error\":{\"code\":\"broken\",\"message\":\"it "
                                     "broke\",\"retryable\":true}}"));
}

RIG_TEST(test_used_up_attempts_fail_the_run, r)
{
    put_plan(r, two_tries);
    start_run(r, "run", "tries");
    for (int i = 0; i < 3; i++) {
        do_step(r, "run", "a", false);
        rig_pass(r, 100000);
    }
    assert_status(r, "run", "FAILED");
    assert_step(r, "run", "b", "PENDING");
    assert_true(none_ready(r));
}

RIG_TEST(test_what_is_not_retryable_ends_the_attempts, r)
{
    struct claimed_task t;
    put_plan(r, two_tries);
    start_run(r, "run", "tries");
    begin_step(r, "run", "a", &t);
    assert_int_equal(fail_step(r, &t, false), ERR_OK);
    assert_status(r, "run", "FAILED");
    assert_int_equal(step_of(r, "run", "a").attempt, 1);
}

/* Other branches go on; the run fails once nothing else runs or can start. */
RIG_TEST(test_other_branches_go_on_before_the_run_fails, r)
{
    struct claimed_task bad, good;
    put_plan(r, branches);
    start_run(r, "run", "branches");
    begin_step(r, "run", "bad", &bad);
    begin_step(r, "run", "good", &good);
    fail_step(r, &bad, true);
    assert_status(r, "run", "RUNNING");
    succeed_step(r, &good);
    assert_status(r, "run", "RUNNING");
    do_step(r, "run", "after_good", true);
    assert_status(r, "run", "FAILED");
    assert_step(r, "run", "after_bad", "PENDING");
    assert_step(r, "run", "after_good", "SUCCESS");
}

RIG_TEST(test_with_wait_the_run_stays_for_a_retry, r)
{
    put_plan(r, waiting);
    start_run(r, "run", "waiting");
    do_step(r, "run", "a", false);
    assert_status(r, "run", "RUNNING");
    assert_true(none_ready(r));
    rig_pass(r, 10000000);
    rig_step(r);
    assert_status(r, "run", "RUNNING");
    assert_int_equal(signal_run(r, "run", SIGNAL_RETRY_STEP, "{\"stepId\":\"a\"}"), ERR_OK);
    do_step(r, "run", "a", true);
    do_step(r, "run", "b", true);
    assert_status(r, "run", "COMPLETED");
}

/* --- workers that go away ------------------------------------------------------------------------------- */

RIG_TEST(test_a_lost_lease_while_running_is_a_failed_attempt, r)
{
    struct claimed_task t;
    put_plan(r, two_tries);
    start_run(r, "run", "tries");
    begin_step(r, "run", "a", &t);
    rig_pass(r, r->settings.queue_lease_ms + 1);
    rig_step(r);
    assert_step(r, "run", "a", "FAILED");
    assert_true(memmem(step_of(r, "run", "a").error.ptr, step_of(r, "run", "a").error.len, "worker_lost",
                       11) != NULL);
    assert_int_equal(succeed_step(r, &t), ERR_LEASE_LOST); /* too late: nothing changes */
    rig_pass(r, 100000);
    do_step(r, "run", "a", true);
    do_step(r, "run", "b", true);
    assert_status(r, "run", "COMPLETED");
    assert_true(
        strstr(story_of(r, "run"), "StepStarted:a:1 StepFailed:a:1 StepStarted:a:2 StepCompleted:a:2"));
}

RIG_TEST(test_a_lease_that_ends_before_the_start_is_no_attempt, r)
{
    put_plan(r, chain);
    start_run(r, "run", "chain");
    struct claimed_task t = claim_step(r, "run", "a");
    rig_pass(r, r->settings.queue_lease_ms + 1);
    rig_step(r);
    assert_int_equal(rig_work(r, &start_command_type, &t).code, ERR_LEASE_LOST);
    assert_story(r, "run", "RunQueued");
    t = claim_step(r, "run", "a");
    assert_int_equal(rig_work(r, &release_command_type, &t).code, ERR_OK);
    do_step(r, "run", "a", true);
    assert_story(r, "run", "RunQueued RunStarted StepStarted:a:1 StepCompleted:a:1");
}

RIG_TEST(test_a_step_that_runs_too_long_fails_by_timeout, r)
{
    struct claimed_task t;
    r->settings.engine_step_timeout_ms = 60000;
    put_plan(r, two_tries);
    start_run(r, "run", "tries");
    begin_step(r, "run", "a", &t);
    for (int i = 0; i < 5; i++) {
        rig_pass(r, 11000);
        rig_work(r, &heartbeat_command_type, &t);
    }
    assert_step(r, "run", "a", "RUNNING");
    rig_pass(r, 6000);
    rig_step(r);
    assert_step(r, "run", "a", "FAILED");
    assert_true(
        memmem(step_of(r, "run", "a").error.ptr, step_of(r, "run", "a").error.len, "\"timeout\"", 9) != NULL);
    struct worker_item beat = rig_work(r, &heartbeat_command_type, &t);
    assert_true(beat.cancel || beat.code == ERR_LEASE_LOST);
    rig_pass(r, 100000);
    do_step(r, "run", "a", true); /* it had tries left */
}

RIG_TEST(test_a_result_that_is_too_large_fails_the_step, r)
{
    struct claimed_task t;
    r->settings.jobs_payload_max_bytes = 100;
    put_plan(r, two_tries);
    start_run(r, "run", "tries");
    begin_step(r, "run", "a", &t);
    char *big = arena_alloc(r->arena, 201);
    memset(big, ' ', 200);
    big[0] = '{';
    big[199] = '}';
    assert_int_equal(end_step(r, &t, &(struct task_outcome){.success = true, .result = {big, 200}}), ERR_OK);
    assert_status(r, "run", "FAILED");
    assert_null(step_of(r, "run", "a").result.ptr);
}

/* --- restarts and failing commits ----------------------------------------------------------------------- */

/* A crash at any of these instants continues: nothing is lost, nothing twice. */
RIG_TEST(test_a_run_survives_a_restart_after_every_step, r)
{
    struct claimed_task t;
    static const char *const steps[] = {"a", "b", "c"};
    put_plan(r, chain);
    start_run(r, "run", "chain");
    for (size_t i = 0; i < LENGTH_OF(steps); i++) {
        rig_restart(r, 10);
        t = claim_step(r, "run", steps[i]);
        rig_restart(r, 10);
        assert_int_equal(rig_work(r, &start_command_type, &t).code, ERR_OK);
        rig_restart(r, 10);
        assert_int_equal(rig_work(r, &heartbeat_command_type, &t).code, ERR_OK);
        assert_int_equal(succeed_step(r, &t), ERR_OK);
    }
    assert_status(r, "run", "COMPLETED");
    assert_story(r, "run",
                 "RunQueued RunStarted StepStarted:a:1 StepCompleted:a:1 StepStarted:b:1 StepCompleted:b:1 "
                 "StepStarted:c:1 StepCompleted:c:1 RunCompleted");
}

RIG_TEST(test_a_step_whose_commit_fails_has_not_happened, r)
{
    put_plan(r, chain);
    r->failures = 1;
    assert_int_equal(start_run_of(r, TENANT, "run", "chain", NULL)->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(count_ready(r), 0);
    rig_pass(r, 1000);
    start_run(r, "run", "chain");
    struct claimed_task t = claim_step(r, "run", "a");
    struct worker_command *c = rig_post_work(r, &start_command_type, &t, true);
    r->failures = 1;
    rig_step(r);
    assert_int_equal(c->base.result, ERR_STORAGE_DB_ERROR);
    assert_story(r, "run", "RunQueued");
    rig_pass(r, 1000);
    assert_int_equal(rig_work(r, &start_command_type, &t).code, ERR_OK);
    c = rig_post_work(r, &finish_command_type, &t, true);
    r->failures = 1;
    rig_step(r);
    assert_int_equal(c->base.result, ERR_STORAGE_DB_ERROR);
    assert_step(r, "run", "a", "RUNNING");
    rig_pass(r, 1000);
    assert_int_equal(succeed_step(r, &t), ERR_OK);
    assert_story(r, "run", "RunQueued RunStarted StepStarted:a:1 StepCompleted:a:1");
    do_step(r, "run", "b", true);
}

/* --- layer 1 -------------------------------------------------------------------------------------------- */

/* A command that makes the producer say what the state forbids. */
struct lie {
    struct command base;
    const char *run;
    struct produced what;
    int64_t step_idx;
    bool written;
};

static void load_lie(struct unit *u, struct command *base)
{
    (void)run_prefetch(u, str_of(((struct lie *)base)->run));
}

static enum err_code decide_lie(struct unit *u, struct command *base, struct err *err)
{
    struct lie *l = (struct lie *)base;
    struct run_row *run = run_find(u, str_of(l->run));
    (void)err;
    if (l->step_idx >= 0)
        l->what.step = run_step(u, run, l->step_idx);
    l->written = produce(u, run, &l->what);
    return ERR_OK;
}

static const struct command_type lie_type = {"lie", load_lie, decide_lie};

static bool tell_lie(struct rig *r, const char *run, enum run_event_type type, int64_t step_idx,
                     int64_t attempt)
{
    struct lie *l = ARENA_NEW(r->arena, struct lie);
    *l = (struct lie){.run = run, .what = {.type = type, .attempt = attempt}, .step_idx = step_idx};
    rig_post(r, &l->base, &lie_type);
    rig_step(r);
    return l->written;
}

/* [RUN-105] [RUN-106] [RUN-107] [RUN-108] [RUN-110]: RunFailed with the reason while that is valid */
RIG_TEST(test_the_producer_never_writes_an_invalid_transition, r)
{
    size_t count;
    append_good(r, "run", "RunStarted", NULL, 1);
    append_good(r, "run", "StepStarted", "a", 1);
    append_good(r, "other", "RunStarted", NULL, 1);
    assert_false(
        tell_lie(r, "run", RUN_EVENT_StepCompleted, 0, 2)); /* another attempt than the one that runs */
    assert_status(r, "run", "FAILED");
    const struct run_event_row *e = events_of(r, "run", &count);
    assert_int_equal(count, 3);
    assert_true(str_is(e[2].payload,
                       "{\"invalidTransitionDetected\":true,\"expectedState\":\"SUCCESS\","
                       "\"actualState\":\"RUNNING\",\"attemptedEventType\":\"StepCompleted\"}"));
    assert_false(tell_lie(r, "run", RUN_EVENT_RunStarted, -1, 1)); /* terminal: nothing at all */
    events_of(r, "run", &count);
    assert_int_equal(count, 3);
    assert_int_equal(run_of(r, "run").inconsistent, 0);
    assert_true(tell_lie(r, "other", RUN_EVENT_RunPaused, -1, 1)); /* others go on */
    assert_status(r, "other", "PAUSED");
}

/* [RUN-109]: of a step that does not run no StepFailed is written */
RIG_TEST(test_the_producer_does_not_fail_a_step_that_does_not_run, r)
{
    append_good(r, "run", "RunStarted", NULL, 1);
    append_good(r, "run", "StepStarted", "a", 1);
    append_good(r, "run", "StepCompleted", "a", 1);
    assert_false(tell_lie(r, "run", RUN_EVENT_StepFailed, 0, 1));
    assert_story(r, "run", "RunStarted StepStarted:a:1 StepCompleted:a:1 RunFailed");
}

RIG_TEST(test_a_step_has_a_timeout_of_its_own, r)
{
    struct claimed_task t;
    put_plan(r, PLAN("own", STEPS("{\"stepId\":\"a\",\"timeoutMs\":2000,\"maxAttempts\":2}")));
    start_run(r, "run", "own");
    begin_step(r, "run", "a", &t);
    rig_pass(r, 1999);
    rig_step(r);
    assert_step(r, "run", "a", "RUNNING");
    rig_pass(r, 2);
    rig_step(r);
    assert_step(r, "run", "a", "FAILED");
    struct str error = step_of(r, "run", "a").error;
    assert_non_null(memmem(error.ptr, error.len, "\"timeout\"", 9));
    rig_pass(r, 100000);
    do_step(r, "run", "a", true); /* it had an attempt left */
    assert_status(r, "run", "COMPLETED");
}

/* --- delays --------------------------------------------------------------------------------------------- */

static const char delayed[] =
    PLAN("delayed", STEPS("{\"stepId\":\"a\",\"delayMs\":1000},"
                          "{\"stepId\":\"b\",\"dependsOn\":[\"a\"],\"delayMs\":5000,\"maxAttempts\":2}"));

RIG_TEST(test_a_step_is_claimed_when_its_delay_is_over_and_not_before, r)
{
    r->settings.jobs_retry_base_ms = 1000;
    r->settings.jobs_retry_jitter = 0;
    put_plan(r, delayed);
    start_run(r, "run", "delayed");
    rig_pass(r, 999);
    assert_true(none_ready(r));
    rig_pass(r, 1);
    do_step(r, "run", "a", true);
    rig_pass(r, 4999);
    assert_true(none_ready(r));
    rig_restart(r, 0); /* the delay is in the store */
    rig_pass(r, 1);
    do_step(r, "run", "b", false);
    rig_pass(r, 1000); /* another attempt has the pause of attempts, not the delay */
    do_step(r, "run", "b", true);
    assert_status(r, "run", "COMPLETED");
}

RIG_TEST(test_a_pause_of_the_run_does_not_make_a_delay_longer, r)
{
    put_plan(r, delayed);
    start_run(r, "run", "delayed");
    rig_pass(r, 1000);
    do_step(r, "run", "a", true);
    rig_pass(r, 1000);
    assert_int_equal(signal_run(r, "run", SIGNAL_PAUSE, NULL), ERR_OK);
    rig_pass(r, 1000);
    assert_int_equal(signal_run(r, "run", SIGNAL_RESUME, NULL), ERR_OK);
    rig_pass(r, 2999);
    assert_true(none_ready(r));
    rig_pass(r, 1);
    do_step(r, "run", "b", true);
    start_run(r, "second", "delayed");
    assert_int_equal(signal_run(r, "second", SIGNAL_PAUSE, NULL), ERR_OK);
    rig_pass(r, 5000);
    assert_true(none_ready(r));
    assert_int_equal(signal_run(r, "second", SIGNAL_RESUME, NULL), ERR_OK);
    do_step(r, "second", "a", true); /* its time was over during the pause */
}

/* --- many steps ----------------------------------------------------------------------------------------- */

/* What an event costs does not grow with the plan: rows read and written for a step of a wide plan. */
RIG_TEST(test_a_step_of_a_large_plan_costs_what_it_touches, r)
{
    enum { WIDE = 400 };
    struct strbuf b = {0};
    strbuf_add_text(&b, "{\"planId\":\"wide\",\"planVersion\":\"1\",\"steps\":[");
    for (int i = 0; i < WIDE; i++)
        strbuf_addf(&b, "%s{\"stepId\":\"s%d\"}", i ? "," : "", i);
    strbuf_add_text(&b, "]}");
    put_plan(r, arena_copy(r->arena, b.ptr, b.len));
    strbuf_free(&b);
    start_run(r, "run", "wide");
    do_step(r, "run", "s0", true);
    for (int i = 1; i < WIDE; i++) {
        const char *name = arena_printf(r->arena, "s%d", i).ptr;
        struct claimed_task t = rig_claim(r, "w");
        memset(r->fetches, 0, sizeof r->fetches);
        assert_int_equal(rig_work(r, &start_command_type, &t).code, ERR_OK);
        assert_int_equal(succeed_step(r, &t), ERR_OK);
        size_t fetched = 0;
        for (unsigned k = 0; k < table_count; k++)
            fetched += r->fetches[k];
        assert_true(fetched < 40);
        (void)name;
    }
    assert_status(r, "run", "COMPLETED");
    assert_int_equal(run_of(r, "run").last_seq, 2 * WIDE + 3);
}

int main(void)
{
    return rig_run_all();
}
