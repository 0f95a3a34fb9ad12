/* Deliveries: the log of a webhook and of a job's callback; and what is asked of a webhook that is there. */
#include "api/handlers.h"
#include "api/jobs/encode.h"
#include "api/jobs/list_filter.h"
#include "base/random.h"
#include "jobs/client_commands.h"
#include "jobs/deliver.h"
#include "lifecycle/delivery_lifecycle.h"
#include "lifecycle/attempts.h"

#include "base/banned.h"

/* --- reading ------------------------------------------------------------------------------------- */

static void encode_attempts(struct json_writer *w, struct str attempts)
{
    struct attempt a;
    jw_key(w, "attempts");
    jw_array(w);
    while (attempts_take(&attempts, &a)) {
        jw_object(w);
        encode_time_ms(w, "at", a.at_ms);
        encode_int_or_null(w, "status", a.status);
        encode_str(w, "error", a.error);
        encode_int(w, "duration_ms", a.duration_ms);
        jw_object_end(w);
    }
    jw_array_end(w);
}

/* What a delivery's line names beside its own row. */
struct named {
    struct job_row job;
    struct event event;
    struct webhook_row webhook;
    bool has_job, has_event;
};

static enum err_code read_named(struct call *c, struct reader *r, const struct delivery_row *d,
                                struct log_memo *memo, struct named *n, struct err *err)
{
    struct job_view v;
    bool found;
    *n = (struct named){.webhook = {.id = d->webhook}};
    if (d->webhook &&
        r->ops->reader_row(r, &table_webhook_row, &n->webhook, c->x->arena, &found, err) != ERR_OK)
        return err->code;
    if (!d->job)
        return ERR_OK;
    if (job_view_read(r, c->x->arena, d->job, &v, &n->has_job, err) != ERR_OK || !n->has_job)
        return err->code;
    n->job = v.job;
    return job_view_event(r, c->x->arena, &v, (uint32_t)d->event, memo, &n->event, &n->has_event, err);
}

static void encode_id_or_null(struct json_writer *w, const char *key, bool there, int64_t id, uint64_t low)
{
    if (there) {
        encode_uuid_v7(w, key, id, low);
        return;
    }
    jw_key(w, key);
    jw_null(w);
}

static const char *event_of_no_job(const struct delivery_row *d)
{
    return webhook_event_text(d->event ? WEBHOOK_EVENT_DISABLED : WEBHOOK_EVENT_TEST);
}

static void encode_delivery(struct json_writer *w, const struct delivery_row *d, const struct named *n,
                            int64_t next_attempt_ms)
{
    char event_id[UUID_TEXT_LEN + 1];
    jw_object(w);
    encode_uuid_v7(w, "delivery_id", d->id, (uint64_t)d->low);
    encode_id_or_null(w, "webhook_id", d->webhook != 0, d->webhook, (uint64_t)n->webhook.low);
    jw_key(w, "event_id");
    if (n->has_event) {
        uuid_text(&n->event.id, event_id);
        jw_text(w, event_id);
    } else {
        jw_null(w);
    }
    encode_text(w, "event_name",
                n->has_event ? job_event_text(n->event.event)
                : d->job     ? NULL
                             : event_of_no_job(d));
    encode_id_or_null(w, "job_id", n->has_job, d->job, (uint64_t)n->job.low);
    encode_text(w, "state", delivery_state_text((enum delivery_state)d->state));
    encode_time_ms(w, "created_at", d->created_ms);
    encode_attempts(w, d->attempts);
    encode_time_ms(w, "next_attempt_at", next_attempt_ms);
    jw_object_end(w);
}

/* When its turn comes, if it is the next one of the stream; 0: it is not. */
static enum err_code read_turn(struct call *c, struct reader *r, const struct delivery_row *d,
                               int64_t stream_id, int64_t *ret_ms, struct err *err)
{
    struct task_row stream = {.id = stream_id};
    bool found;
    if (r->ops->reader_row(r, &table_task_row, &stream, c->x->arena, &found, err) != ERR_OK)
        return err->code;
    bool is_next = found && stream.done < (int64_t)log_ref_count(stream.refs) &&
                   (int64_t)log_ref_at(stream.refs, (size_t)stream.done) == d->id;
    if (is_next)
        *ret_ms = stream.due_ms > d->created_ms ? stream.due_ms : d->created_ms;
    return ERR_OK;
}

/* The same for a delivery, wherever it waits; 0 also when it is done. */
static enum err_code read_next_attempt(struct call *c, struct reader *r, const struct delivery_row *d,
                                       int64_t *ret_ms, struct err *err)
{
    *ret_ms = 0;
    if (d->state != DELIVERY_PENDING)
        return ERR_OK;
    if (read_turn(c, r, d, deliver_stream_id(d->webhook, d->job), ret_ms, err) != ERR_OK)
        return err->code;
    return *ret_ms ? ERR_OK : read_turn(c, r, d, deliver_replay_id(d->id), ret_ms, err);
}

struct delivery_page {
    int64_t owner; /* the webhook, or the job whose callback it is */
    int64_t below, limit;
};

static bool read_page_query(struct call *c, struct delivery_page *p)
{
    struct str cursor;
    struct err err;
    struct uuid id;
    uint64_t low;
    if (!call_limit(c, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, &p->limit))
        return false;
    if (http_query(c->x, "cursor", &cursor, &err) != ERR_OK) {
        call_problem(c, &err);
        return false;
    }
    p->below = INT64_MAX;
    if (cursor.ptr && (!uuid_parse(cursor, &id) || !uuid_split_v7(&id, &p->below, &low))) {
        call_fail(c, ERR_REQUEST_MALFORMED, "cursor is not one this server gave");
        return false;
    }
    return true;
}

static enum err_code write_page(struct call *c, struct reader *r, const struct delivery_page *p,
                                struct json_writer *w, struct err *err)
{
    int64_t *ids = ARENA_ARRAY(c->x->arena, int64_t, (size_t)p->limit + 1);
    struct list_query q = {.owner_key = p->owner,
                           .bucket = LIST_DELIVERIES,
                           .below_id = p->below,
                           .limit = (size_t)p->limit + 1};
    struct delivery_row last = {0};
    struct log_memo memo = {0};
    size_t count = 0;
    if (r->ops->reader_list(r, &q, ids, &count, err) != ERR_OK)
        return err->code;
    for (size_t i = 0; i < count && i < (size_t)p->limit; i++) {
        struct delivery_row d = {.id = ids[i]};
        struct named n;
        bool found;
        if (r->ops->reader_row(r, &table_delivery_row, &d, c->x->arena, &found, err) != ERR_OK)
            return err->code;
        if (!found || d.client != c->who.client)
            continue;
        int64_t next_ms;
        if (read_named(c, r, &d, &memo, &n, err) != ERR_OK ||
            read_next_attempt(c, r, &d, &next_ms, err) != ERR_OK)
            return err->code;
        encode_delivery(w, &d, &n, next_ms);
        last = d;
    }
    jw_array_end(w);
    encode_id_or_null(w, "next_cursor", count > (size_t)p->limit, last.id, (uint64_t)last.low);
    return ERR_OK;
}

static void send_deliveries(struct call *c, struct reader *r, const struct delivery_page *p)
{
    struct json_writer w;
    struct err err = {.code = ERR_OK};
    call_json(c, 200, &w);
    jw_object(&w);
    jw_key(&w, "items");
    jw_array(&w);
    if (write_page(c, r, p, &w, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    jw_object_end(&w);
    call_send(c);
}

void handle_list_job_deliveries(struct call *c)
{
    struct delivery_page p;
    struct reader *r;
    struct job_view v;
    if (!read_page_query(c, &p) || !call_read_job(c, &r, &v))
        return;
    p.owner = v.job.id;
    send_deliveries(c, r, &p);
}

void handle_list_deliveries(struct call *c)
{
    struct delivery_page p;
    struct webhook_row hook = {0};
    struct uuid id;
    uint64_t low;
    bool found = false;
    struct err err = {.code = ERR_OK};
    if (!read_page_query(c, &p))
        return;
    if (!call_uuid_param(c, "webhook_id", &id) || !uuid_split_v7(&id, &hook.id, &low)) {
        call_fail(c, ERR_WEBHOOK_NOT_FOUND, "no webhook has this id");
        return;
    }
    struct reader *r = api_read_begin(c->api, &err);
    if (!r || r->ops->reader_row(r, &table_webhook_row, &hook, c->x->arena, &found, &err) != ERR_OK)
        call_problem(c, &err);
    else if (!found || (uint64_t)hook.low != low)
        call_fail(c, ERR_WEBHOOK_NOT_FOUND, "no webhook has this id");
    else if (hook.client != c->who.client)
        call_fail(c, ERR_AUTH_FORBIDDEN, "the webhook belongs to another client");
    else {
        p.owner = hook.id;
        send_deliveries(c, r, &p);
    }
}

/* --- asking -------------------------------------------------------------------------------------- */

static struct webhook_command *webhook_command(struct call *c, enum webhook_action action)
{
    struct webhook_command *command = ARENA_NEW(c->x->arena, struct webhook_command);
    struct uuid id;
    command->action = action;
    command->client = c->who.client;
    if (!call_uuid_param(c, "webhook_id", &id) || !uuid_split_v7(&id, &command->id, &command->low)) {
        call_fail(c, ERR_WEBHOOK_NOT_FOUND, "no webhook has this id");
        return NULL;
    }
    return command;
}

static void delivery_accepted(struct call *c)
{
    const struct webhook_command *command = (const struct webhook_command *)c->command;
    struct json_writer w;
    call_json(c, 202, &w);
    jw_object(&w);
    encode_uuid_v7(&w, "delivery_id", command->delivery_id, command->delivery_low);
    encode_text(&w, "state", delivery_state_text(DELIVERY_PENDING));
    jw_object_end(&w);
    call_send(c);
}

void handle_test_webhook(struct call *c)
{
    struct webhook_command *command = webhook_command(c, WEBHOOK_TEST);
    if (command)
        call_post(c, &command->base, &webhook_command_type, 0, delivery_accepted);
}

void handle_redeliver(struct call *c)
{
    struct webhook_command *command = webhook_command(c, WEBHOOK_REDELIVER);
    struct uuid id;
    if (!command)
        return;
    if (!call_uuid_param(c, "delivery_id", &id) ||
        !uuid_split_v7(&id, &command->delivery_id, &command->delivery_low))
        call_fail(c, ERR_WEBHOOK_NOT_FOUND, "the webhook has no delivery with this id");
    else
        call_post(c, &command->base, &webhook_command_type, 0, delivery_accepted);
}

static void webhook_enabled(struct call *c)
{
    const struct webhook_command *command = (const struct webhook_command *)c->command;
    struct json_writer w;
    call_json(c, 200, &w);
    jw_object(&w);
    encode_uuid_v7(&w, "webhook_id", command->id, command->low);
    encode_bool(&w, "enabled", true);
    jw_object_end(&w);
    call_send(c);
}

void handle_enable_webhook(struct call *c)
{
    struct webhook_command *command = webhook_command(c, WEBHOOK_ENABLE);
    if (command)
        call_post(c, &command->base, &webhook_command_type, 0, webhook_enabled);
}

static void secret_rotated(struct call *c)
{
    const struct webhook_command *command = (const struct webhook_command *)c->command;
    struct str secret = {(const char *)command->secret, sizeof command->secret};
    struct json_writer w;
    call_json(c, 200, &w);
    jw_object(&w);
    encode_uuid_v7(&w, "webhook_id", command->id, command->low);
    encode_str(&w, "secret", webhook_secret_text(c->x->arena, secret));
    jw_object_end(&w);
    call_send(c);
}

void handle_rotate_secret_of_webhook(struct call *c)
{
    struct webhook_command *command = webhook_command(c, WEBHOOK_ROTATE);
    if (!command)
        return;
    random_bytes(command->secret, sizeof command->secret);
    call_post(c, &command->base, &webhook_command_type, 0, secret_rotated);
}
