/* Decisions about signals: who may, what is recorded, what a repetition gets, how an approval goes. */
#include "unit/engine/engine_rig.h"

#include "base/banned.h"

static const char one_step[] = "{\"planId\":\"one\",\"planVersion\":\"1\",\"onFailure\":\"wait\","
                               "\"steps\":[{\"stepId\":\"a\"}]}";

static void set(struct rig *r, const char *key, const char *value)
{
    struct err err;
    assert_int_equal(settings_set(&r->settings, key, value, ORIGIN_FLAG, &err), ERR_OK);
}

static const char *payload_for(enum signal_type t)
{
    switch (t) {
    case SIGNAL_RETRY_STEP:
    case SIGNAL_SKIP_STEP:
        return "{\"stepId\":\"a\"}";
    case SIGNAL_INJECT_OVERRIDE:
        return "{\"stepId\":\"a\",\"override\":{}}";
    case SIGNAL_UPDATE_TARGET:
        return "{\"stepId\":\"a\",\"newTarget\":{}}";
    case SIGNAL_UPDATE_PARAMS:
        return "{\"params\":{}}";
    case SIGNAL_ESCALATE_ALERT:
        return "{\"level\":\"INFO\"}";
    case SIGNAL_EMERGENCY_STOP:
        return "{\"reason\":\"r\"}";
    case SIGNAL_PAUSE:
    case SIGNAL_RESUME:
    case SIGNAL_CANCEL:
    case SIGNAL_RETRY_RUN:
    case SIGNAL_TYPE_COUNT:
        break;
    }
    return "{}";
}

/* --- who may -------------------------------------------------------------------------------------------- */

/* Written out from the contract, section 4.2: PAUSE RESUME CANCEL RETRY_STEP RETRY_RUN UPDATE_PARAMS
 * INJECT_OVERRIDE ESCALATE_ALERT SKIP_STEP UPDATE_TARGET EMERGENCY_STOP. */
static const struct {
    const char *roles, *may; /* y: allowed */
} rbac[] = {
    {"System", "nnnnnnnynnn"},   {"Operator", "yyynnnnnnnn"}, {"Engineer", "yyyyynnnynn"},
    {"Admin", "yyyyyyynyyy"},    {"", "nnnnnnnnnnn"},         {"Engine", "nnnnnnnnnnn"},
    {"operator", "nnnnnnnnnnn"}, {"Viewer", "nnnnnnnnnnn"},   {"System,Admin", "yyyyyyyyyyy"},
};

/* [SIG-092] [SIG-093] [SIG-094] [SIG-095] [SIG-025] [SIG-026] [SIG-120]: a refusal is recorded, raises a
 * security event and changes nothing */
RIG_TEST(test_who_may_send_which_signal, r)
{
    put_plan(r, one_step);
    for (size_t i = 0; i < LENGTH_OF(rbac); i++)
        for (int t = 0; t < SIGNAL_TYPE_COUNT; t++) {
            const char *run = arena_printf(r->arena, "run-%zu-%d", i, t).ptr;
            start_run(r, run, "one");
            size_t security = count_alerts(r, ALERT_SECURITY, NULL);
            struct signal_command *c =
                send_signal(r, &(struct sent){.run = run,
                                              .type = (enum signal_type)t,
                                              .payload = payload_for((enum signal_type)t),
                                              .roles = rbac[i].roles,
                                              .reason = "because"});
            const struct decision_row d = decision_by(r, &c->policy_id);
            bool may = rbac[i].may[t] == 'y';
            assert_int_equal(d.state, may ? DECISION_ACCEPTED : DECISION_REJECTED);
            assert_int_equal(count_alerts(r, ALERT_SECURITY, NULL), security + !may);
            if (may)
                continue; /* the state's word on it is another matter */
            assert_int_equal(c->answer.refusal.code, ERR_AUTHZ_DENIED);
            assert_true(str_is(d.error_code, "AUTHZ_DENIED") && d.reason.len);
            assert_int_equal(d.processed_ms, 0);
            assert_story(r, run, "RunQueued");
        }
}

/* [SIG-013] [SIG-014] [SIG-015] [SIG-019] [SIG-096] [SIG-097] [SIG-114] [SIG-121] */
RIG_TEST(test_destructive_signals_need_a_reason_and_raise_an_alert, r)
{
    static const char destructive[] = "nnnnnyynnyy";
    static const char *const nothing[] = {NULL, "", "  \t\n "};
    struct alert_row alert;
    put_plan(r, one_step);
    for (int t = 0; t < SIGNAL_TYPE_COUNT; t++) {
        const char *run = arena_printf(r->arena, "run-%d", t).ptr;
        bool is = destructive[t] == 'y';
        struct sent s = {.run = run,
                         .type = (enum signal_type)t,
                         .payload = payload_for((enum signal_type)t),
                         .roles = "Admin,System"};
        assert_int_equal(signal_is_destructive((enum signal_type)t), is);
        start_run(r, run, "one");
        for (size_t i = 0; is && i < LENGTH_OF(nothing); i++) {
            s.reason = nothing[i];
            size_t before = count_alerts(r, ALERT_DESTRUCTIVE_SIGNAL, NULL);
            struct signal_command *c = send_signal(r, &s);
            assert_int_equal(c->answer.refusal.code, ERR_AUTHZ_REASON_REQUIRED);
            assert_string_equal(c->answer.refusal.detail, "Destructive signal requires justification");
            assert_int_equal(decision_by(r, &c->policy_id).state, DECISION_REJECTED);
            assert_int_equal(count_alerts(r, ALERT_DESTRUCTIVE_SIGNAL, NULL), before);
        }
        size_t before = count_alerts(r, ALERT_DESTRUCTIVE_SIGNAL, NULL);
        s.reason = is ? " because " : NULL;
        struct signal_command *c = send_signal(r, &s);
        assert_int_equal(decision_by(r, &c->policy_id).state, DECISION_ACCEPTED);
        assert_int_equal(count_alerts(r, ALERT_DESTRUCTIVE_SIGNAL, &alert), before + is);
        if (!is)
            continue;
        assert_int_equal(alert.severity, SEVERITY_P1);
        assert_memory_equal(alert.event_id.ptr, c->decision_id.bytes, 16);
        assert_int_equal(alert.run, run_of(r, run).num);
        assert_true(str_is(alert.detail, "ada"));
        assert_true(str_is(decision_by(r, &c->policy_id).audit_reason, "because"));
    }
}

/* [SIG-067] [SIG-087] [SIG-088] [SIG-089] [SIG-090] [SIG-091], AS-24 */
RIG_TEST(test_the_effective_role_is_the_least_that_suffices, r)
{
    static const struct {
        const char *roles;
        enum signal_type type;
        const char *effective;
    } cases[] = {
        {"Admin,Operator", SIGNAL_PAUSE, "Operator"},
        {"Admin,Engineer", SIGNAL_RETRY_RUN, "Engineer"},
        {"Operator,Engineer", SIGNAL_RETRY_STEP, "Engineer"},
        {"Engineer", SIGNAL_PAUSE, "Engineer"},
        {"Admin", SIGNAL_PAUSE, "Admin"},
        {"Operator,Engineer", SIGNAL_UPDATE_PARAMS, "Operator"},
        {"Admin,Engineer", SIGNAL_ESCALATE_ALERT, "Engineer"},
        {"", SIGNAL_PAUSE, "NONE"},
        {"Engine,Viewer", SIGNAL_PAUSE, "NONE"},
        {"Admin,System", SIGNAL_ESCALATE_ALERT, "System"},
        {"System,Operator,Admin", SIGNAL_CANCEL, "Operator"},
    };
    put_plan(r, one_step);
    start_run(r, "run", "one");
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct signal_command *c = send_signal(r, &(struct sent){.run = "run",
                                                                 .type = cases[i].type,
                                                                 .payload = payload_for(cases[i].type),
                                                                 .roles = cases[i].roles});
        assert_true(str_is(decision_by(r, &c->policy_id).role, cases[i].effective));
    }
}

/* [SIG-055] [SIG-068] [SIG-110] [SIG-111] [SIG-112] [SIG-122]: AS-20 */
RIG_TEST(test_another_tenants_admin_is_refused_and_recorded, r)
{
    struct alert_row alert;
    put_plan(r, one_step);
    start_run(r, "run", "one");
    struct sent s = {
        .run = "run", .type = SIGNAL_CANCEL, .tenant = "evil", .actor = "mallory", .signal_id = uuid_v4()};
    struct signal_command *c = send_signal(r, &s);
    assert_int_equal(c->answer.refusal.code, ERR_AUTHZ_TENANT_FORBIDDEN);
    const struct decision_row d = decision_by(r, &c->policy_id);
    assert_int_equal(d.state, DECISION_REJECTED);
    assert_int_equal(d.tenant, run_of(r, "run").tenant);
    assert_true(str_is(d.actor_tenant, "evil"));
    assert_int_equal(count_alerts(r, ALERT_SECURITY, &alert), 1);
    assert_true(str_is(alert.detail, "mallory of tenant evil"));
    assert_true(str_is(alert.code, "AUTHZ_TENANT_FORBIDDEN"));
    assert_story(r, "run", "RunQueued");
    c = send_signal(r, &s); /* again: the same answer, no second record */
    assert_int_equal(c->answer.refusal.code, ERR_AUTHZ_TENANT_FORBIDDEN);
    assert_true(c->answer.replayed);
    assert_int_equal(count_rows(r, &table_decision_row), 1);
    assert_int_equal(count_alerts(r, ALERT_SECURITY, NULL), 1);
    s.tenant = "worse"; /* whose mallory is somebody else */
    c = send_signal(r, &s);
    assert_int_equal(c->base.result, ERR_AUTHZ_TENANT_FORBIDDEN);
    c = send_signal(r, &(struct sent){.run = "run", .type = SIGNAL_PAUSE});
    assert_null(decision_by(r, &c->policy_id).actor_tenant.ptr);
}

/* AS-02: tenant, role, reason, in that order. */
RIG_TEST(test_a_role_is_judged_before_a_reason, r)
{
    put_plan(r, one_step);
    start_run(r, "run", "one");
    struct sent s = {.run = "run", .type = SIGNAL_UPDATE_PARAMS, .payload = "{\"params\":{}}"};
    const struct {
        const char *tenant, *roles;
        enum err_code heard;
    } cases[] = {{"evil", "Operator", ERR_AUTHZ_TENANT_FORBIDDEN},
                 {TENANT, "Operator", ERR_AUTHZ_DENIED},
                 {TENANT, "Admin", ERR_AUTHZ_REASON_REQUIRED}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        s.tenant = cases[i].tenant;
        s.roles = cases[i].roles;
        assert_int_equal(send_signal(r, &s)->answer.refusal.code, cases[i].heard);
    }
}

/* What has no room in its minute (api/engine/signal_limits.h) leaves no record; the other kind passes. */
RIG_TEST(test_a_decision_without_room_is_not_recorded, r)
{
    put_plan(r, one_step);
    start_run(r, "run", "one");
    const struct signal_room full = {.full = {.code = ERR_REQUEST_RATE_LIMITED}};
    struct signal_room none_if_allowed = full, none_if_refused = full;
    none_if_allowed.none_if_allowed = none_if_refused.none_if_refused = true;
    const struct {
        struct signal_room room;
        const char *roles;
        enum err_code heard;
    } cases[] = {{none_if_refused, "Viewer", ERR_REQUEST_RATE_LIMITED},
                 {none_if_refused, "Admin", ERR_OK},
                 {none_if_allowed, "Viewer", ERR_AUTHZ_DENIED},
                 {none_if_allowed, "Admin", ERR_REQUEST_RATE_LIMITED}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct sent s = {.run = "run", .type = SIGNAL_PAUSE, .roles = cases[i].roles, .room = cases[i].room};
        size_t records = count_rows(r, &table_decision_row), alerts = count_rows(r, &table_alert_row);
        s.signal_id = uuid_v4();
        for (int again = 0; again < 2; again++) /* also what is replayed counts */
            assert_int_equal(send_signal(r, &s)->answer.refusal.code, cases[i].heard);
        bool recorded = cases[i].heard != ERR_REQUEST_RATE_LIMITED;
        assert_int_equal(count_rows(r, &table_decision_row), records + recorded);
        assert_int_equal(count_rows(r, &table_alert_row), alerts + (cases[i].heard == ERR_AUTHZ_DENIED));
    }
    assert_story(r, "run", "RunQueued RunStarted RunPaused");
}

RIG_TEST(test_what_was_decided_is_not_told_again_without_room, r)
{
    put_plan(r, one_step);
    start_run(r, "run", "one");
    for (int refused = 0; refused < 2; refused++) {
        struct sent s = {.run = "run",
                         .type = SIGNAL_PAUSE,
                         .roles = refused ? "Viewer" : "Admin",
                         .signal_id = uuid_v4()};
        (void)send_signal(r, &s);
        s.room = (struct signal_room){.none_if_allowed = !refused,
                                      .none_if_refused = refused,
                                      .full = {.code = ERR_REQUEST_RATE_LIMITED}};
        assert_int_equal(send_signal(r, &s)->answer.refusal.code, ERR_REQUEST_RATE_LIMITED);
    }
}

/* Who has the same name elsewhere does not read what was decided here. */
RIG_TEST(test_a_namesake_of_another_tenant_gets_no_answer_of_ours, r)
{
    put_plan(r, one_step);
    start_run(r, "run", "one");
    struct sent s = {.run = "run", .type = SIGNAL_PAUSE, .signal_id = uuid_v4()};
    assert_int_equal(send_signal(r, &s)->answer.refusal.code, ERR_OK);
    s.tenant = "evil";
    struct signal_command *c = send_signal(r, &s);
    assert_int_equal(c->base.result, ERR_AUTHZ_TENANT_FORBIDDEN);
    assert_false(c->answer.replayed);
}

RIG_TEST(test_a_signal_that_is_switched_off_is_denied, r)
{
    set(r, "engine.disabled_signals", "SKIP_STEP,EMERGENCY_STOP");
    put_plan(r, one_step);
    start_run(r, "run", "one");
    assert_int_equal(signal_run(r, "run", SIGNAL_EMERGENCY_STOP, "{\"reason\":\"r\"}"), ERR_AUTHZ_DENIED);
    assert_int_equal(signal_run(r, "run", SIGNAL_SKIP_STEP, "{\"stepId\":\"a\"}"), ERR_AUTHZ_DENIED);
    assert_int_equal(signal_run(r, "run", SIGNAL_PAUSE, NULL), ERR_OK);
}

/* --- the record ----------------------------------------------------------------------------------------- */

/* The ids of the decision are those the caller drew: the engine makes none of its own.
 * [SIG-060] [SIG-062] [SIG-065] [SIG-066] [SIG-072] [SIG-073] [SIG-074] [SIG-079] [SIG-098] */
RIG_TEST(test_a_decision_says_who_what_when_and_what_became_of_it, r)
{
    put_plan(r, one_step);
    start_run(r, "run", "one");
    rig_pass(r, 4321);
    struct signal_command *c = send_signal(
        r, &(struct sent){
               .run = "run", .type = SIGNAL_PAUSE, .payload = "{ \"reason\" : \"x\" }", .roles = "Operator"});
    const struct decision_row d = decision_by(r, &c->policy_id);
    assert_memory_equal(d.uuid.ptr, c->decision_id.bytes, 16);
    assert_memory_equal(d.signal.ptr, c->signal_id.bytes, 16);
    assert_memory_equal(d.policy.ptr, c->policy_id.bytes, 16);
    assert_int_equal(d.run, run_of(r, "run").num);
    assert_int_equal(d.type, SIGNAL_PAUSE);
    assert_int_equal(d.state, DECISION_ACCEPTED);
    assert_true(str_is(d.actor, "ada") && str_is(d.role, "Operator"));
    assert_true(str_is(d.payload, "{ \"reason\" : \"x\" }"));
    assert_int_equal(d.created_ms, r->wall_us / 1000);
    assert_int_equal(d.processed_ms, r->wall_us / 1000);
    assert_int_equal(d.succeeded, 1);
    assert_null(d.error_code.ptr);
    assert_int_equal(c->answer.decision, DECISION_ACCEPTED);
    assert_true(c->answer.processed && c->answer.succeeded && !c->answer.replayed);
}

/* [SIG-051] [SIG-052] [SIG-053] [SIG-100] [SIG-116] [SIG-117] [SIG-118]: a repetition gets what was
 * decided; also a refusal, also a day and a restart later, also a hundred at once */
RIG_TEST(test_a_signal_takes_effect_once, r)
{
    enum { TOGETHER = 100 };
    struct signal_command *c[TOGETHER];
    put_plan(r, one_step);
    start_run(r, "run", "one");
    struct sent s = {.run = "run", .type = SIGNAL_PAUSE, .signal_id = uuid_v4()};
    for (int i = 0; i < TOGETHER; i++)
        c[i] = post_signal(r, &s);
    rig_step(r);
    for (int i = 0; i < TOGETHER; i++) {
        assert_int_equal(c[i]->base.result, ERR_OK);
        assert_int_equal(c[i]->answer.replayed, i > 0);
        assert_memory_equal(&c[i]->answer.policy_id, &c[0]->policy_id, 16);
    }
    signal_run(r, "run", SIGNAL_RESUME, NULL);
    rig_restart(r, 86400000);
    struct signal_command *late = send_signal(r, &s);
    assert_true(late->answer.replayed);
    assert_memory_equal(&late->answer.policy_id, &c[0]->policy_id, 16);
    assert_story(r, "run", "RunQueued RunStarted RunPaused RunResumed");
    struct sent refused = {.run = "run", .type = SIGNAL_RETRY_RUN, .signal_id = uuid_v4()};
    assert_int_equal(send_signal(r, &refused)->answer.refusal.code, ERR_STEP_NOT_TERMINAL);
    signal_run(r, "run", SIGNAL_CANCEL, NULL); /* now it could be */
    struct signal_command *again = send_signal(r, &refused);
    assert_int_equal(again->answer.refusal.code, ERR_STEP_NOT_TERMINAL);
    assert_true(again->answer.replayed);
}

/* [SIG-054] [SIG-123]: AS-03 */
RIG_TEST(test_a_signal_id_is_one_signal_of_one_run, r)
{
    put_plan(r, one_step);
    start_run(r, "run", "one");
    start_run(r, "other", "one");
    struct sent s = {.run = "run", .type = SIGNAL_PAUSE, .signal_id = uuid_v4()};
    assert_int_equal(send_signal(r, &s)->answer.refusal.code, ERR_OK);
    struct sent changed = s;
    changed.payload = "{\"reason\":\"y\"}";
    struct uuid known = send_signal(r, &s)->answer.policy_id;
    assert_memory_equal(&send_signal(r, &changed)->answer.policy_id, &known, sizeof known);
    assert_int_equal(send_signal(r, &changed)->answer.refusal.code, ERR_SIGNAL_DUPLICATE);
    changed = s;
    changed.type = SIGNAL_CANCEL;
    assert_int_equal(send_signal(r, &changed)->answer.refusal.code, ERR_SIGNAL_DUPLICATE);
    assert_status(r, "run", "PAUSED");
    s.run = "other";
    struct signal_command *c = send_signal(r, &s);
    assert_false(c->answer.replayed);
    assert_status(r, "other", "PAUSED");
    assert_int_equal(count_rows(r, &table_decision_row), 2);
}

/* [SIG-102] [SIG-104]: both or neither */
RIG_TEST(test_a_record_that_cannot_be_written_has_no_effect, r)
{
    put_plan(r, one_step);
    start_run(r, "run", "one");
    struct sent s = {.run = "run", .type = SIGNAL_CANCEL, .signal_id = uuid_v4()};
    r->failures = 1;
    assert_int_equal(send_signal(r, &s)->base.result, ERR_STORAGE_DB_ERROR);
    assert_int_equal(count_rows(r, &table_decision_row), 0);
    assert_story(r, "run", "RunQueued");
    assert_int_equal(count_ready(r), 1);
    rig_pass(r, 1000);
    struct signal_command *c = send_signal(r, &s);
    assert_int_equal(c->answer.refusal.code, ERR_OK);
    assert_false(c->answer.replayed);
    assert_status(r, "run", "CANCELLED");
}

/* [SIG-028]: in the order in which they came, in one batch too */
RIG_TEST(test_signals_are_taken_in_order, r)
{
    static const enum signal_type types[] = {SIGNAL_PAUSE, SIGNAL_RESUME, SIGNAL_PAUSE, SIGNAL_CANCEL,
                                             SIGNAL_PAUSE};
    struct signal_command *c[LENGTH_OF(types)];
    put_plan(r, one_step);
    start_run(r, "run", "one");
    for (size_t i = 0; i < LENGTH_OF(types); i++)
        c[i] = post_signal(r, &(struct sent){.run = "run", .type = types[i]});
    rig_step(r);
    assert_story(r, "run", "RunQueued RunStarted RunPaused RunResumed RunPaused:2 RunCancelled");
    for (size_t i = 0; i + 1 < LENGTH_OF(types); i++)
        assert_int_equal(c[i]->answer.refusal.code, ERR_OK);
    assert_int_equal(c[4]->answer.refusal.code, ERR_RUN_TERMINAL);
}

/* --- approval ------------------------------------------------------------------------------------------- */

/* [SIG-075] [SIG-081] [SIG-082] [SIG-084]: AS-04 */
RIG_TEST(test_what_needs_approval_is_held_until_another_admin_agrees, r)
{
    set(r, "engine.approval_required", "CANCEL,EMERGENCY_STOP");
    put_plan(r, one_step);
    start_run(r, "run", "one");
    struct sent s = {.run = "run", .type = SIGNAL_CANCEL, .signal_id = uuid_v4()};
    struct signal_command *c = send_signal(r, &s);
    assert_int_equal(c->answer.decision, DECISION_REVISION_REQUIRED);
    assert_false(c->answer.processed);
    assert_story(r, "run", "RunQueued");
    assert_int_equal(decision_by(r, &c->policy_id).needs_approval, 1);
    assert_int_equal(settle_decision(r, &c->policy_id, "ada", true)->base.result,
                     ERR_AUTHZ_DENIED); /* the actor */
    struct settle_command *approved = settle_decision(r, &c->policy_id, "bob", true);
    assert_int_equal(approved->base.result, ERR_OK);
    assert_int_equal(approved->answer.decision, DECISION_ACCEPTED);
    assert_true(approved->answer.succeeded);
    assert_status(r, "run", "CANCELLED");
    const struct decision_row d = decision_by(r, &c->policy_id);
    assert_true(str_is(d.approved_by, "bob") && d.approved_ms && d.processed_ms);
    approved = settle_decision(r, &c->policy_id, "carol", true); /* once is enough */
    assert_true(approved->answer.replayed);
    assert_int_equal(settle_decision(r, &c->policy_id, "carol", false)->answer.refusal.code,
                     ERR_SIGNAL_DUPLICATE);
    assert_true(send_signal(r, &s)->answer.replayed);
    assert_story(r, "run", "RunQueued RunCancelled");
}

RIG_TEST(test_what_another_admin_rejects_never_happens, r)
{
    set(r, "engine.approval_required", "EMERGENCY_STOP");
    put_plan(r, one_step);
    start_run(r, "run", "one");
    struct sent s = {.run = "run",
                     .type = SIGNAL_EMERGENCY_STOP,
                     .payload = "{\"reason\":\"r\"}",
                     .reason = "r",
                     .signal_id = uuid_v4()};
    struct signal_command *c = send_signal(r, &s);
    assert_int_equal(count_alerts(r, ALERT_DESTRUCTIVE_SIGNAL, NULL), 1); /* AS-15: also while pending */
    struct settle_command *no = settle_decision(r, &c->policy_id, "bob", false);
    assert_int_equal(no->answer.decision, DECISION_REJECTED);
    assert_true(settle_decision(r, &c->policy_id, "bob", false)->answer.replayed);
    assert_int_equal(settle_decision(r, &c->policy_id, "bob", true)->answer.refusal.code,
                     ERR_SIGNAL_DUPLICATE);
    assert_story(r, "run", "RunQueued");
    assert_int_equal(send_signal(r, &s)->answer.refusal.code, ERR_AUTHZ_DENIED);
    assert_int_equal(count_alerts(r, ALERT_DESTRUCTIVE_SIGNAL, NULL), 1);
}

/* AS-04: the state is asked when it is approved */
RIG_TEST(test_the_state_rules_when_it_is_approved, r)
{
    set(r, "engine.approval_required", "PAUSE,RETRY_RUN");
    put_plan(r, one_step);
    start_run(r, "run", "one");
    struct signal_command *pause = send_signal(r, &(struct sent){.run = "run", .type = SIGNAL_PAUSE}),
                          *retry = send_signal(r, &(struct sent){.run = "run", .type = SIGNAL_RETRY_RUN});
    signal_run(r, "run", SIGNAL_CANCEL, NULL);
    struct settle_command *c = settle_decision(r, &pause->policy_id, "bob", true);
    assert_int_equal(c->answer.refusal.code, ERR_RUN_TERMINAL);
    const struct decision_row d = decision_by(r, &pause->policy_id);
    assert_int_equal(d.state, DECISION_ACCEPTED);
    assert_true(d.processed_ms && !d.succeeded && str_is(d.error_code, "RUN_TERMINAL"));
    c = settle_decision(r, &retry->policy_id, "bob", true);
    assert_int_equal(c->answer.refusal.code, ERR_OK);
    assert_true(str_is(run_of(r, "again-approved").original, "run"));
    assert_true(str_is(decision_by(r, &retry->policy_id).new_run, "again-approved"));
}

/* It is as if there were none. */
RIG_TEST(test_what_is_of_another_project_cannot_be_settled, r)
{
    set(r, "engine.approval_required", "PAUSE");
    append_good(r, "run", "RunStarted", NULL, 1);
    struct signal_command *c = send_signal(r, &(struct sent){.run = "run", .type = SIGNAL_PAUSE});
    for (int approve = 0; approve < 2; approve++)
        assert_int_equal(settle_of_project(r, &c->policy_id, "other", approve)->base.result,
                         ERR_SIGNAL_NOT_FOUND);
    assert_int_equal(decision_by(r, &c->policy_id).state, DECISION_REVISION_REQUIRED);
    assert_int_equal(settle_of_project(r, &c->policy_id, "proj", true)->answer.decision, DECISION_ACCEPTED);
}

RIG_TEST(test_what_needs_no_approval_cannot_be_settled, r)
{
    put_plan(r, one_step);
    start_run(r, "run", "one");
    struct signal_command *c = send_signal(r, &(struct sent){.run = "run", .type = SIGNAL_PAUSE});
    assert_int_equal(settle_decision(r, &c->policy_id, "bob", true)->answer.refusal.code,
                     ERR_SIGNAL_DUPLICATE);
    struct uuid unknown = uuid_v4();
    assert_int_equal(settle_decision(r, &unknown, "bob", true)->base.result, ERR_SIGNAL_NOT_FOUND);
}

/* A denied one is not held: allowed=false wins. What a policy decision point said goes before the table. */
RIG_TEST(test_a_policy_decision_point_decides_instead_of_the_table, r)
{
    put_plan(r, one_step);
    start_run(r, "run", "one");
    struct sent s = {.run = "run", .type = SIGNAL_PAUSE, .roles = "Admin"};
    s.given = (struct policy_given){
        .source = POLICY_GIVEN, .requires_approval = true, .reason = STR("not on Mondays")};
    struct signal_command *c = send_signal(r, &s);
    assert_int_equal(c->answer.refusal.code, ERR_AUTHZ_DENIED);
    assert_string_equal(c->answer.refusal.detail, "not on Mondays");
    assert_int_equal(decision_by(r, &c->policy_id).state, DECISION_REJECTED);
    s.roles = "";
    s.given = (struct policy_given){.source = POLICY_GIVEN, .allowed = true};
    assert_int_equal(send_signal(r, &s)->answer.refusal.code, ERR_OK);
    assert_status(r, "run", "PAUSED");
    s.tenant = "evil"; /* but whose run it is, is ours to say */
    assert_int_equal(send_signal(r, &s)->answer.refusal.code, ERR_AUTHZ_TENANT_FORBIDDEN);
    s = (struct sent){
        .run = "run", .type = SIGNAL_UPDATE_PARAMS, .payload = "{\"params\":{}}", .given = s.given};
    assert_int_equal(send_signal(r, &s)->answer.refusal.code, ERR_AUTHZ_REASON_REQUIRED);
}

/* --- runs of engines outside ---------------------------------------------------------------------------- */

static struct processed_command *processed_by(struct rig *r, const char *tenant, const char *run,
                                              const struct uuid *id, bool ok, const char *code)
{
    struct processed_command *c = ARENA_NEW(r->arena, struct processed_command);
    *c = (struct processed_command){.run_id = str_of(run),
                                    .tenant = str_of(tenant),
                                    .signal_id = *id,
                                    .succeeded = ok,
                                    .error_code = code ? str_of(code) : STR_ABSENT};
    rig_post(r, &c->base, &processed_command_type);
    rig_step(r);
    return c;
}

static struct processed_command *processed(struct rig *r, const char *run, const struct uuid *id, bool ok,
                                           const char *code)
{
    return processed_by(r, TENANT, run, id, ok, code);
}

RIG_TEST(test_only_the_runs_tenant_says_what_was_processed, r)
{
    append_good(r, "run", "RunStarted", NULL, 1);
    struct signal_command *c = send_signal(r, &(struct sent){.run = "run", .type = SIGNAL_PAUSE});
    assert_int_equal(processed_by(r, "evil", "run", &c->signal_id, true, NULL)->base.result,
                     ERR_SIGNAL_NOT_FOUND);
    assert_int_equal(decision_by(r, &c->policy_id).processed_ms, 0);
}

RIG_TEST(test_an_engine_outside_processes_what_was_accepted, r)
{
    append_good(r, "run", "RunStarted", NULL, 1);
    struct signal_command *c = send_signal(r, &(struct sent){.run = "run", .type = SIGNAL_PAUSE});
    assert_int_equal(c->answer.decision, DECISION_ACCEPTED);
    assert_false(c->answer.processed);
    assert_story(r, "run", "RunStarted"); /* whose events they are, writes them */
    assert_int_equal(processed(r, "run", &c->signal_id, true, NULL)->base.result, ERR_OK);
    const struct decision_row d = decision_by(r, &c->policy_id);
    assert_true(d.processed_ms && d.succeeded);
    assert_int_equal(processed(r, "run", &c->signal_id, true, NULL)->refusal.code, ERR_OK);
    assert_int_equal(processed(r, "run", &c->signal_id, false, "X")->refusal.code, ERR_SIGNAL_DUPLICATE);
    struct uuid unknown = uuid_v4();
    assert_int_equal(processed(r, "run", &unknown, true, NULL)->base.result, ERR_SIGNAL_NOT_FOUND);
    struct signal_command *denied =
        send_signal(r, &(struct sent){.run = "run", .type = SIGNAL_PAUSE, .roles = ""});
    assert_int_equal(processed(r, "run", &denied->signal_id, true, NULL)->refusal.code, ERR_SIGNAL_DUPLICATE);
}

/* What an engine outside calls its failure is told in so many bytes, and no character is cut through. */
RIG_TEST(test_a_long_error_code_is_cut_between_characters, r)
{
    append_good(r, "run", "RunStarted", NULL, 1);
    for (size_t plain = SIGNAL_ERROR_CODE_MAX - 3; plain <= SIGNAL_ERROR_CODE_MAX + 1; plain++) {
        struct sent s = {.run = "run", .type = SIGNAL_PAUSE, .signal_id = uuid_v4()};
        char code[SIGNAL_ERROR_CODE_MAX + 4];
        (void)send_signal(r, &s);
        memset(code, 'x', plain);
        snprintf(code + plain, sizeof code - plain, "%s", "\xc3\xbc"); /* one letter of two bytes */
        (void)processed(r, "run", &s.signal_id, false, code);
        size_t whole = plain + 2, told = whole <= SIGNAL_ERROR_CODE_MAX  ? whole
                                         : plain < SIGNAL_ERROR_CODE_MAX ? plain
                                                                         : SIGNAL_ERROR_CODE_MAX;
        const char *heard = send_signal(r, &s)->answer.error_code;
        assert_int_equal(strlen(heard), told);
        assert_memory_equal(heard, code, told);
    }
}

/* The projected state forbids there too; escalations are ours. */
RIG_TEST(test_the_state_of_a_run_outside_forbids_as_well, r)
{
    append_good(r, "run", "RunStarted", NULL, 1);
    append_good(r, "run", "StepStarted", "a", 1);
    assert_int_equal(signal_run(r, "run", SIGNAL_RETRY_STEP, "{\"stepId\":\"a\"}"), ERR_STEP_NOT_TERMINAL);
    assert_int_equal(signal_run(r, "run", SIGNAL_RETRY_STEP, "{\"stepId\":\"b\"}"),
                     ERR_SIGNAL_INVALID_PAYLOAD);
    append_good(r, "run", "RunCompleted", NULL, 1);
    assert_int_equal(signal_run(r, "run", SIGNAL_PAUSE, NULL), ERR_RUN_TERMINAL);
    struct signal_command *c = send_signal(r, &(struct sent){.run = "run",
                                                             .type = SIGNAL_ESCALATE_ALERT,
                                                             .roles = "System",
                                                             .payload = "{\"level\":\"P1\"}"});
    assert_true(c->answer.processed && c->answer.succeeded);
    assert_story(r, "run", "RunStarted StepStarted:a:1 RunCompleted ALERT_ESCALATED:4");
}

/* An event of that name and number may be there: the escalation is an event of its own all the same. */
RIG_TEST(test_an_escalation_is_never_taken_for_an_event_that_is_there, r)
{
    append_good(r, "run", "RunStarted", NULL, 1);
    append_good(r, "run", "ALERT_ESCALATED", NULL, 3);
    struct signal_command *c = send_signal(r, &(struct sent){.run = "run",
                                                             .type = SIGNAL_ESCALATE_ALERT,
                                                             .roles = "System",
                                                             .payload = "{\"level\":\"P1\"}"});
    assert_int_equal(c->answer.refusal.code, ERR_OK);
    assert_int_equal(run_of(r, "run").last_seq, 3);
    struct alert_row alert;
    assert_int_equal(count_alerts(r, ALERT_ESCALATION, &alert), 1);
    assert_int_equal(alert.seq, 3);
}

int main(void)
{
    return rig_run_all();
}
