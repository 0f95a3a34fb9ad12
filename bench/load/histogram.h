/* load/histogram.h - latencies in nanoseconds, within 1.6 %, in fixed memory.
 *
 * 64 buckets per power of two. The largest value is kept exactly. */
#ifndef WEIR_BENCH_HISTOGRAM_H
#define WEIR_BENCH_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_FINE_BITS = 6, HISTOGRAM_BUCKETS = 64 << HISTOGRAM_FINE_BITS };

struct histogram {
    uint64_t count;
    int64_t max_ns;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, int64_t ns); /* below zero counts as zero */
/* The value that `share` (0 to 1) of all are not above; 0 when there is none. */
int64_t histogram_at(const struct histogram *h, double share);

#endif
