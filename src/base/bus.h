/* base/bus.h - the signal bus: words that the processes of one root tell each other.
 *
 * Root owns it. Each process has a page (base/heart.h) that it alone writes and that all processes of its
 * root may read. For every topic the page holds how often the process has published a word, the last word,
 * and its time. A listener looks when its loop comes round, so no process waits for another. A topic is a
 * state, not a queue: the last word counts, and the count tells that there was one.
 *
 * Process:   any; one that has no root (a command, a test) publishes to itself.
 * Bounded:   BUS_TOPIC_COUNT words a process. Publishing is three stores, listening a look at each page. */
#ifndef WEIR_BASE_BUS_H
#define WEIR_BASE_BUS_H

#include <stdatomic.h>
#include <stdint.h>

/* X(id, name, who says it, who listens, what it means) */
#define BUS_TOPICS(X)                                                                                        \
    X(REPLAY, "replay.wanted", "core", "root", "dead letters could be sent, and whoever sends them may rest")

#define X(id, name, from, to, means) BUS_##id,
enum bus_topic { BUS_TOPICS(X) BUS_TOPIC_COUNT, BUS_NONE = BUS_TOPIC_COUNT };
#undef X

/* On a page; bus.c alone touches it. */
struct bus_slot {
    _Atomic uint64_t count;
    _Atomic int64_t value, at_ms;
};

struct bus_topic_row {
    const char *name, *publisher, *subscriber, *means;
};
extern const struct bus_topic_row bus_topics[BUS_TOPIC_COUNT];

void bus_publish(enum bus_topic topic, int64_t value);

struct bus_word {
    uint64_t count; /* how often it was published, by all processes since root began; 0: never */
    int64_t value;  /* the last one, and when it was said (monotonic) */
    int64_t at_ms;
};
struct bus_word bus_last(enum bus_topic topic);

#endif
