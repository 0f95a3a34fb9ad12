#include "load/histogram.h"

#include "base/banned.h"

enum { FINE = 1 << HISTOGRAM_FINE_BITS };

/* Values below FINE have a bucket each; above, the leading one and the FINE_BITS behind it. */
static uint32_t bucket_of(uint64_t ns)
{
    if (ns < FINE)
        return (uint32_t)ns;
    uint32_t shift = 63 - (uint32_t)__builtin_clzll(ns) - HISTOGRAM_FINE_BITS;
    return (shift + 1) * FINE + (uint32_t)(ns >> shift) - FINE;
}

/* The largest value that falls into the bucket. */
static int64_t bucket_end(uint32_t bucket)
{
    if (bucket < FINE)
        return bucket;
    uint32_t shift = bucket / FINE - 1;
    return (int64_t)(((uint64_t)(bucket % FINE + FINE) + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, int64_t ns)
{
    if (ns < 0)
        ns = 0;
    h->buckets[bucket_of((uint64_t)ns)]++;
    h->count++;
    if (ns > h->max_ns)
        h->max_ns = ns;
}

int64_t histogram_at(const struct histogram *h, double share)
{
    uint64_t seen = 0, wanted = (uint64_t)(share * (double)h->count);
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (h->buckets[i] && seen >= wanted)
            return bucket_end(i) < h->max_ns ? bucket_end(i) : h->max_ns;
    }
    return h->max_ns;
}
