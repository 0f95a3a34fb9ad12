#include "cli/traffic/latency.h"

#include "base/banned.h"

/* Up to LATENCY_STEPS every microsecond has its slot; above, each doubling has LATENCY_STEPS slots. */
static unsigned slot_of(int64_t us)
{
    uint64_t v = us < 0 ? 0 : (uint64_t)us;
    unsigned shift = 0;
    while (v >= 2 * LATENCY_STEPS) {
        v >>= 1;
        shift++;
    }
    unsigned slot = v < LATENCY_STEPS ? (unsigned)v : shift * LATENCY_STEPS + (unsigned)v;
    return slot < LATENCY_SLOTS ? slot : LATENCY_SLOTS - 1;
}

static int64_t top_of(unsigned slot)
{
    if (slot < 2 * LATENCY_STEPS)
        return (int64_t)slot;
    unsigned shift = slot / LATENCY_STEPS - 1, rest = slot % LATENCY_STEPS + LATENCY_STEPS;
    return ((int64_t)(rest + 1) << shift) - 1;
}

void latency_add(struct latency *l, int64_t us)
{
    l->slots[slot_of(us)]++;
    l->count++;
}

int64_t latency_at(const struct latency *l, double share)
{
    uint64_t wanted = (uint64_t)((double)l->count * share + 0.5), seen = 0;
    if (!l->count)
        return 0;
    wanted = wanted ? wanted : 1;
    for (unsigned slot = 0; slot < LATENCY_SLOTS; slot++) {
        seen += l->slots[slot];
        if (seen >= wanted)
            return top_of(slot);
    }
    return top_of(LATENCY_SLOTS - 1);
}
