/* The Prometheus text format 0.0.4. Every family is announced once, before its first sample. */
#include <stdio.h>

#include "api/metrics/metrics_internal.h"
#include "base/must.h"

#include "base/banned.h"

void metrics_head(struct strbuf *out, const char *name, const char *type, const char *help)
{
    strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void sample(struct strbuf *out, const char *name, const char *labels, uint64_t value)
{
    strbuf_addf(out, "%s%s%s%s %llu\n", name, *labels ? "{" : "", labels, *labels ? "}" : "",
                (unsigned long long)value);
}

static void counter(struct strbuf *out, const char *name, const char *help, uint64_t value)
{
    metrics_head(out, name, "counter", help);
    sample(out, name, "", value);
}

static void gauge(struct strbuf *out, const char *name, const char *help, uint64_t value)
{
    metrics_head(out, name, "gauge", help);
    sample(out, name, "", value);
}

/* --- adding up the threads' parts ------------------------------------------------------------------ */

/* Some at the end may still be NULL: a thread takes its place before it has its part. */
static size_t part_count(const struct metrics *m)
{
    uint32_t n = atomic_load_explicit(&m->part_count, memory_order_relaxed);
    return n < METRICS_THREADS_MAX ? n : METRICS_THREADS_MAX;
}

static const struct metric_part *part_at(const struct metrics *m, size_t i)
{
    return atomic_load_explicit(&m->parts[i], memory_order_acquire);
}

/* A counter of all parts, by its place in the part. */
static uint64_t total(const struct metrics *m, size_t offset)
{
    uint64_t sum = 0;
    for (size_t i = 0, n = part_count(m); i < n; i++) {
        const struct metric_part *part = part_at(m, i);
        if (part)
            sum += metric_get((const _Atomic uint64_t *)(const void *)((const char *)part + offset));
    }
    return sum;
}

#define TOTAL(m, field) total(m, offsetof(struct metric_part, field))

/* A histogram as one scrape sees it: plain numbers. */
struct seen {
    uint64_t buckets[METRIC_BUCKETS_MAX + 1], count, sum;
};

static void see(struct seen *s, const struct histogram *h)
{
    s->sum += metric_get(&h->sum);
    for (size_t i = 0; i <= METRIC_BUCKETS_MAX; i++) {
        uint64_t n = metric_get(&h->buckets[i]);
        s->buckets[i] += n;
        s->count += n;
    }
}

static struct seen see_parts(const struct metrics *m, size_t offset)
{
    struct seen s = {0};
    for (size_t i = 0, n = part_count(m); i < n; i++) {
        const struct metric_part *part = part_at(m, i);
        if (part)
            see(&s, (const struct histogram *)(const void *)((const char *)part + offset));
    }
    return s;
}

static void series(struct strbuf *out, const char *name, const char *labels,
                   const struct histogram_shape *shape, const struct seen *s)
{
    const char *comma = *labels ? "," : "", *open = *labels ? "{" : "", *close = *labels ? "}" : "";
    uint64_t below = 0;
    for (size_t i = 0; i < shape->bucket_count; i++) {
        below += s->buckets[i];
        strbuf_addf(out, "%s_bucket{%s%sle=\"%g\"} %llu\n", name, labels, comma,
                    (double)shape->bounds[i] / shape->per_one, (unsigned long long)below);
    }
    strbuf_addf(out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma, (unsigned long long)s->count);
    strbuf_addf(out, "%s_sum%s%s%s %.6f\n", name, open, labels, close, (double)s->sum / shape->per_one);
    strbuf_addf(out, "%s_count%s%s%s %llu\n", name, open, labels, close, (unsigned long long)s->count);
}

static void histogram(struct strbuf *out, const char *name, const char *help,
                      const struct histogram_shape *shape, const struct histogram *h)
{
    struct seen s = {0};
    see(&s, h);
    metrics_head(out, name, "histogram", help);
    series(out, name, "", shape, &s);
}

/* --- jobs ------------------------------------------------------------------------------------------ */

static void write_jobs(const struct metrics *m, struct strbuf *out)
{
    const _Atomic uint64_t *events = m->events;
    counter(out, "jobs_submitted_total", "Jobs accepted", metric_get(&events[JOB_EVENT_CREATED]));
    counter(out, "jobs_queued_total", "Entries into QUEUED", metric_get(&events[JOB_EVENT_QUEUED]));
    counter(out, "jobs_running_total", "Entries into RUNNING", metric_get(&events[JOB_EVENT_RUNNING]));
    counter(out, "jobs_succeeded_total", "Entries into SUCCEEDED", metric_get(&events[JOB_EVENT_SUCCEEDED]));
    counter(out, "jobs_failed_total", "Entries into FAILED",
            metric_get(&events[JOB_EVENT_FAILED]) + metric_get(&events[JOB_EVENT_TIMED_OUT]));
    counter(out, "jobs_canceled_total", "Entries into CANCELED", metric_get(&events[JOB_EVENT_CANCELED]));
    counter(out, "weir_job_timeouts_total", "Jobs that ran longer than they may",
            metric_get(&events[JOB_EVENT_TIMED_OUT]));
    counter(out, "weir_job_retries_total", "Retries accepted", metric_get(&m->retries));
    counter(out, "weir_job_retry_successes_total", "Jobs that succeeded after a retry",
            metric_get(&m->retry_successes));
    counter(out, "weir_job_retries_exhausted_total", "Jobs that failed with no retry left",
            metric_get(&events[JOB_EVENT_RETRIES_EXHAUSTED]));
    counter(out, "weir_lease_expired_total", "Leases that ended before a start",
            metric_get(&events[JOB_EVENT_LEASE_EXPIRED]));
    counter(out, "weir_idempotent_replays_total", "Submits answered from an earlier one", TOTAL(m, replays));
    histogram(out, "job_queue_wait_seconds", "From claimable to claimed", &shape_seconds, &m->queue_wait);
    histogram(out, "weir_job_assigned_seconds", "From claimed to started", &shape_seconds, &m->assigned);
    histogram(out, "job_execution_seconds", "From start to end", &shape_seconds, &m->execution);
}

/* Own kinds are many: together they are "none" of the catalog. */
static const char *scenario_text(int k)
{
    return k < WORK_KIND_COUNT ? work_kind_text((enum work_kind)k) : "none";
}

static void write_scenarios(const struct metrics *m, struct strbuf *out)
{
    char labels[128];
    metrics_head(out, "weir_scenario_submitted_total", "counter", "Jobs accepted by work kind");
    for (int k = 0; k <= WORK_KIND_COUNT; k++) {
        uint64_t n = metric_get(&m->scenario_submitted[k]);
        snprintf(labels, sizeof labels, "scenario=\"%s\"", scenario_text(k));
        if (n)
            sample(out, "weir_scenario_submitted_total", labels, n);
    }
    metrics_head(out, "weir_scenario_ended_total", "counter", "Jobs ended by work kind and outcome");
    for (int k = 0; k <= WORK_KIND_COUNT; k++)
        for (int s = 0; s < JOB_STATE_COUNT; s++) {
            uint64_t n = metric_get(&m->scenario_ended[k][s]);
            if (!n)
                continue;
            snprintf(labels, sizeof labels, "scenario=\"%s\",outcome=\"%s\"", scenario_text(k),
                     job_outcome_text((enum job_state)s));
            sample(out, "weir_scenario_ended_total", labels, n);
        }
}

static void write_queue(const struct kernel_stats *k, struct strbuf *out)
{
    static const char *const name = "weir_jobs_in_state";
    gauge(out, "job_queue_depth", "Jobs in QUEUED", k->queued);
    metrics_head(out, name, "gauge", "Unfinished jobs by state");
    sample(out, name, "state=\"CREATED\"", k->waiting);
    sample(out, name, "state=\"QUEUED\"", k->queued);
    sample(out, name, "state=\"ASSIGNED\"", k->assigned);
    sample(out, name, "state=\"RUNNING\"", k->running);
    gauge(out, "weir_workers", "Workers heard of lately", k->workers);
}

/* --- requests -------------------------------------------------------------------------------------- */

static size_t route_offset(size_t route, size_t field)
{
    return offsetof(struct metric_part, routes) + route * sizeof(struct route_metrics) + field;
}

static void route_labels(const struct metrics *m, size_t route, size_t status, char *out, size_t size)
{
    snprintf(out, size, "operation=\"%s\",status=\"%d\"",
             route < m->route_count ? m->routes[route].operation_id : "none", metric_statuses[status]);
}

static void write_requests(const struct metrics *m, struct strbuf *out)
{
    static const char *const name = "weir_http_requests_total";
    char labels[128];
    metrics_head(out, name, "counter", "Requests by operation and status code");
    for (size_t r = 0; r <= m->route_count; r++)
        for (size_t s = 0; s < METRIC_STATUS_COUNT; s++) {
            uint64_t n = total(m, route_offset(r, offsetof(struct route_metrics, requests) + s * sizeof n));
            route_labels(m, r, s, labels, sizeof labels);
            if (n)
                sample(out, name, labels, n);
        }
}

static void write_latencies(const struct metrics *m, struct strbuf *out)
{
    static const char *const name = "weir_http_request_seconds";
    char labels[128];
    metrics_head(out, name, "histogram", "From the last byte of a request to the last of its answer");
    for (size_t r = 0; r <= m->route_count; r++)
        for (size_t s = 0; s < METRIC_STATUS_COUNT; s++) {
            size_t field = offsetof(struct route_metrics, latencies) + s * sizeof(struct histogram);
            struct seen seen = see_parts(m, route_offset(r, field));
            route_labels(m, r, s, labels, sizeof labels);
            if (seen.count)
                series(out, name, labels, &shape_seconds, &seen);
        }
}

static void write_problems(const struct metrics *m, struct strbuf *out)
{
    static const char *const name = "weir_http_problems_total";
    char labels[128];
    metrics_head(out, name, "counter", "Requests refused or failed, by error code");
    for (size_t c = 0; c < ERR_CODE_COUNT; c++) {
        uint64_t n = total(m, offsetof(struct metric_part, problems) + c * sizeof n);
        snprintf(labels, sizeof labels, "code=\"%s\"", err_wire((enum err_code)c));
        if (n)
            sample(out, name, labels, n);
    }
}

/* --- the rest -------------------------------------------------------------------------------------- */

static void write_outbound(const struct metrics *m, struct strbuf *out)
{
    metrics_head(out, "weir_outbound_results_total", "counter", "Attempts to deliver, by what became of it");
    for (int hook = 0; hook < 2; hook++)
        for (int class = 0; class < OUTBOUND_CLASS_COUNT; class ++) {
            char labels[96];
            uint64_t count = TOTAL(m, outbound[hook][class]);
            snprintf(labels, sizeof labels, "channel=\"%s\",classification=\"%s\"",
                     hook ? "webhook" : "callback", outbound_class_text((enum outbound_class) class));
            if (count)
                sample(out, "weir_outbound_results_total", labels, count);
        }
}

static void write_webhooks(const struct metrics *m, struct strbuf *out)
{
    struct seen s = see_parts(m, offsetof(struct metric_part, webhook_seconds));
    counter(out, "webhook_deliveries_total", "Webhook calls the receiver took", TOTAL(m, webhook_deliveries));
    counter(out, "webhook_failures_total", "Webhook attempts that failed", TOTAL(m, webhook_failures));
    metrics_head(out, "weir_webhook_seconds", "histogram", "Length of a webhook attempt");
    series(out, "weir_webhook_seconds", "", &shape_seconds, &s);
    metrics_head(out, "weir_webhooks_disabled_total", "counter", "Webhooks that were disabled, by reason");
    for (int why = 0; why < WEBHOOK_FAULT_COUNT; why++) {
        char labels[64];
        snprintf(labels, sizeof labels, "reason=\"%s\"", webhook_fault_text((enum webhook_fault)why));
        sample(out, "weir_webhooks_disabled_total", labels, metric_get(&m->webhooks_disabled[why]));
    }
}

static void write_runs(const struct metrics *m, struct strbuf *out)
{
    char labels[64];
    counter(out, "weir_run_events_total", "Run events written", metric_get(&m->run_events));
    counter(out, "weir_signals_rate_limited_total", "Signals beyond a limit of rate, which left no record",
            TOTAL(m, signals_rate_limited));
    metrics_head(out, "weir_signals_total", "counter", "Signals decided, by decision");
    for (int d = 0; d < SIGNAL_DECISION_COUNT; d++) {
        snprintf(labels, sizeof labels, "decision=\"%s\"", signal_decision_text((enum signal_decision)d));
        sample(out, "weir_signals_total", labels, metric_get(&m->signals[d]));
    }
    metrics_head(out, "weir_alerts_total", "counter",
                 "Alerts raised, by category; security: refused signals");
    for (int c = 0; c < ALERT_CATEGORY_COUNT; c++) {
        snprintf(labels, sizeof labels, "category=\"%s\"", alert_category_text((enum alert_category)c));
        sample(out, "weir_alerts_total", labels, metric_get(&m->alerts[c]));
    }
}

static void write_store(const struct metrics *m, const struct kernel_stats *k, struct strbuf *out)
{
    counter(out, "weir_commit_batches_total", "Batches committed", k->batches);
    counter(out, "weir_commit_commands_total", "Commands decided", k->commands);
    counter(out, "weir_commands_refused_total", "Commands that found no room to wait", k->refused);
    histogram(out, "weir_commit_batch_commands", "Commands in a batch that was written", &shape_commands,
              &m->batch_commands);
    histogram(out, "weir_commit_seconds", "Length of a commit, fsync included", &shape_seconds,
              &m->commit_seconds);
    counter(out, "weir_store_errors_total", "Commits that failed", k->commit_errors);
    gauge(out, "weir_store_writable", "1 while commits go through", k->storing);
    gauge(out, "weir_clock_in_doubt", "1 while the wall clock has jumped and nothing is deleted",
          k->clock_in_doubt);
    gauge(out, "weir_wal_pages", "Pages in the write-ahead log", (uint64_t)k->wal_pages);
}

static void write_tls(const struct metrics_around *around, struct strbuf *out)
{
    static const char *const name = "weir_tls_handshakes_total";
    static const char *const ends[] = {
#define X(id, label) [HTTP_HANDSHAKE_##id] = label,
        HTTP_HANDSHAKE_ENDS(X)
#undef X
    };
    gauge(out, "weir_tls_certificate_expires_at_seconds",
          "When the server's certificate expires, in seconds since 1970", (uint64_t)around->tls_expires_at);
    metrics_head(out, name, "counter", "TLS handshakes by how they ended");
    for (size_t i = 0; i < LENGTH_OF(ends); i++)
        strbuf_addf(out, "%s{end=\"%s\"} %llu\n", name, ends[i], (unsigned long long)around->handshakes[i]);
}

void metrics_write(struct metrics *m, const struct metrics_around *around, struct strbuf *out)
{
    write_jobs(m, out);
    write_queue(&around->kernel, out);
    counter(out, "weir_worker_heartbeats_total", "Heartbeats of tasks that were accepted",
            TOTAL(m, heartbeats));
    counter(out, "weir_inbox_taken_total", "Rows of the inbox that became jobs", around->inbox_taken);
    counter(out, "weir_inbox_refused_total", "Rows of the inbox that stay with an error",
            around->inbox_refused);
    if (around->kernel.leads && around->keys_expiring >= 0) /* one node looks for all */
        gauge(out, "weir_keys_expiring",
              "Active API keys that expire within 14 days, as of an hour ago at most",
              (uint64_t)around->keys_expiring);
    write_webhooks(m, out);
    write_outbound(m, out);
    write_runs(m, out);
    write_store(m, &around->kernel, out);
    gauge(out, "weir_http_connections", "Open connections", around->connections);
    gauge(out, "weir_http_unsent_bytes", "Of answers that wait for their clients", around->unsent_bytes);
    if (around->has_tls)
        write_tls(around, out);
    write_requests(m, out);
    write_latencies(m, out);
    write_problems(m, out);
    write_scenarios(m, out);
    counter(out, "weir_log_dropped_total", "Log lines of core that found no room", around->log_dropped);
    counter(out, "weir_spans_total", "Trace spans recorded", around->spans);
    counter(out, "weir_spans_dropped_total", "Trace spans that did not get to the collector",
            around->spans_dropped);
    counter(out, "weir_policy_questions_total", "Signals that the policy decision point was to judge",
            around->policy_asked);
    counter(out, "weir_policy_unanswered_total", "Of those, the ones it did not: the fallback decided",
            around->policy_unanswered);
    metrics_write_process(out);
}
