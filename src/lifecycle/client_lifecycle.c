#include "lifecycle/client_lifecycle.h"

#include "base/must.h"

#include "base/banned.h"

/* Every move there is. Absent means refused. */
static const struct {
    enum client_state from;
    enum operator_action on;
    enum client_state to;
} client_moves[] = {
    {CLIENT_ACTIVE, OPERATOR_SUSPEND, CLIENT_SUSPENDED},
    {CLIENT_SUSPENDED, OPERATOR_RESUME, CLIENT_ACTIVE},
    {CLIENT_ACTIVE, OPERATOR_DELETE, CLIENT_DELETED},
    {CLIENT_SUSPENDED, OPERATOR_DELETE, CLIENT_DELETED},
};

static const char *const state_texts[] = {
#define X(name, wire) [CLIENT_##name] = wire,
    CLIENT_STATES(X)
#undef X
};

static const char *const action_texts[] = {
#define X(name, wire) [OPERATOR_##name] = wire,
    OPERATOR_ACTIONS(X)
#undef X
};

bool client_move(enum client_state from, enum operator_action on, enum client_state *ret_to)
{
    for (size_t i = 0; i < LENGTH_OF(client_moves); i++)
        if (client_moves[i].from == from && client_moves[i].on == on) {
            *ret_to = client_moves[i].to;
            return true;
        }
    return false;
}

const char *client_state_text(enum client_state s)
{
    MUST((unsigned)s < CLIENT_STATE_COUNT);
    return state_texts[s];
}

bool client_state_parse(struct str text, enum client_state *ret_state)
{
    for (size_t i = 0; i < LENGTH_OF(state_texts); i++)
        if (str_equal_nocase(text, str_of(state_texts[i]))) {
            *ret_state = (enum client_state)i;
            return true;
        }
    return false;
}

const char *operator_action_text(enum operator_action a)
{
    MUST((unsigned)a < OPERATOR_ACTION_COUNT);
    return action_texts[a];
}
