/* store/queue_flow.h - how many attempts ended lately, in slots of ten seconds. Pure.
 *
 * A rate is what the last sixty seconds hold: the slot that is not over, the five before it, and of the
 * oldest one the part that is not older. */
#ifndef WEIR_STORE_QUEUE_FLOW_H
#define WEIR_STORE_QUEUE_FLOW_H

#include <stdbool.h>

#include "base/str.h"

enum { FLOW_SLOT_MS = 10000, FLOW_SLOTS = 7 };

struct flow_counts {
    uint32_t completed[FLOW_SLOTS], failed[FLOW_SLOTS]; /* slot s stands at s % FLOW_SLOTS */
};

struct queue_flow {
    int64_t slot; /* the newest that the counts tell of */
    struct flow_counts counts;
};

/* Nothing older than the slots that end with this one; an earlier slot than the newest changes nothing. */
void flow_advance(struct queue_flow *f, int64_t slot);
void flow_add(struct queue_flow *f, int64_t now_ms, uint32_t completed, uint32_t failed);
void flow_merge(struct queue_flow *f, const struct queue_flow *more); /* slot by slot */
void flow_subtract(struct queue_flow *f, const struct queue_flow *less);
bool flow_is_empty(const struct queue_flow *f);
void flow_per_minute(const struct queue_flow *f, int64_t now_ms, int64_t *ret_completed, int64_t *ret_failed);
/* The stored form borrows the counts' memory. */
struct str flow_bytes(const struct flow_counts *c);
struct queue_flow flow_from_bytes(int64_t slot, struct str bytes);

#endif
