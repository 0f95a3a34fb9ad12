#include "base/bus.h"

#include "base/clock.h"
#include "base/heart.h"

#include "base/banned.h"

#define X(id, name, from, to, means) [BUS_##id] = {name, from, to, means},
const struct bus_topic_row bus_topics[BUS_TOPIC_COUNT] = {BUS_TOPICS(X)};
#undef X

/* The count last: a reader that sees the new count sees its word, or a later one. */
void bus_publish(enum bus_topic topic, int64_t value)
{
    struct bus_slot *s = &heart_own_page()->topics[topic];
    atomic_store_explicit(&s->value, value, memory_order_relaxed);
    atomic_store_explicit(&s->at_ms, clock_mono_ms(&clock_system), memory_order_relaxed);
    atomic_fetch_add_explicit(&s->count, 1, memory_order_release);
}

struct bus_word bus_last(enum bus_topic topic)
{
    struct bus_word last = {0};
    size_t pages;
    const struct heart_page *all = heart_all_pages(&pages);
    for (size_t i = 0; i < pages; i++) {
        const struct bus_slot *s = &all[i].topics[topic];
        uint64_t count = atomic_load_explicit(&s->count, memory_order_acquire);
        int64_t at_ms = atomic_load_explicit(&s->at_ms, memory_order_relaxed);
        if (count && (!last.count || at_ms >= last.at_ms)) {
            last.value = atomic_load_explicit(&s->value, memory_order_relaxed);
            last.at_ms = at_ms;
        }
        last.count += count;
    }
    return last;
}
