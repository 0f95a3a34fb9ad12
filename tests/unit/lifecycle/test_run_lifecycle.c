/* Runs and steps against the specification's lists, written out a second time as plain data: every event from
 * every status, in every status of the run, for every attempt that could be meant. */
#include "case.h"

#include "base/must.h"
#include "lifecycle/run_lifecycle.h"

#include "base/banned.h"

struct move {
    const char *from, *event, *to;
};

/* [RUN-094] [RUN-095] [RUN-096] [RUN-097] [RUN-098] [RUN-099], sources by AR-03 */
static const struct move run_moves[] = {
    {"PENDING", "RunStarted", "RUNNING"},     {"RUNNING", "RunPaused", "PAUSED"},
    {"PAUSED", "RunResumed", "RUNNING"},      {"RUNNING", "RunCompleted", "COMPLETED"},
    {"PENDING", "RunFailed", "FAILED"},       {"RUNNING", "RunFailed", "FAILED"},
    {"PAUSED", "RunFailed", "FAILED"},        {"PENDING", "RunCancelled", "CANCELLED"},
    {"RUNNING", "RunCancelled", "CANCELLED"}, {"PAUSED", "RunCancelled", "CANCELLED"},
};

static const struct move step_moves[] = {
    {"PENDING", "StepStarted", "RUNNING"},
    {"RUNNING", "StepCompleted", "SUCCESS"},
    {"RUNNING", "StepFailed", "FAILED"},
    {"PENDING", "StepSkipped", "SKIPPED"},
};

static const char *const run_events[] = {"RunStarted",   "RunPaused", "RunResumed",
                                         "RunCompleted", "RunFailed", "RunCancelled"};
static const char *const step_events[] = {"StepStarted", "StepCompleted", "StepFailed", "StepSkipped"};

static const char *find(const struct move *moves, size_t count, const char *from, const char *event)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(str_of(moves[i].from), from) && str_is(str_of(moves[i].event), event))
            return moves[i].to;
    return NULL;
}

static const char *target_of(const struct move *moves, size_t count, const char *event)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(str_of(moves[i].event), event))
            return moves[i].to;
    return NULL;
}

TEST(test_every_event_of_a_run_from_every_status)
{
    for (int from = 0; from < RUN_STATUS_COUNT; from++)
        for (size_t i = 0; i < LENGTH_OF(run_events); i++) {
            enum run_status status = (enum run_status)from;
            struct transition_fault fault = {0};
            enum run_event_type event = run_event_of(str_of(run_events[i]));
            const char *to =
                find(run_moves, LENGTH_OF(run_moves), run_status_text((enum run_status)from), run_events[i]);
            enum transition done = run_apply(&status, event, &fault);
            assert_int_equal(done, to ? TRANSITION_DONE : TRANSITION_INVALID);
            assert_string_equal(run_status_text(status), to ? to : run_status_text((enum run_status)from));
            if (to)
                continue;
            assert_string_equal(fault.prior, run_status_text((enum run_status)from));
            assert_string_equal(fault.attempted, target_of(run_moves, LENGTH_OF(run_moves), run_events[i]));
        }
}

/* [RUN-025]: unknown types change nothing; neither does RunQueued, whenever it comes (AR-02). */
TEST(test_what_says_nothing_of_states_changes_none)
{
    assert_int_equal(run_event_of(STR("FooHappened")), RUN_EVENT_UNKNOWN);
    assert_int_equal(run_event_of(STR("ALERT_ESCALATED")), RUN_EVENT_UNKNOWN);
    assert_int_equal(run_event_of(STR("SignalAccepted")), RUN_EVENT_UNKNOWN); /* [RUN-005] */
    assert_int_equal(run_event_of(STR("SignalRejected")), RUN_EVENT_UNKNOWN);
    assert_int_equal(run_event_of(STR("runStarted")), RUN_EVENT_UNKNOWN);
    for (int from = 0; from < RUN_STATUS_COUNT; from++) {
        enum run_status status = (enum run_status)from;
        assert_int_equal(run_apply(&status, RUN_EVENT_UNKNOWN, NULL), TRANSITION_NONE);
        assert_int_equal(run_apply(&status, RUN_EVENT_RunQueued, NULL), TRANSITION_NONE);
        struct step_state step = {1, STEP_RUNNING};
        assert_int_equal(step_apply(&step, status, RUN_EVENT_UNKNOWN, 1, NULL), TRANSITION_NONE);
        assert_int_equal(status, from);
        assert_int_equal(step.status, STEP_RUNNING);
    }
}

/* What the specification says of one event, computed the long way. */
static const char *expected(const struct step_state *step, const char *run, const char *event,
                            int64_t attempt)
{
    bool ends = str_is(str_of(event), "StepCompleted") || str_is(str_of(event), "StepFailed");
    bool run_is_right = str_is(str_of(run), "RUNNING") || (ends && str_is(str_of(run), "PAUSED"));
    if (!run_is_right)
        return NULL;
    if (attempt == step->attempt)
        return find(step_moves, LENGTH_OF(step_moves), step_status_text(step->status), event);
    bool is_next = attempt == step->attempt + 1 && (!step->attempt || step->status == STEP_FAILED);
    return is_next ? find(step_moves, LENGTH_OF(step_moves), "PENDING", event) : NULL;
}

static void expect_step(struct step_state before, enum run_status run, const char *event, int64_t attempt)
{
    struct step_state step = before;
    struct transition_fault fault = {0};
    const char *to = expected(&before, run_status_text(run), event, attempt);
    enum transition done = step_apply(&step, run, run_event_of(str_of(event)), attempt, &fault);
    assert_int_equal(done, to ? TRANSITION_DONE : TRANSITION_INVALID);
    if (to) {
        assert_string_equal(step_status_text(step.status), to);
        assert_int_equal(step.attempt, attempt);
        return;
    }
    assert_int_equal(step.status, before.status);
    assert_int_equal(step.attempt, before.attempt);
    assert_string_equal(fault.prior, step_status_text(before.status));
    assert_string_equal(fault.attempted, target_of(step_moves, LENGTH_OF(step_moves), event));
}

/* [RUN-100..RUN-103] */
TEST(test_every_event_of_a_step_in_every_situation)
{
    for (int run = 0; run < RUN_STATUS_COUNT; run++)
        for (int64_t at = 0; at <= 3; at++)
            for (int status = 0; status < STEP_STATUS_COUNT; status++)
                for (size_t i = 0; i < LENGTH_OF(step_events); i++)
                    for (int64_t attempt = 1; attempt <= 5; attempt++)
                        if ((at == 0) ==
                            (status == STEP_PENDING)) /* before the first attempt it is pending */
                            expect_step((struct step_state){at, (enum step_status)status},
                                        (enum run_status)run, step_events[i], attempt);
}

/* AR-04, as a story: a failed attempt, a second one, and everything that may not happen between. */
TEST(test_a_failed_step_starts_again_with_the_next_attempt_only)
{
    struct step_state s = {0};
    assert_int_equal(step_apply(&s, RUN_RUNNING, RUN_EVENT_StepStarted, 2, NULL), TRANSITION_INVALID);
    assert_int_equal(step_apply(&s, RUN_RUNNING, RUN_EVENT_StepStarted, 1, NULL), TRANSITION_DONE);
    assert_int_equal(step_apply(&s, RUN_RUNNING, RUN_EVENT_StepStarted, 1, NULL), TRANSITION_INVALID);
    assert_int_equal(step_apply(&s, RUN_RUNNING, RUN_EVENT_StepStarted, 2, NULL), TRANSITION_INVALID);
    assert_int_equal(step_apply(&s, RUN_PAUSED, RUN_EVENT_StepFailed, 1, NULL), TRANSITION_DONE);
    assert_int_equal(step_apply(&s, RUN_PAUSED, RUN_EVENT_StepStarted, 2, NULL), TRANSITION_INVALID);
    assert_int_equal(step_apply(&s, RUN_RUNNING, RUN_EVENT_StepStarted, 3, NULL), TRANSITION_INVALID);
    assert_int_equal(step_apply(&s, RUN_RUNNING, RUN_EVENT_StepStarted, 2, NULL), TRANSITION_DONE);
    assert_int_equal(step_apply(&s, RUN_RUNNING, RUN_EVENT_StepCompleted, 1, NULL), TRANSITION_INVALID);
    assert_int_equal(step_apply(&s, RUN_RUNNING, RUN_EVENT_StepCompleted, 2, NULL), TRANSITION_DONE);
    assert_int_equal(step_apply(&s, RUN_RUNNING, RUN_EVENT_StepStarted, 3, NULL), TRANSITION_INVALID);
}

TEST(test_names_are_those_of_the_contract)
{
    static const struct {
        const char *name;
        bool step;
    } catalog[] = {{"RunQueued", false},    {"RunStarted", false},  {"StepStarted", true},
                   {"StepCompleted", true}, {"StepFailed", true},   {"StepSkipped", true},
                   {"RunPaused", false},    {"RunResumed", false},  {"RunCompleted", false},
                   {"RunFailed", false},    {"RunCancelled", false}};
    assert_int_equal(LENGTH_OF(catalog), RUN_EVENT_COUNT);
    for (size_t i = 0; i < LENGTH_OF(catalog); i++) {
        enum run_event_type e = run_event_of(str_of(catalog[i].name));
        assert_int_not_equal(e, RUN_EVENT_UNKNOWN);
        assert_string_equal(run_event_text(e), catalog[i].name);
        assert_int_equal(run_event_is_step(e), catalog[i].step);
    }
    enum run_status status;
    assert_true(run_status_of(STR("cancelled"), &status) && status == RUN_CANCELLED);
    assert_true(run_status_of(STR("CANCELLED"), &status));
    assert_int_equal(status, RUN_CANCELLED);
    assert_false(run_status_of(STR("CANCELED"), &status));
}
