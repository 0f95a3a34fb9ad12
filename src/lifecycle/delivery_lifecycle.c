#include "lifecycle/delivery_lifecycle.h"

#include "base/must.h"

#include "base/banned.h"

/* Every move there is. Absent means refused. */
static const struct {
    enum delivery_state from;
    enum delivery_trigger on;
    enum delivery_state to;
} delivery_moves[] = {
    {DELIVERY_PENDING, DELIVERY_ON_SUCCESS, DELIVERY_DELIVERED},
    {DELIVERY_PENDING, DELIVERY_ON_GIVE_UP, DELIVERY_EXHAUSTED},
    {DELIVERY_DELIVERED, DELIVERY_ON_REDELIVER, DELIVERY_PENDING},
    {DELIVERY_EXHAUSTED, DELIVERY_ON_REDELIVER, DELIVERY_PENDING},
};

static const char *const delivery_texts[] = {
#define X(name, wire) [DELIVERY_##name] = wire,
    DELIVERY_STATES(X)
#undef X
};

bool delivery_move(enum delivery_state from, enum delivery_trigger on, enum delivery_state *ret_to)
{
    for (size_t i = 0; i < LENGTH_OF(delivery_moves); i++)
        if (delivery_moves[i].from == from && delivery_moves[i].on == on) {
            *ret_to = delivery_moves[i].to;
            return true;
        }
    return false;
}

const char *delivery_state_text(enum delivery_state s)
{
    MUST((unsigned)s < DELIVERY_STATE_COUNT);
    return delivery_texts[s];
}

const char *webhook_fault_text(enum webhook_fault f)
{
#define X(name, wire) [WEBHOOK_##name] = wire,
    static const char *const texts[] = {WEBHOOK_FAULTS(X)};
#undef X
    MUST((unsigned)f < WEBHOOK_FAULT_COUNT);
    return texts[f];
}

const char *webhook_event_text(enum webhook_event e)
{
#define X(name, wire) [WEBHOOK_EVENT_##name] = wire,
    static const char *const texts[] = {WEBHOOK_EVENTS(X)};
#undef X
    MUST((unsigned)e < WEBHOOK_EVENT_COUNT);
    return texts[e];
}
