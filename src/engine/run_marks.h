/* engine/run_marks.h - finding an event or a step of a run by what it is called, in one read.
 *
 * A mark is 64 bits of a digest and where the thing is. Whatever is found is compared with what was asked
 * for, so two that fall together are told apart; the second one stands one number higher. */
#ifndef WEIR_ENGINE_RUN_MARKS_H
#define WEIR_ENGINE_RUN_MARKS_H

#include "kernel/unit.h"

enum mark_kind { MARK_KEY, MARK_EVENT_ID, MARK_STEP };

/* Of an idempotency key (its 32 bytes), an event id (16), a step's name. */
int64_t run_mark_hash(enum mark_kind kind, struct str bytes);
/* Load phase. */
void run_mark_want(struct unit *u, int64_t run, int64_t hash);
/* Is what stands at this place the thing that was meant? */
typedef bool run_mark_fn(struct unit *u, int64_t run, int64_t place, const void *arg);
/* Where it is; -1: nowhere. */
int64_t run_mark_find(struct unit *u, int64_t run, int64_t hash, run_mark_fn *is_it, const void *arg);
/* It stands there from now on, behind all that fall together with it. */
void run_mark_add(struct unit *u, int64_t run, int64_t hash, int64_t place);

#endif
