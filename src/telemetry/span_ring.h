/* telemetry/span_ring.h - finished spans on their way out: bounded, oldest first, any thread.
 *
 * The thread that finishes a span never waits for the exporter: a full ring drops the new span and counts it.
 * One lock, held for one copy. */
#ifndef WEIR_TELEMETRY_SPAN_RING_H
#define WEIR_TELEMETRY_SPAN_RING_H

#include "telemetry/span.h"

struct span_ring;

struct span_ring *span_ring_new(size_t capacity);
struct span_ring *span_ring_free(struct span_ring *r); /* NULL is fine; always returns NULL */
void span_ring_add(struct span_ring *r, const struct span *s);
/* Moves up to `max` of the oldest out; gives how many. */
size_t span_ring_take(struct span_ring *r, struct span *out, size_t max);
/* So many that were taken did not arrive: they count as dropped. */
void span_ring_lost(struct span_ring *r, uint64_t count);
size_t span_ring_depth(struct span_ring *r); /* how many wait */
/* Since it was made: spans that got in, and those that found no room or were lost on their way. */
void span_ring_counts(struct span_ring *r, uint64_t *ret_added, uint64_t *ret_dropped);

#endif
