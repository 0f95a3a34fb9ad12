#include "runtime/domain_table.h"

#include "runtime/event_names.h"

#include "base/banned.h"

/* The two lists have the same domains in the same order. */
#define X(id, ...) GATE_##id,
enum gate_id { DOMAIN_GATE(X) GATE_COUNT };
#undef X
#define X(id, ...) _Static_assert((int)GATE_##id == (int)DOMAIN_##id, "a domain and its gate in one order");
DOMAIN_GATE(X)
#undef X
_Static_assert((int)GATE_COUNT == (int)DOMAIN_COUNT, "every domain states all six things of the gate");

const struct domain_row domain_rows[DOMAIN_COUNT] = {
#define X(id, name, owner, supervisor, restarts, seconds, intent)                                            \
    [DOMAIN_##id] = {name, owner, supervisor, "one_for_one", intent},
    DOMAIN_LIST(X)
#undef X
};

const struct domain_gate domain_gates[DOMAIN_COUNT] = {
#define F(mode)                                    | 1u << FAILURE_MODE_##mode
#define E(event)                                   " " EVENT_##event
#define X(id, failures, key, scaling, slo, events) [DOMAIN_##id] = {0u failures, key, scaling, slo, events},
    DOMAIN_GATE(X)
#undef X
#undef E
#undef F
};

const char *domain_name(enum domain_id id)
{
    return domain_rows[id].name;
}

struct domain_limits domain_limits(enum domain_id id, const struct settings *s)
{
    const struct domain_limits limits[] = {
#define X(id, name, owner, supervisor, restarts, seconds, intent) [DOMAIN_##id] = {s->restarts, s->seconds},
        DOMAIN_LIST(X)
#undef X
    };
    return limits[id];
}
