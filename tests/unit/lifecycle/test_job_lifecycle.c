/* The lifecycle table against the specification's lists, written out a second time as plain data. */
#include "case.h"

#include "base/must.h"
#include "lifecycle/job_lifecycle.h"

#include "base/banned.h"

struct pair {
    const char *from, *to;
};

static const struct pair allowed[] = {
    {"CREATED", "QUEUED"},   {"CREATED", "CANCELED"},  {"QUEUED", "ASSIGNED"},   {"QUEUED", "CANCELED"},
    {"ASSIGNED", "RUNNING"}, {"ASSIGNED", "CANCELED"}, {"RUNNING", "SUCCEEDED"}, {"RUNNING", "FAILED"},
    {"RUNNING", "CANCELED"}, {"FAILED", "QUEUED"},
};

/* In the specification's list of forbidden pairs, but what a lease that expires must do (AJ-22). */
static const struct pair recovery[] = {{"ASSIGNED", "QUEUED"}};

static const struct pair forbidden[] = {
    {"CREATED", "CREATED"},    {"CREATED", "ASSIGNED"},    {"CREATED", "RUNNING"},
    {"CREATED", "SUCCEEDED"},  {"CREATED", "FAILED"},      {"QUEUED", "CREATED"},
    {"QUEUED", "QUEUED"},      {"QUEUED", "RUNNING"},      {"QUEUED", "SUCCEEDED"},
    {"QUEUED", "FAILED"},      {"ASSIGNED", "CREATED"},    {"ASSIGNED", "ASSIGNED"},
    {"ASSIGNED", "SUCCEEDED"}, {"ASSIGNED", "FAILED"},     {"RUNNING", "CREATED"},
    {"RUNNING", "QUEUED"},     {"RUNNING", "ASSIGNED"},    {"RUNNING", "RUNNING"},
    {"FAILED", "CREATED"},     {"FAILED", "ASSIGNED"},     {"FAILED", "RUNNING"},
    {"FAILED", "SUCCEEDED"},   {"FAILED", "FAILED"},       {"FAILED", "CANCELED"},
    {"SUCCEEDED", "CREATED"},  {"SUCCEEDED", "QUEUED"},    {"SUCCEEDED", "ASSIGNED"},
    {"SUCCEEDED", "RUNNING"},  {"SUCCEEDED", "SUCCEEDED"}, {"SUCCEEDED", "FAILED"},
    {"SUCCEEDED", "CANCELED"}, {"CANCELED", "CREATED"},    {"CANCELED", "QUEUED"},
    {"CANCELED", "ASSIGNED"},  {"CANCELED", "RUNNING"},    {"CANCELED", "SUCCEEDED"},
    {"CANCELED", "FAILED"},    {"CANCELED", "CANCELED"},
};

static enum job_state state_of(const char *text)
{
    enum job_state s;
    assert_true(job_state_parse(str_of(text), &s));
    return s;
}

/* Whether some trigger takes a job from one state to another, by the table that every change of a state asks;
 * RECOVERY: only a lease that ends does. */
enum pair_rule { FORBIDDEN, ALLOWED, RECOVERY };
static enum pair_rule pair_rule(enum job_state from, enum job_state to)
{
    enum pair_rule rule = FORBIDDEN;
    for (int on = 0; on < JOB_TRIGGER_COUNT; on++) {
        const struct job_move *m = job_find_move(from, (enum job_trigger)on);
        if (m && m->to == to && rule != ALLOWED)
            rule = on == JOB_ON_LEASE_EXPIRE ? RECOVERY : ALLOWED;
    }
    return rule;
}

static void mark(int seen[JOB_STATE_COUNT][JOB_STATE_COUNT], const struct pair *pairs, size_t count,
                 enum pair_rule want)
{
    for (size_t i = 0; i < count; i++) {
        enum job_state from = state_of(pairs[i].from), to = state_of(pairs[i].to);
        assert_int_equal(pair_rule(from, to), want);
        seen[from][to]++;
    }
}

/* allowed [JOB-110 JOB-111 JOB-112 JOB-113 JOB-114 JOB-115 JOB-116 JOB-117 JOB-118 JOB-119], forbidden
 * [JOB-120 JOB-121 JOB-122 JOB-123 JOB-124 JOB-125 JOB-126], all 49 [JOB-300]. That a refused command leaves
 * state and events as they were: tests/unit/jobs/test_cancel_retry.c. */
TEST(test_the_49_pairs_are_10_allowed_1_recovery_and_38_forbidden)
{
    int seen[JOB_STATE_COUNT][JOB_STATE_COUNT] = {0};
    assert_int_equal(LENGTH_OF(allowed), 10);
    assert_int_equal(LENGTH_OF(recovery), 1);
    assert_int_equal(LENGTH_OF(forbidden), 38);
    mark(seen, allowed, LENGTH_OF(allowed), ALLOWED);
    mark(seen, recovery, LENGTH_OF(recovery), RECOVERY);
    mark(seen, forbidden, LENGTH_OF(forbidden), FORBIDDEN);
    for (int from = 0; from < JOB_STATE_COUNT; from++)
        for (int to = 0; to < JOB_STATE_COUNT; to++)
            assert_int_equal(seen[from][to], 1);
}

/* [JOB-122] */
TEST(test_only_a_lease_that_ends_takes_the_recovery_edge)
{
    int edges = 0;
    for (int from = 0; from <= JOB_NO_STATE; from++)
        for (int on = 0; on < JOB_TRIGGER_COUNT; on++) {
            const struct job_move *m = job_find_move((enum job_state)from, (enum job_trigger)on);
            bool recovers = m && m->from == JOB_ASSIGNED && m->to == JOB_QUEUED;
            assert_int_equal(recovers, from == JOB_ASSIGNED && on == JOB_ON_LEASE_EXPIRE);
            edges += recovers;
            if (recovers)
                assert_int_equal(m->event, JOB_EVENT_LEASE_EXPIRED);
        }
    assert_int_equal(edges, 1);
}

/* What each trigger does in each state, in words; "-" is refused. Rows: trigger. Columns: no state, then
 * CREATED, QUEUED, ASSIGNED, RUNNING, SUCCEEDED, FAILED, CANCELED. */
static const struct {
    enum job_trigger on;
    const char *to[1 + JOB_STATE_COUNT];
    const char *event;
} decided[] = {
    {JOB_ON_SUBMIT, {"CREATED", "-", "-", "-", "-", "-", "-", "-"}, "job.created"},
    {JOB_ON_DUE, {"-", "QUEUED", "-", "-", "-", "-", "-", "-"}, "job.queued"},
    {JOB_ON_CLAIM, {"-", "-", "ASSIGNED", "-", "-", "-", "-", "-"}, "job.assigned"},
    {JOB_ON_START, {"-", "-", "-", "RUNNING", "-", "-", "-", "-"}, "job.running"},
    {JOB_ON_SUCCEED, {"-", "-", "-", "-", "SUCCEEDED", "-", "-", "-"}, "job.succeeded"},
    {JOB_ON_FAIL, {"-", "-", "-", "-", "FAILED", "-", "-", "-"}, "job.failed"},
    {JOB_ON_TIMEOUT, {"-", "-", "-", "-", "FAILED", "-", "-", "-"}, "job.timed_out"},
    {JOB_ON_WORKER_LOST, {"-", "-", "-", "-", "FAILED", "-", "-", "-"}, "job.failed"},
    {JOB_ON_CANCEL, {"-", "CANCELED", "CANCELED", "CANCELED", "CANCELED", "-", "-", "-"}, "job.canceled"},
    {JOB_ON_RETRY, {"-", "-", "-", "-", "-", "-", "QUEUED", "-"}, "job.queued"},
    {JOB_ON_LEASE_EXPIRE, {"-", "-", "-", "QUEUED", "-", "-", "-", "-"}, "job.lease_expired"},
};

TEST(test_every_state_and_trigger_is_decided)
{
    assert_int_equal(LENGTH_OF(decided), JOB_TRIGGER_COUNT);
    for (size_t i = 0; i < LENGTH_OF(decided); i++) {
        assert_int_equal(decided[i].on, (int)i);
        for (int s = -1; s < JOB_STATE_COUNT; s++) {
            const char *want = decided[i].to[1 + s];
            enum job_state from = s < 0 ? JOB_NO_STATE : (enum job_state)s;
            const struct job_move *m = job_find_move(from, decided[i].on);
            assert_int_equal(m != NULL, !str_is(str_of(want), "-"));
            if (m) {
                assert_int_equal(m->from, from);
                assert_string_equal(job_state_text(m->to), want);
                assert_string_equal(job_event_text(m->event), decided[i].event);
            }
        }
    }
}

/* [JOB-108] */
TEST(test_the_only_first_state_is_created)
{
    for (int on = 0; on < JOB_TRIGGER_COUNT; on++) {
        const struct job_move *m = job_find_move(JOB_NO_STATE, (enum job_trigger)on);
        assert_true(!m || m->to == JOB_CREATED);
    }
    assert_non_null(job_find_move(JOB_NO_STATE, JOB_ON_SUBMIT));
}

/* [JOB-107] [JOB-109] */
TEST(test_seven_states_with_their_names_outcomes_and_phases)
{
    static const struct {
        const char *text, *outcome;
        enum task_phase phase;
    } want[] = {
        {"CREATED", NULL, TASK_WAITING},      {"QUEUED", NULL, TASK_READY},
        {"ASSIGNED", NULL, TASK_LEASED},      {"RUNNING", NULL, TASK_RUNNING},
        {"SUCCEEDED", "SUCCESS", TASK_ENDED}, {"FAILED", "FAILED", TASK_ENDED},
        {"CANCELED", "CANCELED", TASK_ENDED},
    };
    assert_int_equal(LENGTH_OF(want), JOB_STATE_COUNT);
    for (int s = 0; s < JOB_STATE_COUNT; s++) {
        assert_string_equal(job_state_text((enum job_state)s), want[s].text);
        assert_int_equal(state_of(want[s].text), s);
        assert_int_equal(job_state_phase((enum job_state)s), want[s].phase);
        assert_int_equal(job_state_is_final((enum job_state)s), want[s].outcome != NULL);
        enum job_state back;
        if (!want[s].outcome) {
            assert_null(job_outcome_text((enum job_state)s));
            continue;
        }
        assert_string_equal(job_outcome_text((enum job_state)s), want[s].outcome);
        assert_true(job_outcome_parse(str_of(want[s].outcome), &back));
        assert_int_equal(back, s);
    }
    assert_null(job_state_text(JOB_NO_STATE));
    assert_null(job_outcome_text(JOB_NO_STATE));
    assert_false(job_state_is_final(JOB_NO_STATE));
}

TEST(test_event_and_type_names_round_trip_and_others_are_refused)
{
    static const char *const events[] = {
        "job.created", "job.queued",   "job.assigned",      "job.running",   "job.succeeded",
        "job.failed",  "job.canceled", "job.lease_expired", "job.timed_out", "job.retries_exhausted",
    };
    static const char *const types[] = {"EXECUTE", "DEFERRED", "EMIT_EVENT"};
    assert_int_equal(LENGTH_OF(events), JOB_EVENT_COUNT);
    for (int i = 0; i < JOB_EVENT_COUNT; i++) {
        enum job_event e;
        assert_string_equal(job_event_text((enum job_event)i), events[i]);
        assert_true(job_event_parse(str_of(events[i]), &e));
        assert_int_equal(e, i);
    }
    assert_int_equal(LENGTH_OF(types), JOB_TYPE_COUNT);
    for (int i = 0; i < JOB_TYPE_COUNT; i++) {
        enum job_type t;
        assert_string_equal(job_type_text((enum job_type)i), types[i]);
        assert_true(job_type_parse(str_of(types[i]), &t));
        assert_int_equal(t, i);
    }
    static const char *const retries[] = {"manual", "auto"}; /* stored by number */
    assert_int_equal(LENGTH_OF(retries), JOB_RETRY_COUNT);
    for (int i = 0; i < JOB_RETRY_COUNT; i++) {
        enum job_retry r;
        assert_string_equal(job_retry_text((enum job_retry)i), retries[i]);
        assert_true(job_retry_parse(str_of(retries[i]), &r));
        assert_int_equal(r, i);
    }
    enum job_state typed;
    assert_true(job_state_parse(STR("queued"), &typed) && typed == JOB_QUEUED);
    assert_true(job_outcome_parse(STR("Success"), &typed) && typed == JOB_SUCCEEDED);
    static const char *const unknown[] = {"",        "quued", "QUEUED ",    "QUEUE",
                                          "QUEUEDX", "job.",  "SUCCESSFUL", "execute"};
    for (size_t i = 0; i < LENGTH_OF(unknown); i++) {
        enum job_state s;
        enum job_event e;
        enum job_type t;
        enum job_retry r;
        assert_false(job_retry_parse(str_of(unknown[i]), &r));
        assert_false(job_state_parse(str_of(unknown[i]), &s));
        assert_false(job_outcome_parse(str_of(unknown[i]), &s));
        assert_false(job_event_parse(str_of(unknown[i]), &e));
        assert_false(job_type_parse(str_of(unknown[i]), &t));
    }
}
