#include "api/metrics.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "lifecycle/work_kinds.h"

#include "base/banned.h"

enum { BUCKETS = 14 };

/* Every status a handler answers; anything else would be counted as 0, which no answer has. */
static const int statuses[] = {0,   200, 201, 202, 400, 401, 403, 404, 405,
                               406, 409, 413, 415, 429, 500, 503, 504};
enum { STATUSES = sizeof statuses / sizeof *statuses };

static const double bucket_seconds[BUCKETS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                               0.25,  0.5,    1,     2.5,  10,    60,   300};

struct histogram {
    _Atomic uint64_t buckets[BUCKETS], count, sum_us;
};

struct metrics {
    const struct route *const *routes;
    size_t route_count;
    _Atomic uint64_t (*requests)[STATUSES]; /* by route (the last: no route) and place in statuses */
    struct histogram *latencies;            /* by route */
    _Atomic uint64_t events[JOB_EVENT_COUNT];
    _Atomic uint64_t scenario_submitted[WORK_KIND_COUNT], scenario_ended[WORK_KIND_COUNT][JOB_STATE_COUNT];
    _Atomic uint64_t replays, retries, retry_successes;
    struct histogram queue_wait, assigned, execution;
};

struct metrics *metrics_new(const struct route *const *routes, size_t route_count)
{
    struct metrics *m = must_alloc(sizeof *m);
    m->routes = routes;
    m->route_count = route_count;
    m->requests = must_alloc((route_count + 1) * sizeof *m->requests);
    m->latencies = must_alloc(route_count * sizeof *m->latencies);
    return m;
}

struct metrics *metrics_free(struct metrics *m)
{
    if (!m)
        return NULL;
    free(m->requests);
    free(m->latencies);
    free(m);
    return NULL;
}

static void add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static uint64_t get(_Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void observe_us(struct histogram *h, int64_t us)
{
    if (us < 0) /* the clock was set back */
        us = 0;
    for (int i = 0; i < BUCKETS; i++)
        if ((double)us <= bucket_seconds[i] * 1000000) {
            add(&h->buckets[i], 1);
            break;
        }
    add(&h->count, 1);
    add(&h->sum_us, (uint64_t)us);
}

static void count_notice(struct metrics *m, const struct notice *n)
{
    const struct event *e = &n->event;
    add(&m->events[e->event], 1);
    if (e->event == JOB_EVENT_CREATED)
        add(&m->scenario_submitted[e->kind], 1);
    if (e->event == JOB_EVENT_QUEUED && e->prev == JOB_FAILED)
        add(&m->retries, 1);
    if (e->event == JOB_EVENT_ASSIGNED)
        observe_us(&m->queue_wait, n->waited_ms * 1000);
    if (e->event == JOB_EVENT_RUNNING)
        observe_us(&m->assigned, n->waited_ms * 1000);
    if (e->event == JOB_EVENT_SUCCEEDED && e->attempt > 1)
        add(&m->retry_successes, 1);
    if (e->event == JOB_EVENT_RETRIES_EXHAUSTED || !job_state_is_final(e->next))
        return;
    add(&m->scenario_ended[e->kind][e->next], 1);
    if (n->ran_ms >= 0)
        observe_us(&m->execution, n->ran_ms * 1000);
}

void metrics_committed(struct metrics *m, const struct unit *u)
{
    for (size_t i = 0; i < u->notice_count; i++)
        count_notice(m, &u->notices[i]);
}

void metrics_request(struct metrics *m, size_t route_number, int status)
{
    size_t route = route_number < m->route_count ? route_number : m->route_count, place = STATUSES - 1;
    while (place && statuses[place] != status)
        place--;
    add(&m->requests[route][place], 1);
}

void metrics_latency(struct metrics *m, size_t route_number, int64_t us)
{
    if (route_number < m->route_count)
        observe_us(&m->latencies[route_number], us);
}

void metrics_idempotent_replay(struct metrics *m)
{
    add(&m->replays, 1);
}

static void head(struct strbuf *out, const char *name, const char *type, const char *help)
{
    strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void number(struct strbuf *out, const char *name, const char *type, const char *help, uint64_t value)
{
    head(out, name, type, help);
    strbuf_addf(out, "%s %llu\n", name, (unsigned long long)value);
}

/* `labels` are as in {name="value"}, without the braces; empty for none. */
static void series(struct strbuf *out, const char *name, const char *labels, struct histogram *h)
{
    const char *comma = *labels ? "," : "", *open = *labels ? "{" : "", *close = *labels ? "}" : "";
    uint64_t below = 0, count = get(&h->count);
    for (int i = 0; i < BUCKETS; i++) {
        below += get(&h->buckets[i]);
        strbuf_addf(out, "%s_bucket{%s%sle=\"%g\"} %llu\n", name, labels, comma, bucket_seconds[i],
                    (unsigned long long)below);
    }
    if (count < below) /* counted by others between the reads; a bucket may not exceed its successor */
        count = below;
    strbuf_addf(out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma, (unsigned long long)count);
    strbuf_addf(out, "%s_sum%s%s%s %.6f\n", name, open, labels, close, (double)get(&h->sum_us) / 1000000);
    strbuf_addf(out, "%s_count%s%s%s %llu\n", name, open, labels, close, (unsigned long long)count);
}

static void histogram(struct strbuf *out, const char *name, const char *help, struct histogram *h)
{
    head(out, name, "histogram", help);
    series(out, name, "", h);
}

static void write_jobs(struct metrics *m, struct strbuf *out)
{
    uint64_t failed = get(&m->events[JOB_EVENT_FAILED]) + get(&m->events[JOB_EVENT_TIMED_OUT]);
    number(out, "jobs_submitted_total", "counter", "Jobs accepted", get(&m->events[JOB_EVENT_CREATED]));
    number(out, "jobs_queued_total", "counter", "Entries into QUEUED", get(&m->events[JOB_EVENT_QUEUED]));
    number(out, "jobs_running_total", "counter", "Entries into RUNNING", get(&m->events[JOB_EVENT_RUNNING]));
    number(out, "jobs_succeeded_total", "counter", "Entries into SUCCEEDED",
           get(&m->events[JOB_EVENT_SUCCEEDED]));
    number(out, "jobs_failed_total", "counter", "Entries into FAILED", failed);
    number(out, "jobs_canceled_total", "counter", "Entries into CANCELED",
           get(&m->events[JOB_EVENT_CANCELED]));
    number(out, "weir_job_retries_total", "counter", "Retries accepted", get(&m->retries));
    number(out, "weir_job_retry_successes_total", "counter", "Jobs that succeeded after a retry",
           get(&m->retry_successes));
    number(out, "weir_lease_expired_total", "counter", "Leases that ended before a start",
           get(&m->events[JOB_EVENT_LEASE_EXPIRED]));
    number(out, "weir_idempotent_replays_total", "counter", "Submits answered from an earlier one",
           get(&m->replays));
    histogram(out, "job_queue_wait_seconds", "From claimable to claimed", &m->queue_wait);
    histogram(out, "weir_job_assigned_seconds", "From claimed to started", &m->assigned);
    histogram(out, "job_execution_seconds", "From start to end", &m->execution);
}

static void write_scenarios(struct metrics *m, struct strbuf *out)
{
    head(out, "weir_scenario_submitted_total", "counter", "Jobs accepted by work kind");
    for (int k = 0; k < WORK_KIND_COUNT; k++)
        if (get(&m->scenario_submitted[k]))
            strbuf_addf(out, "weir_scenario_submitted_total{scenario=\"%s\"} %llu\n",
                        work_kind_text((enum work_kind)k),
                        (unsigned long long)get(&m->scenario_submitted[k]));
    head(out, "weir_scenario_ended_total", "counter", "Jobs ended by work kind and outcome");
    for (int k = 0; k < WORK_KIND_COUNT; k++)
        for (int s = 0; s < JOB_STATE_COUNT; s++)
            if (get(&m->scenario_ended[k][s]))
                strbuf_addf(out, "weir_scenario_ended_total{scenario=\"%s\",outcome=\"%s\"} %llu\n",
                            work_kind_text((enum work_kind)k), job_outcome_text((enum job_state)s),
                            (unsigned long long)get(&m->scenario_ended[k][s]));
}

static void write_requests(struct metrics *m, struct strbuf *out)
{
    head(out, "weir_http_requests_total", "counter", "Requests by operation and status code");
    for (size_t r = 0; r <= m->route_count; r++)
        for (int s = 0; s < STATUSES; s++)
            if (get(&m->requests[r][s]))
                strbuf_addf(out, "weir_http_requests_total{operation=\"%s\",status=\"%d\"} %llu\n",
                            r < m->route_count ? m->routes[r]->operation_id : "none", statuses[s],
                            (unsigned long long)get(&m->requests[r][s]));
}

static void write_latencies(struct metrics *m, struct strbuf *out)
{
    head(out, "weir_http_request_seconds", "histogram",
         "From the last byte of a request to the last of its answer");
    for (size_t r = 0; r < m->route_count; r++) {
        char labels[96];
        if (!get(&m->latencies[r].count))
            continue;
        snprintf(labels, sizeof labels, "operation=\"%s\"", m->routes[r]->operation_id);
        series(out, "weir_http_request_seconds", labels, &m->latencies[r]);
    }
}

void metrics_write(struct metrics *m, const struct kernel_stats *k, uint32_t connections, struct strbuf *out)
{
    write_jobs(m, out);
    number(out, "job_queue_depth", "gauge", "Jobs in QUEUED", k->queued);
    head(out, "weir_jobs_in_state", "gauge", "Unfinished jobs by state");
    strbuf_addf(out, "weir_jobs_in_state{state=\"CREATED\"} %u\n", k->waiting);
    strbuf_addf(out, "weir_jobs_in_state{state=\"QUEUED\"} %u\n", k->queued);
    strbuf_addf(out, "weir_jobs_in_state{state=\"ASSIGNED\"} %u\n", k->assigned);
    strbuf_addf(out, "weir_jobs_in_state{state=\"RUNNING\"} %u\n", k->running);
    number(out, "weir_workers", "gauge", "Workers heard of lately", k->workers);
    number(out, "weir_commit_batches_total", "counter", "Batches committed", k->batches);
    number(out, "weir_commit_commands_total", "counter", "Commands decided", k->commands);
    number(out, "weir_store_errors_total", "counter", "Commits that failed", k->commit_errors);
    number(out, "weir_wal_pages", "gauge", "Pages in the write-ahead log", (uint64_t)k->wal_pages);
    number(out, "weir_http_connections", "gauge", "Open connections", connections);
    write_scenarios(m, out);
    write_requests(m, out);
    write_latencies(m, out);
}
