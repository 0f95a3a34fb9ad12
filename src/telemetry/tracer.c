#include "telemetry/tracer.h"

#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

struct tracer {
    double sample_ratio;
    struct span_ring *ring;
};

struct tracer *tracer_new(double sample_ratio)
{
    struct tracer *t = must_alloc(sizeof *t);
    t->sample_ratio = sample_ratio;
    t->ring = span_ring_new(TRACER_SPANS_MAX);
    return t;
}

struct tracer *tracer_free(struct tracer *t)
{
    if (!t)
        return NULL;
    span_ring_free(t->ring);
    free(t);
    return NULL;
}

/* By the last seven bytes of the id, which W3C asks to be random: every process decides alike. */
static bool chosen(const struct tracer *t, const struct trace_context *c)
{
    uint64_t x = 0;
    for (size_t i = TRACE_ID_BYTES - 7; i < TRACE_ID_BYTES; i++)
        x = x << 8 | c->trace_id[i];
    return (double)x < t->sample_ratio * (double)(UINT64_C(1) << 56);
}

bool tracer_begin(struct tracer *t, struct str traceparent, struct span *ret_span)
{
    struct trace_context from;
    bool known = traceparent_parse(traceparent, &from);
    struct trace_context own = known ? from : trace_context_new(true);
    if (known ? !from.sampled : !chosen(t, &own))
        return false;
    *ret_span = (struct span){.context = own, .kind = SPAN_SERVER};
    if (known) {
        memcpy(ret_span->parent, from.span_id, SPAN_ID_BYTES);
        span_id_random(ret_span->context.span_id);
    }
    return true;
}

void tracer_end(struct tracer *t, const struct span *s)
{
    span_ring_add(t->ring, s);
}

size_t tracer_take(struct tracer *t, struct span *out, size_t max)
{
    return span_ring_take(t->ring, out, max);
}

void tracer_lost(struct tracer *t, uint64_t count)
{
    span_ring_lost(t->ring, count);
}

void tracer_counts(struct tracer *t, uint64_t *ret_recorded, uint64_t *ret_dropped)
{
    span_ring_counts(t->ring, ret_recorded, ret_dropped);
}

size_t tracer_depth(struct tracer *t)
{
    return span_ring_depth(t->ring);
}
