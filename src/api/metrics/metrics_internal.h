/* api/metrics/metrics_internal.h - what record.c fills, and write.c, write_jobs.c and write_runs.c show. */
#ifndef WEIR_API_METRICS_INTERNAL_H
#define WEIR_API_METRICS_INTERNAL_H

#include <stdatomic.h>

#include "api/metrics.h"
#include "base/err.h"
#include "lifecycle/work_kinds.h"

enum { METRIC_BUCKETS_MAX = 20, METRIC_LINE_BYTES = 64 };

/* The upper bounds of a histogram's buckets, in the unit it counts; `per_one` of them are 1 in the text. */
struct histogram_shape {
    size_t bucket_count;
    double per_one;
    int64_t bounds[METRIC_BUCKETS_MAX];
};
extern const struct histogram_shape shape_seconds; /* counted in microseconds */
extern const struct histogram_shape shape_commands;

struct histogram {
    _Atomic uint64_t buckets[METRIC_BUCKETS_MAX + 1]; /* the last: above every bound */
    _Atomic uint64_t sum;
};

/* Every status a handler answers; anything else is counted as 0, which no answer has. */
/* clang-format off */
#define METRIC_STATUSES(X)                                                                                   \
    X(0) X(200) X(201) X(202) X(204) X(400) X(401) X(403) X(404) X(405) X(406) X(408) X(409) X(413) X(415)   \
    X(417) X(422) X(429) X(431) X(500) X(503) X(504) X(505)
/* clang-format on */
#define X(code) +1
enum { METRIC_STATUS_COUNT = 0 METRIC_STATUSES(X) };
#undef X
extern const int metric_statuses[METRIC_STATUS_COUNT];

struct route_metrics {
    _Atomic uint64_t requests[METRIC_STATUS_COUNT];
    struct histogram latencies[METRIC_STATUS_COUNT];
};

/* One thread's part: it alone writes. */
struct metric_part {
    _Alignas(METRIC_LINE_BYTES) _Atomic uint64_t replays, signals_rate_limited;
    _Atomic uint64_t heartbeats, webhook_deliveries, webhook_failures;
    _Atomic uint64_t problems[ERR_CODE_COUNT];
    struct histogram webhook_seconds;
    _Atomic uint64_t outbound[2][OUTBOUND_CLASS_COUNT]; /* callback, webhook */
    struct slo_tally slos[SLO_COUNT];
    struct route_metrics routes[]; /* the last: no route */
};

struct metrics {
    uint64_t serial; /* never given twice: a thread knows by it whether its part is of these metrics */
    const struct route *routes;
    size_t route_count;
    struct metric_part *_Atomic parts[METRICS_THREADS_MAX];
    _Atomic uint32_t part_count;

    /* the commit thread's */
    _Alignas(METRIC_LINE_BYTES) _Atomic uint64_t events[JOB_EVENT_COUNT];
    /* by work kind; the last: none of the catalog */
    _Atomic uint64_t scenario_submitted[WORK_KIND_COUNT + 1];
    _Atomic uint64_t scenario_ended[WORK_KIND_COUNT + 1][JOB_STATE_COUNT];
    _Atomic uint64_t run_events, signals[SIGNAL_DECISION_COUNT], alerts[ALERT_CATEGORY_COUNT];
    _Atomic uint64_t retries, retry_successes, webhooks_disabled[WEBHOOK_FAULT_COUNT];
    struct histogram queue_wait, assigned, execution, commit_seconds, batch_commands;
    struct kernel_stats last; /* at the end of the batch before */
    bool batch_wrote;
};

static inline uint64_t metric_get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Has one writer, so no locked instruction is needed; a scrape sees the old or the new value. */
static inline void metric_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, metric_get(counter) + n, memory_order_relaxed);
}

/* --- write.c -------------------------------------------------------------------------------------- */

/* A histogram as one scrape sees it: plain numbers. */
struct histogram_seen {
    uint64_t buckets[METRIC_BUCKETS_MAX + 1], count, sum;
};

/* A counter of all threads' parts, by its place in the part; and a histogram. */
uint64_t metrics_total(const struct metrics *m, size_t offset);
struct histogram_seen metrics_see_parts(const struct metrics *m, size_t offset);
#define TOTAL(m, field) metrics_total(m, offsetof(struct metric_part, field))
void metrics_series(struct strbuf *out, const char *name, const char *labels,
                    const struct histogram_shape *shape, const struct histogram_seen *s);
void metrics_histogram(struct strbuf *out, const char *name, const char *help,
                       const struct histogram_shape *shape, const struct histogram *h);

/* weir_process_* of this process, read from the system now. */
void metrics_write_process(struct strbuf *out);

#endif
