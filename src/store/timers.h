/* store/timers.h - the stored timers in memory: which one is due next. The durable image is the table
 * `timers`; at start it is read back once. Of a shared store only those stand here that a batch has loaded.
 *
 * Process: core, the holder of the kernel's turn; no locks.
 * Memory:  an entry for each timer. */
#ifndef WEIR_STORE_TIMERS_H
#define WEIR_STORE_TIMERS_H

#include "base/heap.h"
#include "base/map.h"
#include "store/rows.h"

struct timers {
    struct map by_key;
    struct heap by_due;
};

void timers_put(struct timers *t, const struct timer_row *row); /* or moves the one of this key */
void timers_remove(struct timers *t, const struct timer_row *key);
void timers_clear(struct timers *t);
void timers_free(struct timers *t);
/* Copies up to `max` rows that are due at `wall_ms`, the earliest first; they stay where they are. */
size_t timers_due(struct timers *t, int64_t wall_ms, struct timer_row *ret_rows, size_t max);
/* When the first one is due; INT64_MAX: there is none. */
int64_t timers_next_ms(const struct timers *t);

#endif
