/* telemetry/tracer.h - decides which requests are traced, and keeps their spans.
 *
 * A caller's decision is respected: a context with the sampled flag is recorded, one without is not. Of the
 * traces that begin here `sample_ratio` are recorded, chosen by their id. Code with a NULL tracer traces
 * nothing and pays nothing.
 *
 *   struct span s;
 *
 *   if (tracer && tracer_begin(tracer, traceparent, &s)) { ...; s.end_us = now; tracer_end(tracer, &s); }
 *
 * Spans wait in a ring (span_ring.h) until tracer_take gives them to the exporter. Any thread. */
#ifndef WEIR_TELEMETRY_TRACER_H
#define WEIR_TELEMETRY_TRACER_H

#include "telemetry/span_ring.h"

enum { TRACER_SPANS_MAX = 4096 };

struct tracer;

struct tracer *tracer_new(double sample_ratio);
struct tracer *tracer_free(struct tracer *t); /* NULL is fine; always returns NULL */

/* A span under the caller's context, or the first of a new trace when there is none (absent or unreadable).
 * False: not to be recorded; the span is not written. */
bool tracer_begin(struct tracer *t, struct str traceparent, struct span *ret_span);
void tracer_end(struct tracer *t, const struct span *s); /* copies */
size_t tracer_take(struct tracer *t, struct span *out, size_t max);
void tracer_lost(struct tracer *t, uint64_t count); /* of those taken: given up */
size_t tracer_depth(struct tracer *t);              /* spans that wait, TRACER_SPANS_MAX at most */
void tracer_counts(struct tracer *t, uint64_t *ret_recorded, uint64_t *ret_dropped);

#endif
