#include "telemetry/span_ring.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

struct span_ring {
    pthread_mutex_t lock;
    struct span *spans;
    size_t capacity;
    uint64_t added, taken, dropped; /* added - taken are in here */
};

struct span_ring *span_ring_new(size_t capacity)
{
    struct span_ring *r = must_alloc(sizeof *r);
    MUST(capacity > 0 && pthread_mutex_init(&r->lock, NULL) == 0);
    r->spans = must_alloc(capacity * sizeof *r->spans);
    r->capacity = capacity;
    return r;
}

struct span_ring *span_ring_free(struct span_ring *r)
{
    if (!r)
        return NULL;
    pthread_mutex_destroy(&r->lock);
    free(r->spans);
    free(r);
    return NULL;
}

void span_ring_add(struct span_ring *r, const struct span *s)
{
    pthread_mutex_lock(&r->lock);
    if (r->added - r->taken == r->capacity)
        r->dropped++;
    else
        r->spans[r->added++ % r->capacity] = *s;
    pthread_mutex_unlock(&r->lock);
}

size_t span_ring_take(struct span_ring *r, struct span *out, size_t max)
{
    size_t n = 0;
    pthread_mutex_lock(&r->lock);
    while (n < max && r->taken < r->added)
        out[n++] = r->spans[r->taken++ % r->capacity];
    pthread_mutex_unlock(&r->lock);
    return n;
}

void span_ring_lost(struct span_ring *r, uint64_t count)
{
    pthread_mutex_lock(&r->lock);
    r->dropped += count;
    pthread_mutex_unlock(&r->lock);
}

size_t span_ring_depth(struct span_ring *r)
{
    pthread_mutex_lock(&r->lock);
    size_t depth = (size_t)(r->added - r->taken);
    pthread_mutex_unlock(&r->lock);
    return depth;
}

void span_ring_counts(struct span_ring *r, uint64_t *ret_added, uint64_t *ret_dropped)
{
    pthread_mutex_lock(&r->lock);
    *ret_added = r->added;
    *ret_dropped = r->dropped;
    pthread_mutex_unlock(&r->lock);
}
