/* What is recorded, and what happens when nobody takes it. */
#include <pthread.h>
#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "telemetry/tracer.h"

#include "base/banned.h"

#define SAMPLED "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
#define QUIET   "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"

enum { THREADS = 4, EACH = 5000 };

TEST(the_callers_choice_goes_first)
{
    struct tracer *none = tracer_new(0), *all = tracer_new(1);
    struct trace_context from;
    struct span s;
    assert_true(traceparent_parse(STR(SAMPLED), &from));
    assert_true(tracer_begin(none, STR(SAMPLED), &s));
    assert_memory_equal(s.context.trace_id, from.trace_id, TRACE_ID_BYTES);
    assert_memory_equal(s.parent, from.span_id, SPAN_ID_BYTES);
    assert_memory_not_equal(s.context.span_id, from.span_id, SPAN_ID_BYTES);
    assert_false(tracer_begin(all, STR(QUIET), &s));
    assert_false(tracer_begin(none, STR_ABSENT, &s));
    assert_true(tracer_begin(all, STR("nonsense"), &s));
    assert_false(span_id_is_set(s.parent));
    assert_true(span_id_is_set(s.context.span_id) && s.context.sampled);
    tracer_free(none);
    tracer_free(all);
}

TEST(the_ratio_is_met)
{
    struct tracer *t = tracer_new(0.25);
    struct span s;
    int recorded = 0;
    for (int i = 0; i < 10000; i++)
        recorded += tracer_begin(t, STR_ABSENT, &s);
    assert_true(recorded > 2200 && recorded < 2800); /* 7 standard deviations */
    tracer_free(t);
}

TEST(a_full_ring_keeps_the_oldest_and_counts_the_rest)
{
    struct span_ring *r = span_ring_new(3);
    struct span s = {0}, out[5];
    uint64_t added, dropped;
    for (int round = 0; round < 3; round++) {
        for (s.start_us = 1; s.start_us <= 5; s.start_us++)
            span_ring_add(r, &s);
        assert_int_equal(span_ring_take(r, out, 2), 2);
        assert_int_equal(out[0].start_us, 1);
        assert_int_equal(out[1].start_us, 2);
        assert_int_equal(span_ring_take(r, out, 5), 1);
        assert_int_equal(out[0].start_us, 3);
        assert_int_equal(span_ring_take(r, out, 5), 0);
    }
    span_ring_counts(r, &added, &dropped);
    assert_int_equal(added, 9);
    assert_int_equal(dropped, 6);
    span_ring_lost(r, 4); /* taken, and given up on their way */
    span_ring_counts(r, &added, &dropped);
    assert_int_equal(added, 9);
    assert_int_equal(dropped, 10);
    span_ring_free(r);
}

static void *add_many(void *tracer)
{
    struct span s = {.kind = SPAN_INTERNAL};
    for (int i = 0; i < EACH; i++)
        tracer_end(tracer, &s);
    return NULL;
}

TEST(threads_add_and_one_takes_without_losing_count)
{
    struct tracer *t = tracer_new(1);
    pthread_t threads[THREADS];
    struct span out[16];
    uint64_t taken = 0, recorded = 0, dropped = 0;
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, add_many, t) == 0);
    while (recorded + dropped < (uint64_t)THREADS * EACH) {
        taken += tracer_take(t, out, LENGTH_OF(out));
        tracer_counts(t, &recorded, &dropped);
    }
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    for (size_t n; (n = tracer_take(t, out, LENGTH_OF(out)));)
        taken += n;
    assert_int_equal(taken, recorded);
    assert_int_equal(recorded + dropped, THREADS * EACH);
    tracer_free(t);
}
