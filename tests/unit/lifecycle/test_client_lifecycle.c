/* Clients against their moves, written out a second time: every action from every state. */
#include "case.h"

#include "base/must.h"
#include "lifecycle/client_lifecycle.h"

#include "base/banned.h"

static const char *const moves[CLIENT_STATE_COUNT][OPERATOR_ACTION_COUNT] = {
    /* suspend, resume, purge-jobs, delete */
    [CLIENT_ACTIVE] = {"suspended", NULL, NULL, "deleted"},
    [CLIENT_SUSPENDED] = {NULL, "active", NULL, "deleted"},
    [CLIENT_DELETED] = {NULL, NULL, NULL, NULL},
};

TEST(test_every_action_from_every_state)
{
    for (int from = 0; from < CLIENT_STATE_COUNT; from++)
        for (int on = 0; on < OPERATOR_ACTION_COUNT; on++) {
            enum client_state to;
            bool moves_on = client_move((enum client_state)from, (enum operator_action)on, &to);
            assert_int_equal(moves_on, moves[from][on] != NULL);
            if (moves_on)
                assert_string_equal(client_state_text(to), moves[from][on]);
        }
}

/* Stored by number: a new one goes to the end. */
TEST(test_numbers_and_names_stay)
{
    static const char *const states[] = {"active", "suspended", "deleted"};
    static const char *const actions[] = {"suspend", "resume", "purge-jobs", "delete"};
    assert_int_equal(CLIENT_STATE_COUNT, LENGTH_OF(states));
    assert_int_equal(OPERATOR_ACTION_COUNT, LENGTH_OF(actions));
    for (int i = 0; i < CLIENT_STATE_COUNT; i++) {
        enum client_state parsed;
        assert_string_equal(client_state_text((enum client_state)i), states[i]);
        assert_true(client_state_parse(str_of(states[i]), &parsed));
        assert_int_equal(parsed, i);
    }
    for (int i = 0; i < OPERATOR_ACTION_COUNT; i++)
        assert_string_equal(operator_action_text((enum operator_action)i), actions[i]);
    enum client_state typed = CLIENT_ACTIVE;
    assert_true(client_state_parse(STR("Suspended"), &typed) && typed == CLIENT_SUSPENDED);
    assert_false(client_state_parse(STR("activ"), &typed));
}
