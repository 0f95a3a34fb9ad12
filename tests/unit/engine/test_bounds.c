/* Where the rules about steps and signals end: to the byte, to the millisecond, to the next in line. */
#include "unit/engine/engine_rig.h"

#include "base/uuid.h"
#include "engine/run_index.h"

#include "base/banned.h"

#define PLAN(id, rest) "{\"planId\":\"" id "\",\"planVersion\":\"1\"," rest "}"

static const char one[] =
    PLAN("one", "\"onFailure\":\"wait\",\"steps\":[{\"stepId\":\"a\",\"maxAttempts\":3}]");
static const char pair[] = PLAN("pair", "\"steps\":[{\"stepId\":\"x\"},{\"stepId\":\"y\"}]");

static bool none_ready(struct rig *r)
{
    return rig_claim_count(r, "w", 1) == 0;
}

/* --- the queue ------------------------------------------------------------------------------------------ */

/* A step is as urgent as a job that says nothing about it: whoever came first is first. */
RIG_TEST(test_steps_and_jobs_of_a_queue_take_turns_by_their_age, r)
{
    int64_t client = rig_new_client(r, NULL);
    put_plan(r, one);
    rig_submit_default(r, client);
    rig_pass(r, 10);
    start_run(r, "run", "one");
    rig_pass(r, 10);
    rig_submit_default(r, client);
    const struct task_owner *const order[] = {&job_task_owner, &step_task_owner, &job_task_owner};
    for (size_t i = 0; i < LENGTH_OF(order); i++)
        assert_ptr_equal(rig_claim(r, "w").owner, order[i]);
}

/* Steps that fail together are not tried again together: half of the pause more or less. */
RIG_TEST(test_pauses_between_tries_are_spread, r)
{
    enum { RUNS = 24, BASE_MS = 1000 };
    r->settings.jobs_retry_base_ms = BASE_MS;
    r->settings.jobs_retry_jitter = 0.5;
    int64_t least = INT64_MAX, most = 0;
    put_plan(r, one);
    for (int i = 0; i < RUNS; i++) {
        const char *run = arena_printf(r->arena, "run-%d", i).ptr;
        start_run(r, run, "one");
        do_step(r, run, "a", false);
        int64_t pause = rig_task(r, step_of(r, run, "a").task).due_ms - r->wall_us / 1000;
        assert_in_range(pause, BASE_MS / 2, BASE_MS * 3 / 2);
        least = pause < least ? pause : least;
        most = pause > most ? pause : most;
    }
    assert_true(least < BASE_MS * 3 / 4 && most > BASE_MS * 5 / 4);
}

/* New words for a step that waits for its next try: it waits on. */
RIG_TEST(test_a_step_that_waits_for_its_next_try_keeps_its_time, r)
{
    r->settings.jobs_retry_base_ms = 5000;
    r->settings.jobs_retry_jitter = 0;
    put_plan(r, one);
    start_run(r, "run", "one");
    do_step(r, "run", "a", false);
    int64_t task = step_of(r, "run", "a").task;
    assert_int_equal(
        signal_run(r, "run", SIGNAL_INJECT_OVERRIDE, "{\"stepId\":\"a\",\"override\":{\"x\":1}}"), ERR_OK);
    assert_int_equal(step_of(r, "run", "a").task, task);
    rig_pass(r, 4999);
    assert_true(none_ready(r));
    rig_pass(r, 1);
    do_step(r, "run", "a", true);
    assert_status(r, "run", "COMPLETED");
}

/* As if nobody had had it, but for the token. */
RIG_TEST(test_a_step_whose_lease_ends_unstarted_is_nobodys, r)
{
    put_plan(r, one);
    start_run(r, "run", "one");
    struct claimed_task t = claim_step(r, "run", "a");
    assert_true(str_is(rig_task(r, t.id).worker, "w"));
    rig_pass(r, r->settings.queue_lease_ms + 1);
    rig_step(r);
    struct task_row row = rig_task(r, t.id);
    assert_null(row.worker.ptr);
    assert_int_equal(row.lease_ms, 0);
    assert_int_equal(row.due_ms, 0);
    assert_int_equal(row.token, t.token + 1);
}

/* --- sizes ---------------------------------------------------------------------------------------------- */

/* A result, params or an override may be as long as jobs.payload_max_bytes, and no byte longer. */
RIG_TEST(test_what_is_kept_of_a_run_is_bounded_to_the_byte, r)
{
    static const char result[] = "{\"n\":1}", params[] = "{\"params\":{\"n\":1}}",
                      override[] = "{\"stepId\":\"a\",\"override\":{\"n\":1}}",
                      target[] = "{\"stepId\":\"a\",\"newTarget\":{\"n\":1}}";
    put_plan(r, one);
    for (int64_t max = 6; max <= 7; max++) {
        enum err_code wanted = max == 6 ? ERR_SIGNAL_INVALID_PAYLOAD : ERR_OK;
        const char *run = max == 6 ? "small" : "large";
        start_run(r, run, "one");
        r->settings.jobs_payload_max_bytes = max;
        assert_int_equal(signal_run(r, run, SIGNAL_UPDATE_PARAMS, params), wanted);
        assert_int_equal(signal_run(r, run, SIGNAL_INJECT_OVERRIDE, override), wanted);
        assert_int_equal(signal_run(r, run, SIGNAL_UPDATE_TARGET, target), wanted);
        assert_int_equal(run_of(r, run).params.ptr != NULL, max == 7);
        assert_int_equal(step_of(r, run, "a").override.ptr != NULL, max == 7);
        assert_int_equal(step_of(r, run, "a").target.ptr != NULL, max == 7);
        struct claimed_task t;
        begin_step(r, run, "a", &t);
        end_step(r, &t, &(struct task_outcome){.success = true, .result = str_of(result)});
        assert_step(r, run, "a", max == 6 ? "FAILED" : "SUCCESS");
        r->settings.jobs_payload_max_bytes = 65536;
    }
}

/* Of an error 1024 bytes are told, and no character is cut through; without words there are ours. */
RIG_TEST(test_an_error_of_a_step_is_cut_between_characters, r)
{
    put_plan(r, one);
    for (int plain = 1021; plain <= 1025; plain++) {
        const char *run = arena_printf(r->arena, "run-%d", plain).ptr;
        struct claimed_task t;
        start_run(r, run, "one");
        begin_step(r, run, "a", &t);
        char *text = arena_alloc(r->arena, 1100);
        memset(text, 'x', (size_t)plain);
        snprintf(text + plain, 10, "%s", "\xc3\xbc"); /* one letter of two bytes */
        end_step(r, &t, &(struct task_outcome){.error_code = STR("c"), .error_message = str_of(text)});
        int told = plain + 2 <= 1024 ? plain + 2 : plain < 1024 ? plain : 1024;
        assert_true(str_equal(step_of(r, run, "a").error,
                              arena_printf(r->arena,
                                           "{\"reason\":\"c\",\"error\":{\"code\":\"c\",\"message\":\"%.*s\","
                                           "\"retryable\":false}}",
                                           told, text)));
    }
    struct claimed_task t;
    start_run(r, "bare", "one");
    begin_step(r, "bare", "a", &t);
    end_step(r, &t, &(struct task_outcome){.retryable = true});
    assert_true(str_is(step_of(r, "bare", "a").error,
                       "{\"reason\":\"failed\",\"error\":{\"code\":\"failed\",\"message\":\"the worker "
                       "reported a failure\",\"retryable\":true}}"));
}

/* --- grace ---------------------------------------------------------------------------------------------- */

static bool has_grace_timer(struct rig *r, const char *run)
{
    return rig_row(r, &table_timer_row,
                   &(struct timer_row){.owner = run_of(r, run).num, .kind = run_grace_timer.number});
}

/* To the millisecond: a running step has its grace, and the run does not wait longer. */
RIG_TEST(test_a_run_that_is_stopped_waits_for_its_grace_and_no_longer, r)
{
    r->settings.engine_cancel_grace_ms = 5000;
    put_plan(r, pair);
    for (int emergency = 0; emergency < 2; emergency++) {
        const char *run = emergency ? "emergency" : "cancel";
        struct claimed_task t;
        start_run(r, run, "pair");
        begin_step(r, run, "x", &t);
        assert_int_equal(emergency ? signal_run(r, run, SIGNAL_EMERGENCY_STOP, "{\"reason\":\"fire\"}")
                                   : signal_run(r, run, SIGNAL_CANCEL, NULL),
                         ERR_OK);
        assert_true(has_grace_timer(r, run));
        rig_pass(r, emergency ? 999 : 4999);
        rig_step(r);
        assert_status(r, run, "RUNNING");
        rig_pass(r, 1);
        rig_step(r);
        assert_status(r, run, "CANCELLED");
        assert_false(has_grace_timer(r, run));
        assert_int_equal(run_of(r, run).open_count, 0);
    }
}

/* The step ends first: nothing is left of the timer. */
RIG_TEST(test_a_run_that_ends_before_its_grace_leaves_no_timer, r)
{
    struct claimed_task t;
    put_plan(r, pair);
    start_run(r, "run", "pair");
    begin_step(r, "run", "x", &t);
    signal_run(r, "run", SIGNAL_CANCEL, NULL);
    assert_true(has_grace_timer(r, "run"));
    succeed_step(r, &t);
    assert_status(r, "run", "CANCELLED");
    assert_false(has_grace_timer(r, "run"));
}

/* --- tenants -------------------------------------------------------------------------------------------- */

/* A tenant that has the id of a client is that client, in the one spelling there is; others get a number. */
RIG_TEST(test_a_tenant_with_the_id_of_a_client_is_that_client, r)
{
    struct uuid id;
    char text[UUID_TEXT_LEN + 1], loud[UUID_TEXT_LEN + 1];
    int64_t client = rig_new_client(r, &id), numbers[4];
    uuid_text(&id, text);
    for (int i = 0; i <= UUID_TEXT_LEN; i++)
        loud[i] = (char)(text[i] >= 'a' && text[i] <= 'f' ? text[i] - 'a' + 'A' : text[i]);
    assert_string_not_equal(text, loud);
    const char *const names[] = {text, loud, TENANT, "00000000-0000-4000-8000-000000000000"};
    for (size_t i = 0; i < LENGTH_OF(names); i++) {
        assert_int_equal(put_plan_of(r, names[i], one)->base.result, ERR_OK);
        const char *run = arena_printf(r->arena, "run-%zu", i).ptr;
        assert_int_equal(start_run_of(r, names[i], run, "one", NULL)->base.result, ERR_OK);
        numbers[i] = run_of(r, run).tenant;
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(numbers[i], numbers[k]);
    }
    assert_int_equal(numbers[0], client);
}

/* --- marks ---------------------------------------------------------------------------------------------- */

/* Events, their ids and steps of an older version are found by them. */
RIG_TEST(test_marks_that_are_stored_stay_what_they_are, r)
{
    char bytes[DIGEST_BYTES];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i + 1);
    assert_int_equal(run_index_hash(RUN_INDEX_KEY, (struct str){bytes, sizeof bytes}), 0x807060504030201);
    assert_int_equal((uint64_t)run_index_hash(RUN_INDEX_EVENT_ID, (struct str){bytes, 16}),
                     UINT64_C(0xf38b31dfeeabfb5c));
    assert_int_equal((uint64_t)run_index_hash(RUN_INDEX_STEP, STR("a")), UINT64_C(0xcabd1bca128197c8));
}

int main(void)
{
    return rig_run_all();
}
