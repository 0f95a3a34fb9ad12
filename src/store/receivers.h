/* store/receivers.h - the receivers of deliveries, and how many deliveries each gets at a time.
 *
 * A receiver has `slots`: at most so many of its tasks are claimable or claimed. Its other ready tasks wait
 * here, the one with the smallest key first. A slow or dead receiver therefore delays its own deliveries and
 * no others. A new receiver has one slot, because nobody knows yet whether it answers: a thousand receivers
 * that hang must not fill the senders. The decider changes `slots` later: more when the receiver answers,
 * none (closed) after failures, which are counted here.
 *
 * Owner:  the live queue, which adds, admits and removes tasks; a receiver lives while it has tasks. On a
 *         shared store only the tasks of one batch are in memory. The store then keeps the state of each
 *         receiver and knows how many of its tasks are claimed elsewhere. A receiver whose state was not
 *         loaded is unknown and admits no task; a loaded one lives to the end of the batch. */
#ifndef WEIR_STORE_RECEIVERS_H
#define WEIR_STORE_RECEIVERS_H

#include <stdbool.h>

#include "base/heap.h"
#include "base/map.h"

/* What the deciders have learned about a receiver. */
struct receiver_state {
    uint32_t slots;        /* 0: closed */
    uint32_t failures;     /* in a row */
    int64_t open_again_ms; /* 0: not closed */
};

struct receiver {
    struct map_node node;
    int64_t id;
    struct heap waiting; /* of task.ready nodes */
    uint32_t members;    /* tasks alive */
    uint32_t active;     /* claimable or claimed */
    uint32_t elsewhere;  /* claimed, and not in memory: of a shared store */
    uint32_t slots;      /* these three: struct receiver_state */
    uint32_t failures;
    int64_t open_again_ms;
    struct receiver_state stored; /* in the shared store, and since when */
    int64_t stored_ms;
    bool unknown; /* its state in the shared store is not loaded */
    bool wanted;  /* its state is to be loaded */
};

struct receivers {
    struct map by_id;
    uint32_t slots; /* at most, of a receiver that answers */
    bool loaded;    /* of a shared store: receivers begin as unknown, and stay without members */
};

struct receiver *receivers_find(const struct receivers *t, int64_t id); /* NULL: it has no task */
struct receiver *receivers_join(struct receivers *t, int64_t id); /* made when absent; one member more */
void receivers_leave(struct receivers *t, struct receiver *x); /* freed with its last member, unless loaded */
void receivers_clear(struct receivers *t); /* none any more; no receiver has members then */
void receivers_free(struct receivers *t);

#endif
