/* What is held for approval and who settles it with which words; what an engine outside says it has done. */
#include "unit/engine/engine_rig.h"

#include "base/banned.h"

static const char one_step[] = "{\"planId\":\"one\",\"planVersion\":\"1\",\"onFailure\":\"wait\","
                               "\"steps\":[{\"stepId\":\"a\"}]}";

static void hold(struct rig *r, const char *signals)
{
    struct err err;
    assert_int_equal(settings_set(&r->settings, "engine.approval_required", signals, ORIGIN_FLAG, &err),
                     ERR_OK);
}

static struct settle_command *settle(struct rig *r, const struct signal_command *what, const char *tenant,
                                     bool approve, const char *reason)
{
    struct settle_command *c = ARENA_NEW(r->arena, struct settle_command);
    c->policy_id = what->policy_id;
    c->actor = (struct policy_actor){.user_id = STR("bob"), .tenant = str_of(tenant)};
    c->actor_shown = STR("bob");
    c->approve = approve;
    c->reason = reason ? str_of(reason) : STR_ABSENT;
    c->new_run_id = STR("again");
    rig_post(r, &c->base, &settle_command_type);
    rig_step(r);
    return c;
}

static struct signal_command *held_pause(struct rig *r)
{
    hold(r, "PAUSE");
    put_plan(r, one_step);
    start_run(r, "run", "one");
    struct signal_command *c = send_signal(r, &(struct sent){.run = "run", .type = SIGNAL_PAUSE});
    assert_int_equal(c->answer.decision, DECISION_REVISION_REQUIRED);
    return c;
}

/* It is as if there were none, whatever the Admin of another tenant may touch there. */
RIG_TEST(test_an_admin_of_another_tenant_settles_nothing, r)
{
    struct signal_command *c = held_pause(r);
    for (int approve = 0; approve < 2; approve++)
        assert_int_equal(settle(r, c, "evil", approve, NULL)->base.result, ERR_SIGNAL_NOT_FOUND);
    assert_int_equal(decision_by(r, &c->policy_id).state, DECISION_REVISION_REQUIRED);
    assert_status(r, "run", "PENDING");
}

/* Whoever settles it again in the same way hears what became of it; in the other way, that it was settled. */
RIG_TEST(test_a_repeated_settlement_hears_what_became_of_it, r)
{
    for (int approve = 0; approve < 2; approve++) {
        struct signal_command *c =
            approve ? send_signal(r, &(struct sent){.run = "run", .type = SIGNAL_PAUSE}) : held_pause(r);
        for (int again = 0; again < 2; again++) {
            struct signal_answer a = settle(r, c, TENANT, approve, NULL)->answer;
            assert_int_equal(a.decision, approve ? DECISION_ACCEPTED : DECISION_REJECTED);
            assert_int_equal(a.processed, approve);
            assert_int_equal(a.succeeded, approve);
            assert_int_equal(a.replayed, again);
            assert_int_equal(a.refusal.code, ERR_OK);
            assert_memory_equal(&a.policy_id, &c->policy_id, sizeof a.policy_id);
            assert_memory_equal(&a.decision_id, &c->decision_id, sizeof a.decision_id);
        }
        struct signal_answer other = settle(r, c, TENANT, !approve, NULL)->answer;
        assert_int_equal(other.refusal.code, ERR_SIGNAL_DUPLICATE);
        assert_int_equal(other.decision, approve ? DECISION_ACCEPTED : DECISION_REJECTED);
        assert_int_equal(other.replayed, true);
    }
    assert_status(r, "run", "PAUSED");
}

/* The record has one place for why: what was said last, and what the state says before it. */
RIG_TEST(test_the_record_keeps_the_words_of_whoever_settled_it, r)
{
    static const char held[] = "another Admin of the tenant has to approve it";
    const struct {
        bool approve, ended;
        const char *said, *kept;
    } cases[] = {
        {false, false, NULL, "rejected by another Admin"},
        {false, false, "not now", "not now"},
        {true, false, NULL, held},
        {true, false, "go on", "go on"},
        {true, true, NULL, "the run is CANCELLED"},
        {true, true, "go on", "the run is CANCELLED (approved: go on)"},
    };
    put_plan(r, one_step);
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        const char *run = arena_printf(r->arena, "run-%zu", i).ptr;
        start_run(r, run, "one");
        hold(r, "PAUSE");
        struct signal_command *c = send_signal(r, &(struct sent){.run = run, .type = SIGNAL_PAUSE});
        if (cases[i].ended)
            signal_run(r, run, SIGNAL_CANCEL, NULL);
        rig_pass(r, 10);
        settle(r, c, TENANT, cases[i].approve, cases[i].said);
        struct decision_row d = decision_by(r, &c->policy_id);
        assert_true(str_is(d.reason, cases[i].kept));
        assert_int_equal(d.error_code.ptr != NULL, !cases[i].approve || cases[i].ended);
        assert_true(str_is(d.approved_by, "bob"));
        assert_int_equal(d.approved_ms, r->wall_us / 1000);
        assert_int_equal(d.processed_ms, cases[i].approve ? r->wall_us / 1000 : 0);
        assert_int_equal(d.succeeded, cases[i].approve && !cases[i].ended);
    }
}

/* --- runs of engines outside ---------------------------------------------------------------------------- */

static struct processed_command *processed(struct rig *r, const struct uuid *signal, bool ok, const char *run)
{
    struct processed_command *c = ARENA_NEW(r->arena, struct processed_command);
    c->run_id = STR("run");
    c->tenant = STR(TENANT);
    c->signal_id = *signal;
    c->succeeded = ok;
    c->new_run = run ? str_of(run) : STR_ABSENT;
    rig_post(r, &c->base, &processed_command_type);
    rig_step(r);
    return c;
}

/* Which run repeats this one is said with the success of a RETRY_RUN, and never another one afterwards. */
RIG_TEST(test_the_run_that_repeats_one_is_named_once, r)
{
    append_good(r, "run", "RunStarted", NULL, 1);
    struct signal_command *pause = send_signal(r, &(struct sent){.run = "run", .type = SIGNAL_PAUSE});
    append_good(r, "run", "RunFailed", NULL, 1);
    struct signal_command *retry = send_signal(r, &(struct sent){.run = "run", .type = SIGNAL_RETRY_RUN});
    assert_int_equal(processed(r, &pause->signal_id, true, "new")->base.result, ERR_REQUEST_MALFORMED);
    assert_int_equal(processed(r, &retry->signal_id, false, "new")->base.result, ERR_REQUEST_MALFORMED);
    assert_int_equal(decision_by(r, &retry->policy_id).processed_ms, 0);
    struct processed_command *c = processed(r, &retry->signal_id, true, "new");
    assert_int_equal(c->base.result, ERR_OK);
    assert_memory_equal(&c->policy_id, &retry->policy_id, sizeof c->policy_id);
    assert_true(str_is(decision_by(r, &retry->policy_id).new_run, "new"));
    static const char *const told[] = {"new", NULL, "other"};
    for (size_t i = 0; i < LENGTH_OF(told); i++) {
        c = processed(r, &retry->signal_id, true, told[i]);
        assert_int_equal(c->base.result, ERR_OK);
        assert_int_equal(c->refusal.code, i < 2 ? ERR_OK : ERR_SIGNAL_DUPLICATE);
    }
    assert_int_equal(processed(r, &retry->signal_id, false, NULL)->refusal.code, ERR_SIGNAL_DUPLICATE);
    assert_true(str_is(decision_by(r, &retry->policy_id).new_run, "new"));
    assert_int_equal(processed(r, &pause->signal_id, false, NULL)->refusal.code, ERR_OK);
    assert_int_equal(decision_by(r, &pause->policy_id).succeeded, 0);
}

int main(void)
{
    return rig_run_all();
}
