#include "lifecycle/signals.h"

#include "base/must.h"

#include "base/banned.h"

#define X(name, role, destructive, schema) [SIGNAL_##name] = {#name, SIGNAL_ROLE_##role, destructive, schema},
static const struct {
    const char *name;
    enum signal_role least;
    bool destructive;
    const char *schema;
} types[SIGNAL_TYPE_COUNT] = {SIGNAL_TYPES(X)};
#undef X

#define X(id, name) [SIGNAL_ROLE_##id] = name,
static const char *const roles[SIGNAL_ROLE_COUNT] = {SIGNAL_ROLES(X)};
#undef X

#define X(name) #name,
static const char *const decisions[SIGNAL_DECISION_COUNT] = {SIGNAL_DECISIONS(X)};
#undef X

const char *signal_type_text(enum signal_type t)
{
    MUST((unsigned)t < SIGNAL_TYPE_COUNT);
    return types[t].name;
}

bool signal_type_of(struct str name, enum signal_type *ret_type)
{
    for (int i = 0; i < SIGNAL_TYPE_COUNT; i++)
        if (str_is(name, types[i].name)) {
            *ret_type = (enum signal_type)i;
            return true;
        }
    return false;
}

bool signal_is_destructive(enum signal_type t)
{
    MUST((unsigned)t < SIGNAL_TYPE_COUNT);
    return types[t].destructive;
}

const char *signal_schema(enum signal_type t)
{
    MUST((unsigned)t < SIGNAL_TYPE_COUNT);
    return types[t].schema;
}

const char *signal_role_text(enum signal_role r)
{
    MUST((unsigned)r < SIGNAL_ROLE_COUNT);
    return roles[r];
}

bool signal_role_of(struct str name, enum signal_role *ret_role)
{
    for (int i = 0; i < SIGNAL_ROLE_COUNT; i++)
        if (str_is(name, roles[i])) {
            *ret_role = (enum signal_role)i;
            return true;
        }
    return false;
}

bool signal_role_may(enum signal_role r, enum signal_type t)
{
    MUST((unsigned)r < SIGNAL_ROLE_COUNT && (unsigned)t < SIGNAL_TYPE_COUNT);
    if (r == SIGNAL_ROLE_SYSTEM || types[t].least == SIGNAL_ROLE_SYSTEM)
        return r == types[t].least;
    return r >= types[t].least;
}

const char *signal_decision_text(enum signal_decision d)
{
    MUST((unsigned)d < SIGNAL_DECISION_COUNT);
    return decisions[d];
}

bool signal_decision_settle(enum signal_decision *d, bool approve)
{
    if (*d != DECISION_REVISION_REQUIRED)
        return false;
    *d = approve ? DECISION_ACCEPTED : DECISION_REJECTED;
    return true;
}
