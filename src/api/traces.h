/* api/traces.h - traces at the HTTP edge: a span for each request of a client, the context of new jobs, and
 * the way out for finished spans.
 *
 * Off unless OTEL_EXPORTER_OTLP_ENDPOINT is set: then struct api's `traces` is NULL, and every function here
 * that takes a call does nothing but pass contexts through.
 * Which requests: those under /v1/; others (worker calls, probes) only when they come with a sampled context.
 * Requests that change a job (cancel, retry) link to the job's trace, whatever trace they are of. */
#ifndef WEIR_API_TRACES_H
#define WEIR_API_TRACES_H

#include "base/clock.h"
#include "base/json.h"
#include "http/server.h"
#include "store/rows.h"

struct call;
struct claimed_task;
struct traces;
struct notice_kind;
struct unit;

struct traces *traces_new(const struct clock *clock, double sample_ratio); /* NULL: off */
struct traces *traces_free(struct traces *t);                              /* NULL is fine */
void traces_committed(struct traces *t, const struct unit *u);
/* Of the costly kinds those that traces are made of (kernel/notice.h); NULL: none. */
const struct notice_kind *const *traces_costly(const struct traces *t);
/* Spans that wait, and how many can; NULL: zeroes. */
void traces_depth(struct traces *t, int64_t *ret_depth, int64_t *ret_capacity);
void traces_counts(struct traces *t, uint64_t *ret_recorded, uint64_t *ret_dropped); /* NULL: zeroes */

/* --- the steps of a call ---------------------------------------------------------------------------- */

void call_trace_begin(struct call *c); /* once its route is known */
void call_trace_end(struct call *c);   /* once it is answered */
void call_trace_text(struct call *c, const char *key, struct str text);
void call_trace_id(struct call *c, const char *key, int64_t id, uint64_t low); /* a v7 id */
/* The context that a job of this call stores: our span's, or the caller's when nothing is recorded. */
struct str call_traceparent(struct call *c);
/* The call is about this job of the caller: link to it, and follow its next events. */
void call_trace_job(struct call *c, int64_t id);
/* The context that a receiver gets with a delivery: the attempt's, or the job's when nothing is recorded. */
struct str call_delivery_traceparent(struct call *c, struct str of_job, const struct claimed_task *t);
/* The context that a worker gets with this job: the run's, or the stored one when nothing is recorded. */
struct str call_run_traceparent(struct call *c, const struct job_row *job, int64_t attempt);

/* POST /internal/v1/spans:take over the Unix socket: {"count":N,"otlp":{...}}, at most TRACES_TAKE_MAX spans,
 * which are then no longer here; the caller states how many of those it took before were lost: {"lost":N}.
 * Not part of the contracts: it is between processes of one program. False: the request is not this one. */
enum { TRACES_TAKE_MAX = 256 };
#define TRACES_TAKE_PATH "/internal/v1/spans:take"
bool traces_serve(struct traces *t, struct http_exchange *x);

#endif
