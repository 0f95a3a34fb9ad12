/* The Prometheus text format 0.0.4. Every family is announced once, before its first sample. */
#include <stdio.h>

#include "api/metrics/metrics_internal.h"
#include "base/must.h"

#include "base/banned.h"

void metrics_head(struct strbuf *out, const char *name, const char *type, const char *help)
{
    strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_sample(struct strbuf *out, const char *name, const char *labels, uint64_t value)
{
    strbuf_addf(out, "%s%s%s%s %llu\n", name, *labels ? "{" : "", labels, *labels ? "}" : "",
                (unsigned long long)value);
}

void metrics_counter(struct strbuf *out, const char *name, const char *help, uint64_t value)
{
    metrics_head(out, name, "counter", help);
    metrics_sample(out, name, "", value);
}

void metrics_gauge(struct strbuf *out, const char *name, const char *help, uint64_t value)
{
    metrics_head(out, name, "gauge", help);
    metrics_sample(out, name, "", value);
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
uint64_t metrics_total(const struct metrics *m, size_t offset)
{
    uint64_t sum = 0;
    for (size_t i = 0, n = part_count(m); i < n; i++) {
        const struct metric_part *part = part_at(m, i);
        if (part)
            sum += metric_get((const _Atomic uint64_t *)(const void *)((const char *)part + offset));
    }
    return sum;
}

static void see(struct histogram_seen *s, const struct histogram *h)
{
    s->sum += metric_get(&h->sum);
    for (size_t i = 0; i <= METRIC_BUCKETS_MAX; i++) {
        uint64_t n = metric_get(&h->buckets[i]);
        s->buckets[i] += n;
        s->count += n;
    }
}

struct histogram_seen metrics_see_parts(const struct metrics *m, size_t offset)
{
    struct histogram_seen s = {0};
    for (size_t i = 0, n = part_count(m); i < n; i++) {
        const struct metric_part *part = part_at(m, i);
        if (part)
            see(&s, (const struct histogram *)(const void *)((const char *)part + offset));
    }
    return s;
}

void metrics_series(struct strbuf *out, const char *name, const char *labels,
                    const struct histogram_shape *shape, const struct histogram_seen *s)
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

void metrics_histogram(struct strbuf *out, const char *name, const char *help,
                       const struct histogram_shape *shape, const struct histogram *h)
{
    struct histogram_seen s = {0};
    see(&s, h);
    metrics_head(out, name, "histogram", help);
    metrics_series(out, name, "", shape, &s);
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
            uint64_t n =
                metrics_total(m, route_offset(r, offsetof(struct route_metrics, requests) + s * sizeof n));
            route_labels(m, r, s, labels, sizeof labels);
            if (n)
                metrics_sample(out, name, labels, n);
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
            struct histogram_seen seen = metrics_see_parts(m, route_offset(r, field));
            route_labels(m, r, s, labels, sizeof labels);
            if (seen.count)
                metrics_series(out, name, labels, &shape_seconds, &seen);
        }
}

static void write_problems(const struct metrics *m, struct strbuf *out)
{
    static const char *const name = "weir_http_problems_total";
    char labels[128];
    metrics_head(out, name, "counter", "Requests refused or failed, by error code");
    for (size_t c = 0; c < ERR_CODE_COUNT; c++) {
        uint64_t n = metrics_total(m, offsetof(struct metric_part, problems) + c * sizeof n);
        snprintf(labels, sizeof labels, "code=\"%s\"", err_wire((enum err_code)c));
        if (n)
            metrics_sample(out, name, labels, n);
    }
}

/* --- the rest -------------------------------------------------------------------------------------- */

static void write_store(const struct metrics *m, const struct kernel_stats *k, struct strbuf *out)
{
    metrics_counter(out, "weir_commit_batches_total", "Batches committed", k->batches);
    metrics_counter(out, "weir_commit_commands_total", "Commands decided", k->commands);
    metrics_counter(out, "weir_commands_refused_total", "Commands that found no room to wait", k->refused);
    metrics_histogram(out, "weir_commit_batch_commands", "Commands in a batch that was written",
                      &shape_commands, &m->batch_commands);
    metrics_histogram(out, "weir_commit_seconds", "Length of a commit, fsync included", &shape_seconds,
                      &m->commit_seconds);
    metrics_counter(out, "weir_store_errors_total", "Commits that failed", k->commit_errors);
    metrics_gauge(out, "weir_store_writable", "1 while commits go through", k->storing);
    metrics_gauge(out, "weir_clock_in_doubt", "1 while the wall clock has jumped and nothing is deleted",
                  k->clock_in_doubt);
    metrics_gauge(out, "weir_wal_pages", "Pages in the write-ahead log", (uint64_t)k->wal_pages);
}

static void write_tls(const struct metrics_around *around, struct strbuf *out)
{
    static const char *const name = "weir_tls_handshakes_total";
    static const char *const ends[] = {
#define X(id, label) [HTTP_HANDSHAKE_##id] = label,
        HTTP_HANDSHAKE_ENDS(X)
#undef X
    };
    metrics_gauge(out, "weir_tls_certificate_expires_at_seconds",
                  "When the server's certificate expires, in seconds since 1970",
                  (uint64_t)around->tls_expires_at);
    metrics_head(out, name, "counter", "TLS handshakes by how they ended");
    for (size_t i = 0; i < LENGTH_OF(ends); i++)
        strbuf_addf(out, "%s{end=\"%s\"} %llu\n", name, ends[i], (unsigned long long)around->handshakes[i]);
}

void metrics_write(struct metrics *m, const struct metrics_around *around, struct strbuf *out)
{
    write_store(m, &around->kernel, out);
    metrics_gauge(out, "weir_http_connections", "Open connections", around->connections);
    metrics_gauge(out, "weir_http_unsent_bytes", "Of answers that wait for their clients",
                  around->unsent_bytes);
    if (around->has_tls)
        write_tls(around, out);
    write_requests(m, out);
    write_latencies(m, out);
    write_problems(m, out);
    metrics_counter(out, "weir_log_dropped_total", "Log lines of core that found no room",
                    around->log_dropped);
    metrics_counter(out, "weir_spans_total", "Trace spans recorded", around->spans);
    metrics_counter(out, "weir_spans_dropped_total", "Trace spans that did not get to the collector",
                    around->spans_dropped);
    metrics_write_process(out);
}
