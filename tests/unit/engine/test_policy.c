/* The judgement about a signal, without a store: which lists name it, what is said, whose word counts. */
#include "unit/engine/engine_rig.h"

#include "engine/policy.h"

#include "base/banned.h"

static struct policy_request request(enum signal_type signal, const struct str *roles, size_t count)
{
    return (struct policy_request){
        .actor = {.user_id = STR("ada"), .tenant = STR(TENANT), .roles = roles, .role_count = count},
        .signal = signal,
        .tenant = STR(TENANT),
        .project = STR("proj"),
        .run_id = STR("run")};
}

static const struct str admin[] = {{"Admin", 5}};

static struct policy_verdict judge(const struct settings *s, const struct policy_request *q,
                                   const struct policy_given *given)
{
    struct policy_verdict v;
    policy_evaluate(s, q, given, &v);
    return v;
}

/* Blanks around a name, and empty places, say nothing; part of a name is another name. */
RIG_TEST(test_a_signal_is_in_a_list_by_its_whole_name, r)
{
    static const struct {
        const char *list;
        bool has;
    } cases[] = {{"PAUSE", true},
                 {"CANCEL,PAUSE", true},
                 {"PAUSE,CANCEL", true},
                 {" PAUSE", true},
                 {"PAUSE ", true},
                 {"  PAUSE  ", true},
                 {"CANCEL ,  PAUSE ,RESUME", true},
                 {",PAUSE", true},
                 {"PAUSE,", true},
                 {"", false},
                 {" ", false},
                 {",", false},
                 {"PAUSED", false},
                 {"PAUS", false},
                 {"XPAUSE", false},
                 {"CANCEL,RESUME", false},
                 {"PAUSE CANCEL", false},
                 {"pause", false}};
    struct policy_request q = request(SIGNAL_PAUSE, admin, 1);
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct settings s = r->settings;
        s.engine_disabled_signals = cases[i].list;
        assert_int_equal(judge(&s, &q, NULL).allowed, !cases[i].has);
        assert_int_equal(policy_is_for_point(&s, &q), !cases[i].has);
        s = r->settings;
        s.engine_approval_required = cases[i].list;
        assert_int_equal(judge(&s, &q, NULL).requires_approval, cases[i].has);
    }
}

RIG_TEST(test_a_reason_is_what_is_left_without_blanks, r)
{
    static const struct {
        const char *said, *kept;
    } cases[] = {{"", NULL},  {" ", NULL},    {" \t\r\n", NULL},        {"a", "a"},
                 {" a", "a"}, {"a ", "a"},    {"\n a b\t", "a b"},      {"\x7f", "\x7f"},
                 {"!", "!"},  {"\x1f!", "!"}, {"\xc3\xa4 ", "\xc3\xa4"}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct str kept = policy_reason(str_of(cases[i].said));
        assert_int_equal(kept.ptr != NULL, cases[i].kept != NULL);
        assert_true(!cases[i].kept || str_is(kept, cases[i].kept));
    }
    assert_null(policy_reason(STR_ABSENT).ptr);
    struct str part = {"x y", 1}; /* no further than it goes */
    assert_int_equal(policy_reason(part).len, 1);
}

/* What stands behind the count is somebody else's. */
RIG_TEST(test_an_actor_has_the_roles_and_projects_that_are_counted, r)
{
    static const struct str roles[] = {{"Operator", 8}, {"Engineer", 8}, {"Admin", 5}};
    static const struct str projects[] = {{"one", 3}, {"two", 3}, {"three", 5}};
    static const char *const effective[] = {"NONE", "Operator", "Engineer", "Engineer"};
    for (size_t count = 0; count <= LENGTH_OF(roles); count++) {
        bool may = false;
        struct policy_actor a = {.roles = roles, .role_count = count, .projects = projects};
        struct str role = policy_effective_role(&a, SIGNAL_RETRY_STEP, &may);
        assert_int_equal(may, count >= 2);
        assert_true(str_is(role, effective[count]));
        a.project_count = count;
        assert_true(policy_may_touch(&a, STR("three")) && policy_may_touch(&a, STR("none")));
        a.scoped = true;
        for (size_t i = 0; i < LENGTH_OF(projects); i++)
            assert_int_equal(policy_may_touch(&a, projects[i]), i < count);
        assert_false(policy_may_touch(&a, STR("none")));
    }
}

/* Tenant, project, switched off, role, reason: the first that is wrong is told. */
RIG_TEST(test_the_first_thing_that_is_wrong_is_told, r)
{
    static const struct {
        const char *what;
        enum err_code code;
    } order[] = {{"the run is another tenant's", ERR_AUTHZ_TENANT_FORBIDDEN},
                 {"the run's project is not in the token's project_scope", ERR_AUTHZ_DENIED},
                 {"this signal is not enabled", ERR_AUTHZ_DENIED},
                 {"no role of the actor may send EMERGENCY_STOP", ERR_AUTHZ_DENIED},
                 {"Destructive signal requires justification", ERR_AUTHZ_REASON_REQUIRED},
                 {"", ERR_OK}};
    for (size_t i = 0; i < LENGTH_OF(order); i++) {
        struct settings s = r->settings;
        struct policy_request q = request(SIGNAL_EMERGENCY_STOP, admin, i <= 3 ? 0 : 1);
        q.actor.tenant = i == 0 ? STR("evil") : STR(TENANT);
        q.actor.scoped = i <= 1;
        s.engine_disabled_signals = i <= 2 ? "EMERGENCY_STOP" : "";
        q.audit_reason = i <= 4 ? STR(" ") : STR("fire");
        struct policy_verdict v = judge(&s, &q, NULL);
        assert_string_equal(v.reason, order[i].what);
        assert_int_equal(v.code, order[i].code);
        assert_int_equal(v.allowed, order[i].code == ERR_OK);
        assert_false(v.requires_approval);
    }
}

/* --- a policy decision point ---------------------------------------------------------------------------- */

RIG_TEST(test_what_a_point_says_is_kept_up_to_its_bound, r)
{
    char words[POLICY_REASON_MAX + 1];
    memset(words, 'w', sizeof words);
    struct policy_request q = request(SIGNAL_PAUSE, NULL, 0);
    for (int allowed = 0; allowed < 2; allowed++)
        for (size_t len = 0; len <= sizeof words; len += len ? 1 : POLICY_REASON_MAX - 1) {
            struct policy_given g = {.source = POLICY_GIVEN, .allowed = allowed, .reason = {words, len}};
            struct policy_verdict v = judge(&r->settings, &q, &g);
            assert_int_equal(v.allowed, allowed);
            assert_int_equal(v.code, allowed ? ERR_OK : ERR_AUTHZ_DENIED);
            if (!len)
                assert_string_equal(v.reason, allowed ? "" : "denied by policy");
            else
                assert_int_equal(strlen(v.reason), len < POLICY_REASON_MAX ? len : POLICY_REASON_MAX);
        }
}

/* Whether the point or a setting asks for it; what was said stands behind; what is denied is not held. */
RIG_TEST(test_what_is_held_says_so_before_anything_else, r)
{
    static const char held[] = "another Admin of the tenant has to approve it";
    struct policy_request q = request(SIGNAL_PAUSE, admin, 1);
    for (int by = 0; by < 4; by++) { /* bit 0: the point, bit 1: the setting */
        struct settings s = r->settings;
        s.engine_approval_required = by & 2 ? "PAUSE" : "";
        struct policy_given g = {.source = POLICY_GIVEN, .allowed = true, .requires_approval = by & 1};
        struct policy_verdict v = judge(&s, &q, &g);
        assert_int_equal(v.requires_approval, by != 0);
        assert_string_equal(v.reason, by ? held : "");
        g.reason = STR("office hours");
        v = judge(&s, &q, &g);
        assert_string_equal(v.reason, by ? "another Admin of the tenant has to approve it: office hours"
                                         : "office hours");
        g.allowed = false;
        v = judge(&s, &q, &g);
        assert_false(v.allowed || v.requires_approval);
        assert_string_equal(v.reason, "office hours");
    }
}

/* A point that did not answer: the table decides, and the record says so. */
RIG_TEST(test_without_an_answer_the_table_decides_and_says_so, r)
{
    struct policy_given g = {.flagged = true, .reason = STR("not heard")};
    struct policy_request q = request(SIGNAL_PAUSE, admin, 1);
    struct policy_verdict v = judge(&r->settings, &q, &g);
    assert_true(v.allowed);
    assert_string_equal(v.reason, "the policy decision point did not answer: by the table of roles");
    q.actor.role_count = 0;
    v = judge(&r->settings, &q, &g);
    assert_false(v.allowed);
    assert_string_equal(v.reason, "no role of the actor may send PAUSE; the policy decision point did not "
                                  "answer: by the table of roles");
}

/* [SIG-025]: an escalation is the System's whatever a point says; and a foreign run is not asked about. */
RIG_TEST(test_some_signals_are_not_for_a_point, r)
{
    struct policy_given yes = {.source = POLICY_GIVEN, .allowed = true};
    struct policy_request q = request(SIGNAL_ESCALATE_ALERT, admin, 1);
    assert_false(policy_is_for_point(&r->settings, &q));
    assert_false(judge(&r->settings, &q, &yes).allowed);
    q.signal = SIGNAL_PAUSE;
    assert_true(policy_is_for_point(&r->settings, &q));
    q.actor.tenant = STR("evil");
    assert_false(policy_is_for_point(&r->settings, &q));
    assert_int_equal(judge(&r->settings, &q, &yes).code, ERR_AUTHZ_TENANT_FORBIDDEN);
}

int main(void)
{
    return store_run("memory", rig_group_memory);
}
