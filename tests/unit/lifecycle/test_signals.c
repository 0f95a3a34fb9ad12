/* Signals, roles and decisions against the contract's tables, written out a second time. */
#include "case.h"

#include "base/must.h"
#include "lifecycle/signals.h"

#include "base/banned.h"

/* Seed 003, sections 1.1 and 4.2: who may, of System, Operator, Engineer, Admin. */
static const struct {
    const char *name, *may, *schema;
    bool destructive;
} wanted[] = {
    {"PAUSE", "nyyy", "Pause", false},
    {"RESUME", "nyyy", "Resume", false},
    {"CANCEL", "nyyy", "Cancel", false},
    {"RETRY_STEP", "nnyy", "RetryStep", false},
    {"RETRY_RUN", "nnyy", "RetryRun", false},
    {"UPDATE_PARAMS", "nnny", "UpdateParams", true},
    {"INJECT_OVERRIDE", "nnny", "InjectOverride", true},
    {"ESCALATE_ALERT", "ynnn", "EscalateAlert", false},
    {"SKIP_STEP", "nnyy", "SkipStep", false},
    {"UPDATE_TARGET", "nnny", "UpdateTarget", true},
    {"EMERGENCY_STOP", "nnny", "EmergencyStop", true},
};
static const char *const role_names[] = {"System", "Operator", "Engineer", "Admin"};

TEST(eleven_signals_with_their_roles)
{
    assert_int_equal(SIGNAL_TYPE_COUNT, LENGTH_OF(wanted));
    for (size_t i = 0; i < LENGTH_OF(wanted); i++) {
        enum signal_type t = SIGNAL_TYPE_COUNT;
        assert_true(signal_type_of(str_of(wanted[i].name), &t));
        assert_string_equal(signal_type_text(t), wanted[i].name);
        assert_string_equal(signal_schema(t), wanted[i].schema);
        assert_int_equal(signal_is_destructive(t), wanted[i].destructive);
        for (size_t r = 0; r < LENGTH_OF(role_names); r++)
            assert_int_equal(signal_role_may((enum signal_role)r, t), wanted[i].may[r] == 'y');
    }
}

TEST(names_are_read_exactly)
{
    static const char *const strange[] = {"", "pause", "PAUS", "PAUSED", "admin", "Viewer", "Admin "};
    enum signal_type t;
    enum signal_role role;
    for (size_t i = 0; i < LENGTH_OF(strange); i++) {
        assert_false(signal_type_of(str_of(strange[i]), &t));
        assert_false(signal_role_of(str_of(strange[i]), &role));
    }
    assert_int_equal(SIGNAL_ROLE_COUNT, LENGTH_OF(role_names));
    for (size_t r = 0; r < LENGTH_OF(role_names); r++) {
        assert_true(signal_role_of(str_of(role_names[r]), &role));
        assert_int_equal(role, r);
        assert_string_equal(signal_role_text(role), role_names[r]);
    }
}

/* Only what is held can be settled, once. */
TEST(a_decision_is_settled_once)
{
    static const char *const names[] = {"ACCEPTED", "REJECTED", "REVISION_REQUIRED"};
    assert_int_equal(SIGNAL_DECISION_COUNT, LENGTH_OF(names));
    for (int d = 0; d < SIGNAL_DECISION_COUNT; d++)
        for (int approve = 0; approve < 2; approve++) {
            enum signal_decision now = (enum signal_decision)d;
            bool held = d == DECISION_REVISION_REQUIRED;
            assert_string_equal(signal_decision_text(now), names[d]);
            assert_int_equal(signal_decision_settle(&now, approve), held);
            assert_int_equal(now, !held ? d : approve ? DECISION_ACCEPTED : DECISION_REJECTED);
        }
}
