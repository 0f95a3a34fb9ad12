#include "api/delivery_traces.h"

#include <stdio.h>

#include "api/job_traces.h"
#include "base/url.h"
#include "jobs/job_notices.h"

#include "base/banned.h"

bool delivery_context(struct str of_job, uint64_t stream_low, int64_t token,
                      struct trace_context *ret_context)
{
    struct trace_context c;
    if (!traceparent_parse(of_job, &c) || !c.sampled)
        return false;
    span_id_derived(stream_low, (uint64_t)token, DERIVED_DELIVERY, c.span_id);
    *ret_context = c;
    return true;
}

static void add_id(struct span *s, const char *key, int64_t id, int64_t low)
{
    struct uuid uuid = uuid_from_v7(id, (uint64_t)low);
    char text[UUID_TEXT_LEN + 1];
    uuid_text(&uuid, text);
    span_text(s, key, str_of(text));
}

/* Scheme, host and port: nothing of the path or the query. */
static void add_server(struct span *s, struct str text)
{
    struct url url;
    if (url_parse(text, &url))
        return; /* stored before URLs were checked as they are now */
    span_text(s, "url.scheme", url.tls ? STR("https") : STR("http"));
    span_text(s, "server.address", str_of(url.host));
    span_number(s, "server.port", url.port);
}

/* As OpenTelemetry has it: the status when that is what is wrong, else a name for it. */
static void add_error(struct span *s, const struct attempt_notice *n)
{
    char status[24];
    s->failed = n->error.ptr != NULL;
    if (!s->failed)
        return;
    snprintf(status, sizeof status, "%lld", (long long)n->status);
    span_text(s, "error.type", str_is(n->error, "http_status") ? str_of(status) : n->error);
}

static void end_attempt(struct tracer *t, const struct attempt_notice *n, int64_t now_us)
{
    struct span s = {.kind = SPAN_CLIENT, .start_us = n->started_ms * 1000, .end_us = now_us};
    struct trace_context parent;
    if (!delivery_context(n->job->traceparent, (uint64_t)n->stream_low, n->token, &s.context) ||
        !traceparent_parse(n->job->traceparent, &parent))
        return;
    memcpy(s.parent, parent.span_id, SPAN_ID_BYTES);
    span_name(&s, n->delivery->webhook ? "POST webhook" : "POST callback");
    span_text(&s, "http.request.method", STR("POST"));
    if (!n->delivery->webhook || n->webhook)
        add_server(&s, n->delivery->webhook ? n->webhook->url : n->job->callback);
    if (n->status)
        span_number(&s, "http.response.status_code", n->status);
    if (n->attempt > 1)
        span_number(&s, "http.request.resend_count", n->attempt - 1);
    add_error(&s, n);
    add_id(&s, "weir.job_id", n->job->id, n->job->low);
    add_id(&s, "weir.delivery_id", n->delivery->id, n->delivery->low);
    if (n->webhook)
        add_id(&s, "weir.webhook_id", n->webhook->id, n->webhook->low);
    span_number(&s, "weir.delivery_attempt", n->attempt);
    span_number(&s, "weir.event_seq", n->delivery->event);
    tracer_end(t, &s);
}

void delivery_traces_committed(struct tracer *t, const struct unit *u, int64_t now_us)
{
    for (size_t i = 0; i < u->notices.count; i++) {
        const struct attempt_notice *n = notice_row(&u->notices.list[i], &attempt_notices);
        if (n)
            end_attempt(t, n, now_us);
    }
}
