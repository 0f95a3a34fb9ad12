#include "api/worker/encode_delivery.h"

#include "api/jobs/encode.h"
#include "api/webhook_sign.h"
#include "base/time_text.h"
#include "base/url.h"
#include "lifecycle/delivery_lifecycle.h"

#include "base/banned.h"

/* A delivery travels to the gateway inside a JSON string, with others: larger results are left out. */
enum { WEBHOOK_RESULT_BYTES_MAX = 64 * 1024 };

/* The parts that the deliveries of one claim share. */
struct delivery_reads {
    struct reader *reader;
    struct log_memo log;
    struct webhook_row hook; /* id 0: none read yet */
    bool has_hook;
};

/* Everything a delivery is made of. */
struct sending {
    struct delivery_row delivery;
    struct str url;
    struct webhook_secrets secrets;
    struct str traceparent; /* of the job */
    struct str body;
    uint64_t job_low, webhook_low;
    const char *event_name;
    const char *undeliverable; /* why it cannot be sent; NULL: it can */
};

static bool read_row(struct call *c, struct reader *r, const struct table *t, void *row, bool *ret_found,
                     struct err *err)
{
    return r->ops->reader_row(r, t, row, c->x->arena, ret_found, err) == ERR_OK;
}

static bool read_webhook(struct call *c, struct delivery_reads *reads, struct sending *s, struct err *err)
{
    struct webhook_row *hook = &reads->hook;
    if (hook->id != s->delivery.webhook) {
        *hook = (struct webhook_row){.id = s->delivery.webhook};
        if (!read_row(c, reads->reader, &table_webhook_row, hook, &reads->has_hook, err))
            return false;
    }
    if (!reads->has_hook || !hook->enabled)
        s->undeliverable = reads->has_hook ? "webhook_disabled" : "webhook_deleted";
    s->url = hook->url;
    s->webhook_low = (uint64_t)hook->low;
    s->secrets = (struct webhook_secrets){hook->secret, hook->former, hook->rotated_ms};
    return true;
}

static bool read_callback_secret(struct call *c, struct reader *r, struct sending *s, struct err *err)
{
    struct client_secret_row row = {.client = s->delivery.client};
    bool found;
    if (!read_row(c, r, &table_client_secret_row, &row, &found, err))
        return false;
    if (!found)
        s->undeliverable = "client_gone";
    s->secrets = (struct webhook_secrets){row.secret, row.former, row.rotated_ms};
    return true;
}

/* The value of "data" is the caller's to write, then body_end. */
static void body_begin(struct sending *s, struct json_writer *w, struct strbuf *b, const char *type,
                       int64_t at_us)
{
    s->event_name = type;
    jw_start(w, b);
    jw_object(w);
    encode_text(w, "type", type);
    encode_time_us(w, "timestamp", at_us);
    jw_key(w, "data");
}

static void body_end(struct call *c, struct sending *s, struct json_writer *w, struct strbuf *b)
{
    jw_object_end(w);
    s->body = arena_str(c->x->arena, strbuf_str(b));
    strbuf_free(b);
}

/* The result of the attempt that an event ended: from the job, or from the archive when the job was tried
 * again. Both absent: the attempt was given back. */
struct outcome_texts {
    struct str result, error;
};

static bool read_outcome(struct call *c, struct reader *r, const struct job_view *v, const struct event *e,
                         struct outcome_texts *ret, struct err *err)
{
    struct archive_row archived = {.job = e->job, .attempt = e->attempt};
    bool found;
    *ret = (struct outcome_texts){STR_ABSENT, STR_ABSENT};
    if (!v->is_live && e->next == v->state && e->seq + 1 >= v->seq) { /* job.retries_exhausted may follow */
        *ret = (struct outcome_texts){v->result, v->error};
        return true;
    }
    if (!read_row(c, r, &table_archive_row, &archived, &found, err))
        return false;
    if (found && archived.finished_ms == e->at_us / 1000)
        ret->error = archived.error;
    return true;
}

static void write_outcome(struct json_writer *w, const struct outcome_texts *o)
{
    bool fits = o->result.len <= WEBHOOK_RESULT_BYTES_MAX;
    encode_raw(w, "result", fits ? o->result : STR_ABSENT);
    encode_raw(w, "error", o->error);
    if (!fits)
        encode_bool(w, "result_omitted", true);
}

static bool write_event(struct call *c, struct reader *r, struct sending *s, const struct job_view *v,
                        const struct event *e, struct err *err)
{
    struct strbuf b = {0};
    struct json_writer w;
    struct outcome_texts outcome;
    bool ends = job_state_is_final(e->next);
    if (ends && !read_outcome(c, r, v, e, &outcome, err))
        return false;
    s->job_low = (uint64_t)v->job.low;
    body_begin(s, &w, &b, job_event_text(e->event), e->at_us);
    jw_object(&w);
    encode_event_members(&w, e, &v->job);
    if (ends)
        write_outcome(&w, &outcome);
    jw_object_end(&w);
    body_end(c, s, &w, &b);
    return true;
}

static void write_test(struct call *c, struct sending *s)
{
    struct strbuf b = {0};
    struct json_writer w;
    body_begin(s, &w, &b, webhook_event_text(WEBHOOK_EVENT_TEST), s->delivery.created_ms * 1000);
    jw_object(&w);
    encode_uuid_v7(&w, "delivery_id", s->delivery.id, (uint64_t)s->delivery.low);
    jw_object_end(&w);
    body_end(c, s, &w, &b);
}

/* Another webhook of the client was disabled. */
static bool write_disabled(struct call *c, struct reader *r, struct sending *s, struct err *err)
{
    struct webhook_row hook = {.id = s->delivery.event};
    bool found;
    struct strbuf b = {0};
    struct json_writer w;
    if (!read_row(c, r, &table_webhook_row, &hook, &found, err))
        return false;
    if (!found) {
        s->undeliverable = "event_gone";
        return true;
    }
    body_begin(s, &w, &b, webhook_event_text(WEBHOOK_EVENT_DISABLED), s->delivery.created_ms * 1000);
    jw_object(&w);
    encode_uuid_v7(&w, "webhook_id", hook.id, (uint64_t)hook.low);
    encode_str(&w, "url", hook.url);
    encode_text(&w, "reason", webhook_fault_text((enum webhook_fault)hook.disabled_why));
    encode_time_ms(&w, "disabled_at", hook.disabled_ms);
    jw_object_end(&w);
    body_end(c, s, &w, &b);
    return true;
}

/* The event it carries, from the job's history. */
static bool read_event(struct call *c, struct delivery_reads *reads, struct sending *s, struct err *err)
{
    struct reader *r = reads->reader;
    struct job_view v;
    struct event e;
    bool found;
    if (!s->delivery.job && s->delivery.event)
        return write_disabled(c, r, s, err);
    if (!s->delivery.job) {
        write_test(c, s);
        return true;
    }
    if (job_view_read(r, c->x->arena, s->delivery.job, &v, &found, err) != ERR_OK)
        return false;
    if (found && job_view_event(r, c->x->arena, &v, (uint32_t)s->delivery.event, &reads->log, &e, &found,
                                err) != ERR_OK)
        return false;
    if (!found) {
        s->undeliverable = "event_gone";
        return true;
    }
    if (!s->delivery.webhook)
        s->url = v.job.callback;
    s->traceparent = v.job.traceparent;
    return write_event(c, r, s, &v, &e, err);
}

static bool read_all(struct call *c, struct delivery_reads *reads, int64_t delivery, struct sending *s,
                     struct err *err)
{
    bool found;
    s->delivery = (struct delivery_row){.id = delivery};
    if (!read_row(c, reads->reader, &table_delivery_row, &s->delivery, &found, err))
        return false;
    if (!found) {
        s->undeliverable = "delivery_gone";
        return true;
    }
    bool read =
        s->delivery.webhook ? read_webhook(c, reads, s, err) : read_callback_secret(c, reads->reader, s, err);
    return read && (s->undeliverable || read_event(c, reads, s, err));
}

static void encode_headers(struct call *c, struct json_writer *w, const struct sending *s, struct str id,
                           const struct claimed_task *t)
{
    int64_t now_ms = clock_wall_ms(c->api->config.clock);
    jw_key(w, "headers");
    jw_object(w);
    encode_str(w, "webhook-id", id);
    encode_str(w, "webhook-timestamp", arena_printf(c->x->arena, "%lld", (long long)(now_ms / 1000)));
    encode_str(w, "webhook-signature", webhook_signature(c->x->arena, &s->secrets, id, now_ms, s->body));
    encode_text(w, "content-type", "application/json");
    if (s->traceparent.ptr)
        encode_str(w, "traceparent", call_delivery_traceparent(c, s->traceparent, t));
    jw_object_end(w);
}

/* Which receiver: a webhook, or the host that a callback is at; nothing of the rest of its URL. */
static void encode_instance(struct json_writer *w, const struct sending *s)
{
    struct url url;
    encode_text(w, "channel", s->delivery.webhook ? "webhook" : "callback");
    if (s->delivery.webhook) {
        encode_uuid_v7(w, "instance_id", s->delivery.webhook, s->webhook_low);
        return;
    }
    encode_text(w, "instance_id", s->url.ptr && !url_parse(s->url, &url) ? url.endpoint : NULL);
}

/* The gateway sends this back with the result, for the log. */
static void encode_about(struct json_writer *w, const struct sending *s)
{
    jw_key(w, "payload");
    jw_object(w);
    encode_uuid_v7(w, "delivery_id", s->delivery.id, (uint64_t)s->delivery.low);
    if (s->delivery.job)
        encode_uuid_v7(w, "job_id", s->delivery.job, s->job_low);
    encode_instance(w, s);
    encode_text(w, "event_name", s->event_name);
    encode_text(w, "undeliverable", s->undeliverable);
    jw_object_end(w);
}

static struct delivery_reads *reads_of_claim(struct call *c, struct reader *r)
{
    if (!c->data)
        c->data = ARENA_NEW(c->x->arena, struct delivery_reads);
    struct delivery_reads *reads = c->data;
    reads->reader = r;
    return reads;
}

bool encode_delivery_task(struct call *c, struct json_writer *w, struct reader *r,
                          const struct claimed_task *t, struct err *err)
{
    struct sending s = {0};
    char token[24], id_text[UUID_TEXT_LEN + 1];
    if (!read_all(c, reads_of_claim(c, r), t->head, &s, err)) {
        if (err->code != ERR_STORE_CORRUPT)
            return false;
        err->code = ERR_OK; /* an unreadable one does not delay others */
        s.undeliverable = "unreadable";
    }
    struct uuid id = uuid_from_v7(s.delivery.id, (uint64_t)s.delivery.low);
    uuid_text(&id, id_text);
    jw_object(w);
    encode_uuid_v7(w, "task_id", t->id, t->low);
    encode_str(w, "token", token_text(t->token, token));
    encode_text(w, "kind", "delivery");
    encode_int(w, "attempt", t->attempt);
    encode_time_ms(w, "lease_expires_at", t->lease_expires_ms);
    encode_about(w, &s);
    jw_key(w, "definition");
    if (s.undeliverable) {
        jw_null(w);
    } else {
        jw_object(w);
        encode_str(w, "url", s.url);
        encode_headers(c, w, &s, str_of(id_text), t);
        encode_str(w, "body", s.body);
        jw_object_end(w);
    }
    jw_object_end(w);
    return true;
}
