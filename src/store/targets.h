/* store/targets.h - whom tasks bother, and how many at a time: the tasks of one target take turns.
 *
 * A target is a receiver of deliveries. At most `slots` of its tasks are claimable or claimed; the others
 * that could be wait here, first the one whose key is smallest. So a receiver that is slow or dead holds
 * up its own deliveries and nobody else's, however many there are. A new one has one slot, for nobody knows
 * yet whether it answers: a thousand that hang must not fill the senders. What it gets later is the decider's
 * business, who gives more when it answers, counts failures here, and closes it by giving it none.
 *
 * Owner:  the live queue, which says who enters, is admitted and leaves; a target lives while it has
 *         tasks. Where only the tasks of one batch are in memory (a shared store), the store keeps what was
 *         learned of a target, and knows how many of its tasks are claimed elsewhere: a target that was not
 *         loaded is unknown and admits nobody; one that was lives to the end of the batch. */
#ifndef WEIR_STORE_TARGETS_H
#define WEIR_STORE_TARGETS_H

#include <stdbool.h>

#include "base/heap.h"
#include "base/map.h"

/* What was learned of a target; the decider's. */
struct target_state {
    uint32_t slots;        /* 0: closed */
    uint32_t failures;     /* in a row */
    int64_t open_again_ms; /* 0: not closed */
};

struct target {
    struct map_node node;
    int64_t id;
    struct heap waiting; /* of task.ready nodes */
    uint32_t members;    /* tasks alive */
    uint32_t active;     /* claimable or claimed */
    uint32_t elsewhere;  /* claimed, and not in memory: of a shared store */
    uint32_t slots;      /* these three: struct target_state */
    uint32_t failures;
    int64_t open_again_ms;
    struct target_state stored; /* as a shared store has it, and since when */
    int64_t stored_ms;
    bool unknown; /* a shared store has not said what it knows of it */
    bool wanted;  /* it shall */
};

struct targets {
    struct map by_id;
    uint32_t slots; /* at most, of a target that behaves */
    bool loaded;    /* by a shared store: they begin as unknown, and stay without members */
};

struct target *targets_find(const struct targets *t, int64_t id); /* NULL: no task bothers it */
struct target *targets_join(struct targets *t, int64_t id);       /* made when absent; one member more */
void targets_leave(struct targets *t, struct target *x); /* freed with its last member, unless loaded */
void targets_clear(struct targets *t);                   /* none any more; no target has members then */
void targets_free(struct targets *t);

#endif
