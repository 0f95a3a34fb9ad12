/* One delivery: from what core gave to what core is told. */
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "domains/gateway/gateway_internal.h"

#include "base/banned.h"

static struct str copy_member(struct arena *a, const struct json *object, const char *key)
{
    const struct json *j = object ? json_get(object, key) : NULL;
    return j && j->type == JSON_STRING ? arena_str(a, j->text) : STR_ABSENT;
}

static void read_headers(struct sending *s, const struct json *headers)
{
    if (!headers || headers->type != JSON_OBJECT)
        return;
    s->headers = ARENA_ARRAY(s->arena, struct str, headers->count);
    for (const struct json *h = headers->child; h; h = h->next)
        s->headers[s->header_count++] =
            arena_printf(s->arena, "%.*s: %.*s", STR_ARG(h->key), STR_ARG(h->text));
}

static void fail(struct sending *s, const char *code, const char *message, bool retryable)
{
    s->success = false;
    s->retryable = retryable;
    snprintf(s->error_code, sizeof s->error_code, "%s", code);
    snprintf(s->error_message, sizeof s->error_message, "%s", message);
}

struct sending *sending_new(const struct worker_task *task)
{
    struct arena *a = arena_new(1 << 11);
    struct sending *s = ARENA_NEW(a, struct sending);
    s->arena = a;
    s->owner.over = sending_over;
    s->task.ref = (struct worker_task_ref){arena_str(a, task->ref.task_id), arena_str(a, task->ref.token)};
    s->attempt = task->attempt;
    s->about = task->payload ? arena_str(a, task->payload->source) : STR("{}");
    s->delivery_id = s->task.name = copy_member(a, task->payload, "delivery_id");
    bool defined = task->definition && task->definition->type == JSON_OBJECT;
    if (defined) {
        s->url = copy_member(a, task->definition, "url");
        s->body = copy_member(a, task->definition, "body");
        read_headers(s, json_get(task->definition, "headers"));
    }
    if (!s->url.ptr || !s->body.ptr) {
        struct str why = copy_member(a, task->payload, "undeliverable");
        s->poison = !why.ptr || str_is(why, "unreadable");
        fail(s, why.ptr ? why.ptr : "no_request",
             s->poison ? "what is stored cannot be made a request" : "there is nothing to send any more",
             false);
    }
    return s;
}

static void done(struct gateway *g, struct sending *s)
{
    domain_task_ended(g->domain, &s->task);
    outbound_tell_result(g, s, clock_mono_ms(&clock_system));
}

enum err_code sending_begin(struct gateway *g, struct sending *s, int64_t now_ms, struct err *err)
{
    int64_t timeout_ms = g->process->settings->webhooks_timeout_ms;
    s->begun_ms = now_ms;
    if (*s->error_code) {
        done(g, s);
        return ERR_OK;
    }
    struct egress_request request = {
        .url = s->url,
        .headers = s->headers,
        .header_count = s->header_count,
        .body = s->body,
        .timeout_ms = timeout_ms,
        .connect_timeout_ms = timeout_ms < CONNECT_TIMEOUT_MS_MAX ? timeout_ms : CONNECT_TIMEOUT_MS_MAX,
        .owner = &s->owner};
    enum err_code code = egress_send(g->egress, &request, err);
    if (code == ERR_OK) {
        TAILQ_INSERT_TAIL(&s->partition->out, s, out);
    } else if (code == ERR_REQUEST_MALFORMED) { /* the item is wrong, not its carrier */
        s->poison = true;
        fail(s, "malformed", err->detail, false);
        done(g, s);
        return ERR_OK;
    }
    return code;
}

/* An address that is denied today is denied tomorrow; everything else may pass. */
static bool is_retryable(enum egress_failure failure)
{
    return failure != EGRESS_POLICY;
}

void sending_over(struct request_owner *owner, const struct egress_result *r)
{
    struct sending *s = CONTAINER_OF(owner, struct sending, owner);
    struct gateway *g = s->partition->gateway;
    TAILQ_REMOVE(&s->partition->out, s, out);
    if (s->partition->stopping) {
        domain_task_back(g->domain, &s->task);
        return;
    }
    s->status = r->status;
    s->duration_ms = r->duration_ms;
    s->retry_after_ms = r->retry_after_ms > 0 ? r->retry_after_ms : 0;
    s->success = r->failure == EGRESS_NONE && r->status >= 200 && r->status < 300;
    if (r->failure != EGRESS_NONE) {
        fail(s, egress_failure_wire(r->failure), r->error, is_retryable(r->failure));
    } else if (!s->success) {
        char message[48];
        snprintf(message, sizeof message, "the receiver answered %d", r->status);
        fail(s, "http_status", message, r->status != 410);
    }
    done(g, s);
}

struct worker_finish sending_report(const struct sending *s, struct arena *a)
{
    struct str result = arena_printf(
        a, "{\"status\":%d,\"duration_ms\":%lld,\"retry_after_ms\":%lld,\"attempt\":%lld,\"about\":%.*s}",
        s->status, (long long)s->duration_ms, (long long)s->retry_after_ms, (long long)s->attempt,
        STR_ARG(s->about));
    return (struct worker_finish){.ref = s->task.ref,
                                  .success = s->success,
                                  .result = result,
                                  .error_code = s->success ? STR_ABSENT : str_of(s->error_code),
                                  .error_message = s->success ? STR_ABSENT : str_of(s->error_message),
                                  .retryable = s->retryable};
}
