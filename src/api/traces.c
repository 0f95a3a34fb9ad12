#include "api/traces.h"

#include <stdlib.h>

#include "api/api.h"
#include "api/delivery_traces.h"
#include "api/job_traces.h"
#include "base/json_members.h"
#include "base/must.h"
#include "jobs/job_notices.h"
#include "kernel/worker_commands.h"
#include "telemetry/otlp.h"

#include "base/banned.h"

struct traces {
    const struct clock *clock;
    struct tracer *tracer;
    struct job_traces *jobs;
};

struct traces *traces_new(const struct clock *clock, double sample_ratio)
{
    if (!otlp_endpoint())
        return NULL;
    struct traces *t = must_alloc(sizeof *t);
    t->clock = clock;
    t->tracer = tracer_new(sample_ratio);
    t->jobs = job_traces_new(t->tracer, JOB_TRACES_MAX);
    return t;
}

struct traces *traces_free(struct traces *t)
{
    if (!t)
        return NULL;
    job_traces_free(t->jobs);
    tracer_free(t->tracer);
    free(t);
    return NULL;
}

void traces_committed(struct traces *t, const struct unit *u)
{
    if (!t || !u->notices.count)
        return;
    job_traces_committed(t->jobs, u, clock_wall_us(t->clock));
    delivery_traces_committed(t->tracer, u, clock_wall_us(t->clock));
}

const struct notice_kind *const *traces_costly(const struct traces *t)
{
    static const struct notice_kind *const kinds[] = {&attempt_notices, NULL};
    return t ? kinds : NULL;
}

void traces_depth(struct traces *t, int64_t *ret_depth, int64_t *ret_capacity)
{
    *ret_depth = t ? (int64_t)tracer_depth(t->tracer) : 0;
    *ret_capacity = t ? TRACER_SPANS_MAX : 0;
}

void traces_counts(struct traces *t, uint64_t *ret_recorded, uint64_t *ret_dropped)
{
    *ret_recorded = *ret_dropped = 0;
    if (t)
        tracer_counts(t->tracer, ret_recorded, ret_dropped);
}

/* --- the span of a call ------------------------------------------------------------------------------ */

static bool is_wanted(const struct call *c, struct str traceparent)
{
    struct trace_context from;
    return str_starts(str_of(c->match.route->pattern), "/v1/") ||
           (traceparent_parse(traceparent, &from) && from.sampled);
}

void call_trace_begin(struct call *c)
{
    struct traces *t = c->api->traces;
    struct str traceparent = t ? http_header(c->x, "traceparent") : STR_ABSENT;
    if (!t || !is_wanted(c, traceparent))
        return;
    struct span *s = ARENA_NEW(c->x->arena, struct span);
    if (!tracer_begin(t->tracer, traceparent, s))
        return;
    const struct route *route = c->match.route;
    s->start_us = c->x->received_us;
    span_name(s, "%s %s", http_method_text(route->method), route->pattern);
    span_text(s, "http.request.method", c->x->method_text);
    span_text(s, "http.route", str_of(route->pattern));
    c->span = s;
}

void call_trace_end(struct call *c)
{
    struct span *s = c->span;
    char text[UUID_TEXT_LEN + 1];
    if (!s)
        return;
    c->span = NULL;
    s->end_us = clock_wall_us(c->api->traces->clock);
    span_number(s, "http.response.status_code", c->x->status);
    uuid_text(&c->x->request_id, text);
    span_text(s, "weir.request_id", str_of(text));
    uuid_text(&c->who.client_id, text);
    span_text(s, "weir.client_id", c->who.client ? str_of(text) : STR_ABSENT);
    span_text(s, "weir.job_id", c->job_id);
    if (c->err.code != ERR_OK)
        span_text(s, "error.type", str_of(err_wire(c->err.code)));
    s->failed = c->x->status >= 500; /* of a server span, as OpenTelemetry has it: 4xx is the client's */
    tracer_end(c->api->traces->tracer, s);
}

void call_trace_text(struct call *c, const char *key, struct str text)
{
    if (c->span)
        span_text(c->span, key, text);
}

void call_trace_id(struct call *c, const char *key, int64_t id, uint64_t low)
{
    struct uuid uuid = uuid_from_v7(id, low);
    char text[UUID_TEXT_LEN + 1];
    if (!c->span)
        return;
    uuid_text(&uuid, text);
    span_text(c->span, key, str_of(text));
}

/* --- contexts of jobs -------------------------------------------------------------------------------- */

static struct str context_text(struct call *c, const struct trace_context *context)
{
    char text[TRACEPARENT_LEN + 1];
    return arena_str(c->x->arena, traceparent_text(context, text));
}

struct str call_traceparent(struct call *c)
{
    struct trace_context from;
    if (c->span)
        return context_text(c, &c->span->context);
    return traceparent_parse(http_header(c->x, "traceparent"), &from) ? context_text(c, &from) : STR_ABSENT;
}

void call_trace_job(struct call *c, int64_t id)
{
    struct traces *t = c->api->traces;
    struct job_row job = {.id = id};
    struct err err;
    bool found;
    struct reader *r = t ? api_read_begin(c->api, &err) : NULL;
    if (!r || r->ops->reader_row(r, &table_job_row, &job, c->x->arena, &found, &err) != ERR_OK || !found ||
        job.client != c->who.client) /* the decider says what is wrong */
        return;
    if (c->span)
        (void)traceparent_parse(job.traceparent, &c->span->link);
    job_traces_learn(t->jobs, &job, clock_wall_us(t->clock));
}

struct str call_run_traceparent(struct call *c, const struct job_row *job, int64_t attempt)
{
    struct traces *t = c->api->traces;
    struct trace_context run;
    if (!t || !job_run_context(job, attempt, &run))
        return job->traceparent;
    job_traces_learn(t->jobs, job, clock_wall_us(t->clock));
    return context_text(c, &run);
}

struct str call_delivery_traceparent(struct call *c, struct str of_job, const struct claimed_task *t)
{
    struct trace_context attempt;
    if (!c->api->traces || !delivery_context(of_job, t->low, t->token, &attempt))
        return of_job;
    return context_text(c, &attempt);
}

/* --- the way out ------------------------------------------------------------------------------------- */

/* {"lost":N}; anything else says nothing. */
static int64_t spans_lost(struct http_exchange *x)
{
    const struct json *root, *lost;
    struct err err;
    int64_t count = 0;
    if (!x->body.len || json_parse(x->arena, x->body, &root, &err) != ERR_OK ||
        !(lost = json_get(root, "lost")) || !json_to_int(lost, &count) || count < 0)
        return 0;
    return count;
}

bool traces_serve(struct traces *t, struct http_exchange *x)
{
    if (!t || !x->over_unix_socket || x->method != HTTP_POST || !str_is(x->path, TRACES_TAKE_PATH))
        return false;
    struct span *spans = must_alloc(TRACES_TAKE_MAX * sizeof *spans);
    tracer_lost(t->tracer, (uint64_t)spans_lost(x));
    size_t count = tracer_take(t->tracer, spans, TRACES_TAKE_MAX);
    struct json_writer w;
    jw_start(&w, &x->reply_body);
    jw_object(&w);
    encode_int(&w, "count", (int64_t)count);
    jw_key(&w, "otlp");
    otlp_write(&w, spans, count);
    jw_object_end(&w);
    free(spans);
    x->status = 200;
    x->content_type = "application/json";
    http_answer(x);
    return true;
}
