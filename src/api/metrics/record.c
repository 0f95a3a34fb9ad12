/* Counting: each thread in its own part, the commit thread in the shared one that only it writes. */
#include <stdlib.h>

#include "api/metrics/metrics_internal.h"
#include "base/must.h"
#include "jobs/job_notices.h"

#include "base/banned.h"

const struct histogram_shape shape_seconds = {
    20, 1000000, {100,     250,      500,      1000,     2500,      5000,     10000,
                  25000,   50000,    100000,   250000,   500000,    1000000,  2500000,
                  5000000, 10000000, 30000000, 60000000, 120000000, 300000000}};
const struct histogram_shape shape_commands = {12, 1, {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}};

#define X(code) code,
const int metric_statuses[METRIC_STATUS_COUNT] = {METRIC_STATUSES(X)};
#undef X

/* --- making, and a thread's part ------------------------------------------------------------------- */

static size_t part_bytes(const struct metrics *m)
{
    size_t bytes = sizeof(struct metric_part) + (m->route_count + 1) * sizeof(struct route_metrics);
    return (bytes + METRIC_LINE_BYTES - 1) / METRIC_LINE_BYTES * METRIC_LINE_BYTES;
}

static void *aligned_zeroes(size_t bytes)
{
    void *p = aligned_alloc(METRIC_LINE_BYTES, bytes);
    MUST(p != NULL);
    memset(p, 0, bytes);
    return p;
}

struct metrics *metrics_new(const struct route *routes, size_t route_count)
{
    static _Atomic uint64_t serials;
    struct metrics *m = aligned_zeroes(sizeof *m);
    m->serial = atomic_fetch_add(&serials, 1) + 1;
    m->routes = routes;
    m->route_count = route_count;
    return m;
}

struct metrics *metrics_free(struct metrics *m)
{
    if (!m)
        return NULL;
    for (size_t i = 0; i < METRICS_THREADS_MAX; i++)
        free(m->parts[i]);
    free(m);
    return NULL;
}

static struct metric_part *new_part(struct metrics *m)
{
    uint32_t place = atomic_fetch_add(&m->part_count, 1);
    MUST(place < METRICS_THREADS_MAX);
    struct metric_part *part = aligned_zeroes(part_bytes(m));
    atomic_store_explicit(&m->parts[place], part, memory_order_release);
    return part;
}

static struct metric_part *my_part(struct metrics *m)
{
    static _Thread_local struct {
        uint64_t serial;
        struct metric_part *part;
    } mine;
    if (mine.serial != m->serial) {
        mine.part = new_part(m);
        mine.serial = m->serial;
    }
    return mine.part;
}

static void observe(const struct histogram_shape *shape, struct histogram *h, int64_t value)
{
    size_t i = 0;
    if (value < 0) /* the clock was set back */
        value = 0;
    while (i < shape->bucket_count && value > shape->bounds[i])
        i++;
    metric_add(&h->buckets[i], 1);
    metric_add(&h->sum, (uint64_t)value);
}

/* --- the commit thread ----------------------------------------------------------------------------- */

static void count_notice(struct metrics *m, const struct job_notice *n)
{
    const struct event *e = &n->event;
    size_t scenario = e->kind < WORK_KIND_COUNT ? e->kind : WORK_KIND_COUNT;
    metric_add(&m->events[e->event], 1);
    if (e->event == JOB_EVENT_CREATED)
        metric_add(&m->scenario_submitted[scenario], 1);
    if (e->event == JOB_EVENT_QUEUED && e->prev == JOB_FAILED && !n->is_release)
        metric_add(&m->retries, 1);
    if (e->event == JOB_EVENT_ASSIGNED)
        observe(&shape_seconds, &m->queue_wait, n->waited_ms * 1000);
    if (e->event == JOB_EVENT_RUNNING)
        observe(&shape_seconds, &m->assigned, n->waited_ms * 1000);
    if (e->event == JOB_EVENT_SUCCEEDED && e->attempt > 1)
        metric_add(&m->retry_successes, 1);
    if (e->event == JOB_EVENT_RETRIES_EXHAUSTED || !job_state_is_final(e->next) || n->is_release)
        return;
    metric_add(&m->scenario_ended[scenario][e->next], 1);
    if (n->ran_ms >= 0)
        observe(&shape_seconds, &m->execution, n->ran_ms * 1000);
}

void metrics_committed(struct metrics *m, const struct unit *u)
{
    m->batch_wrote = u->wrote;
}

void metrics_jobs_committed(struct metrics *m, const struct unit *u)
{
    for (size_t i = 0; i < u->notices.count; i++) {
        const struct job_notice *n = notice_row(&u->notices.list[i], &job_notices);
        if (n)
            count_notice(m, n);
    }
}

void metrics_run_events(struct metrics *m, size_t count)
{
    if (count)
        metric_add(&m->run_events, count);
}

void metrics_signal(struct metrics *m, enum signal_decision decision)
{
    metric_add(&m->signals[decision], 1);
}

void metrics_alert(struct metrics *m, enum alert_category category)
{
    metric_add(&m->alerts[category], 1);
}

void metrics_webhook_disabled(struct metrics *m, enum webhook_fault why)
{
    metric_add(&m->webhooks_disabled[why], 1);
}

/* Batches that wrote nothing (heartbeats, empty polls) say nothing about the disk. */
void metrics_batch(struct metrics *m, const struct kernel_stats *k)
{
    if (m->batch_wrote && k->commit_errors == m->last.commit_errors) {
        observe(&shape_commands, &m->batch_commands, (int64_t)(k->commands - m->last.commands));
        observe(&shape_seconds, &m->commit_seconds, k->last_commit_us);
    }
    m->batch_wrote = false;
    m->last = *k;
}

/* --- any thread ------------------------------------------------------------------------------------ */

static size_t status_place(int status)
{
    for (size_t place = 1; place < METRIC_STATUS_COUNT; place++) /* the usual ones come first */
        if (metric_statuses[place] == status)
            return place;
    return 0;
}

static struct route_metrics *my_route(struct metrics *m, size_t route_number)
{
    return &my_part(m)->routes[route_number < m->route_count ? route_number : m->route_count];
}

void metrics_request(struct metrics *m, size_t route_number, int status, int64_t duration_us)
{
    struct route_metrics *route = my_route(m, route_number);
    size_t place = status_place(status);
    metric_add(&route->requests[place], 1);
    observe(&shape_seconds, &route->latencies[place], duration_us);
}

void metrics_stream(struct metrics *m, size_t route_number, int status)
{
    metric_add(&my_route(m, route_number)->requests[status_place(status)], 1);
}

void metrics_problem(struct metrics *m, enum err_code code)
{
    metric_add(&my_part(m)->problems[code], 1);
}

void metrics_signal_rate_limited(struct metrics *m)
{
    metric_add(&my_part(m)->signals_rate_limited, 1);
}

void metrics_idempotent_replay(struct metrics *m)
{
    metric_add(&my_part(m)->replays, 1);
}

void metrics_heartbeats(struct metrics *m, uint64_t accepted)
{
    metric_add(&my_part(m)->heartbeats, accepted);
}

void metrics_webhook(struct metrics *m, bool delivered, int64_t duration_us)
{
    struct metric_part *part = my_part(m);
    metric_add(delivered ? &part->webhook_deliveries : &part->webhook_failures, 1);
    observe(&shape_seconds, &part->webhook_seconds, duration_us);
}

const char *outbound_class_text(enum outbound_class class)
{
#define X(id, name) [OUTBOUND_##id] = name,
    static const char *const texts[] = {OUTBOUND_CLASSES(X)};
#undef X
    return texts[class];
}

void metrics_outbound(struct metrics *m, bool to_webhook, enum outbound_class class)
{
    metric_add(&my_part(m)->outbound[to_webhook][class], 1);
}

struct slo_tally *metrics_slo(struct metrics *m, enum slo_id id)
{
    return &my_part(m)->slos[id];
}

void metrics_slo_sum(const struct metrics *m, enum slo_id id, struct slo_tally *ret_sum)
{
    uint32_t count = atomic_load_explicit(&m->part_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count && i < METRICS_THREADS_MAX; i++) {
        const struct metric_part *part = atomic_load_explicit(&m->parts[i], memory_order_acquire);
        if (part)
            slo_tally_sum(ret_sum, &part->slos[id]);
    }
}
