/* api/metrics.h - what happened, counted; and the Prometheus text of it.
 *
 * Cost:      each thread writes a part of its own, with plain loads and stores (relaxed, no lock prefix, no
 *            shared cache line); a scrape adds the parts up. Counting a request costs a few nanoseconds.
 * Threads:   what is committed is counted by the commit thread only (metrics_committed, metrics_batch); the
 *            rest by any thread, which gets its part at its first count. At most METRICS_THREADS_MAX threads.
 * Bounded:   labels are operations, status codes, error codes, work kinds and states: lists of our own, never
 *            anything a client sent; but for names of queues (metrics/queues.h), which are so many and no
 *            more. A series appears with its first value.
 * Agreement: a histogram's count is the sum of its buckets as they were read, so no scrape contradicts
 *            itself. Counters start at 0 with the process. */
#ifndef WEIR_API_METRICS_H
#define WEIR_API_METRICS_H

#include "engine/alert.h"
#include "http/router.h"
#include "kernel/kernel.h"
#include "lifecycle/delivery_lifecycle.h"
#include "lifecycle/signals.h"
#include "runtime/slo.h"

enum { METRICS_THREADS_MAX = 512 };

/* The effect of an attempt on its delivery. X(id, name) */
#define OUTBOUND_CLASSES(X)                                                                                  \
    X(DELIVERED, "delivered")                                                                                \
    X(RETRIED, "retried")     /* failed, and is tried again */                                               \
    X(EXHAUSTED, "exhausted") /* failed, and was the last */                                                 \
    X(REJECTED, "rejected")   /* trying again cannot help: gone, denied, or nothing that could be sent */
#define X(id, name) OUTBOUND_##id,
enum outbound_class { OUTBOUND_CLASSES(X) OUTBOUND_CLASS_COUNT };
#undef X
const char *outbound_class_text(enum outbound_class class);

struct metrics;
/* `routes` must live as long as the metrics. */
struct metrics *metrics_new(const struct route *routes, size_t route_count);
struct metrics *metrics_free(struct metrics *m); /* NULL is fine; always returns NULL */

/* --- the commit thread ---------------------------------------------------------------------------- */

void metrics_committed(struct metrics *m, const struct unit *u);
void metrics_jobs_committed(struct metrics *m, const struct unit *u);
void metrics_webhook_disabled(struct metrics *m, enum webhook_fault why);
void metrics_run_events(struct metrics *m, size_t count);
void metrics_signal(struct metrics *m, enum signal_decision decision);
void metrics_signal_rate_limited(struct metrics *m); /* HTTP thread: one that left no record */
void metrics_alert(struct metrics *m, enum alert_category category);
/* After a batch was answered: its size and how long its commit took. */
void metrics_batch(struct metrics *m, const struct kernel_stats *k);

/* --- any thread ----------------------------------------------------------------------------------- */

/* An answer that was sent at once or after its commit. A route number that is none counts as "none". */
void metrics_request(struct metrics *m, size_t route_number, int status, int64_t duration_us);
void metrics_stream(struct metrics *m, size_t route_number, int status); /* a stream has no latency */
void metrics_problem(struct metrics *m, enum err_code code);
void metrics_idempotent_replay(struct metrics *m);
void metrics_heartbeats(struct metrics *m, uint64_t accepted);
/* One attempt to deliver a webhook, told by the process that made it. */
void metrics_webhook(struct metrics *m, bool delivered, int64_t duration_us);
/* The result of the delivery with it. */
void metrics_outbound(struct metrics *m, bool to_webhook, enum outbound_class class);
/* This thread's tally of an SLO; and the sum of all threads'. */
struct slo_tally *metrics_slo(struct metrics *m, enum slo_id id);
void metrics_slo_sum(const struct metrics *m, enum slo_id id, struct slo_tally *ret_sum);

/* --- a scrape, any thread ------------------------------------------------------------------------- */

/* Figures that other modules count. */
struct metrics_around {
    struct kernel_stats kernel;
    uint32_t connections;
    uint64_t unsent_bytes;
    bool has_tls; /* the following fields are about TLS */
    int64_t tls_expires_at;
    uint64_t handshakes[HTTP_HANDSHAKE_END_COUNT];
    uint64_t log_dropped, spans, spans_dropped;
};
void metrics_write(struct metrics *m, const struct metrics_around *around, struct strbuf *out);
struct metrics_of_jobs {
    uint64_t inbox_taken, inbox_refused;
    int64_t keys_expiring; /* API keys; -1: not known here */
};
void metrics_write_jobs(const struct metrics *m, const struct kernel_stats *k,
                        const struct metrics_of_jobs *around, struct strbuf *out);
/* asked, unanswered: questions to the policy decision point. */
void metrics_write_runs(const struct metrics *m, uint64_t asked, uint64_t unanswered, struct strbuf *out);

/* For those who add families of their own (a contract's write_metrics). A family is announced, then its
 * samples follow; `labels` is `name="value"` or empty. */
void metrics_head(struct strbuf *out, const char *name, const char *type, const char *help);
void metrics_sample(struct strbuf *out, const char *name, const char *labels, uint64_t value);
/* A family of one sample. */
void metrics_counter(struct strbuf *out, const char *name, const char *help, uint64_t value);
void metrics_gauge(struct strbuf *out, const char *name, const char *help, uint64_t value);

#endif
