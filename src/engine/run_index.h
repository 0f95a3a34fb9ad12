/* engine/run_index.h - finds an event or a step of a run by its key, id or name, in one read.
 *
 * An index entry is 64 bits of a digest and the place of the event or step. What is found is compared with
 * the whole key, so two keys with the same 64 bits are told apart; the second one is stored one number
 * higher. */
#ifndef WEIR_ENGINE_RUN_INDEX_H
#define WEIR_ENGINE_RUN_INDEX_H

#include "kernel/unit.h"

enum run_index_kind { RUN_INDEX_KEY, RUN_INDEX_EVENT_ID, RUN_INDEX_STEP };

/* Of an idempotency key (its 32 bytes), an event id (16), a step's name. */
int64_t run_index_hash(enum run_index_kind kind, struct str bytes);
/* Load phase. */
void run_index_prefetch(struct unit *u, int64_t run, int64_t hash);
/* Is what stands at this place the thing that was meant? */
typedef bool run_index_fn(struct unit *u, int64_t run, int64_t place, const void *arg);
/* Where it is; -1: nowhere. */
int64_t run_index_find(struct unit *u, int64_t run, int64_t hash, run_index_fn *is_it, const void *arg);
/* Adds an entry, behind all entries with the same 64 bits. */
void run_index_add(struct unit *u, int64_t run, int64_t hash, int64_t place);

#endif
