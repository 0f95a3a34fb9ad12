/* Deliveries: the log of a webhook and of a job's callback; and what is asked of a webhook that is there. */
#include "api/handlers.h"
#include "api/jobs/encode.h"
#include "base/must.h"
#include "base/random.h"
#include "jobs/client_commands.h"
#include "jobs/deliver.h"
#include "lifecycle/delivery_lifecycle.h"
#include "lifecycle/attempts.h"

#include "base/banned.h"

/* --- reading ------------------------------------------------------------------------------------- */

static void put_attempts(struct json_writer *w, struct str attempts)
{
    struct attempt attempt;
    const struct attempt *a = &attempt;
    jw_array(w);
    while (attempts_take(&attempts, &attempt)) {
        jw_object(w);
        ATTEMPT_FIELDS(ENCODE_FIELD)
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

struct delivery_list {
    struct page page;
    struct log_memo memo;
    struct list_query query; /* owner_key: the webhook, or the job whose callback it is */
    uint64_t last_low;
};

static enum err_code read_named(struct page *p, const struct delivery_row *d, struct log_memo *memo,
                                struct named *n)
{
    struct arena *a = p->c->x->arena;
    struct job_view v;
    bool found;
    *n = (struct named){.webhook = {.id = d->webhook}};
    if (d->webhook && page_row(p, &table_webhook_row, &n->webhook, &found) != ERR_OK)
        return p->err.code;
    if (!d->job)
        return ERR_OK;
    if (job_view_read(p->r, a, d->job, &v, &n->has_job, &p->err) != ERR_OK || !n->has_job)
        return p->err.code;
    n->job = v.job;
    return job_view_event(p->r, a, &v, (uint32_t)d->event, memo, &n->event, &n->has_event, &p->err);
}

static const char *event_name_of(const struct delivery_row *d, const struct named *n)
{
    if (n->has_event)
        return job_event_text(n->event.event);
    return d->job ? NULL : webhook_event_text(d->event ? WEBHOOK_EVENT_DISABLED : WEBHOOK_EVENT_TEST);
}

/* When its turn comes, if it is the next one of the stream; 0: it is not. */
static enum err_code read_turn(struct page *p, const struct delivery_row *d, int64_t stream_id,
                               int64_t *ret_ms)
{
    struct task_row stream = {.id = stream_id};
    bool found;
    if (page_row(p, &table_task_row, &stream, &found) != ERR_OK)
        return p->err.code;
    bool is_next = found && stream.done < (int64_t)log_ref_count(stream.refs) &&
                   (int64_t)log_ref_at(stream.refs, (size_t)stream.done) == d->id;
    if (is_next)
        *ret_ms = stream.due_ms > d->created_ms ? stream.due_ms : d->created_ms;
    return ERR_OK;
}

/* The same for a delivery, wherever it waits; 0 also when it is done. */
static enum err_code read_next_attempt(struct page *p, const struct delivery_row *d, int64_t *ret_ms)
{
    *ret_ms = 0;
    if (d->state != DELIVERY_PENDING)
        return ERR_OK;
    if (read_turn(p, d, deliver_stream_id(d->webhook, d->job), ret_ms) != ERR_OK)
        return p->err.code;
    return *ret_ms ? ERR_OK : read_turn(p, d, deliver_replay_id(d->id), ret_ms);
}

static enum err_code show_delivery(struct page *p, int64_t id)
{
    struct delivery_list *l = CONTAINER_OF(p, struct delivery_list, page);
    struct delivery_row row = {.id = id}, *d = &row;
    struct json_writer *w = &p->w;
    struct named named, *n = &named;
    int64_t next_ms;
    bool found;
    if (page_row(p, &table_delivery_row, d, &found) != ERR_OK)
        return p->err.code;
    l->last_low = (uint64_t)d->low;
    if (!found || d->client != p->c->who.client)
        return ERR_OK;
    if (read_named(p, d, &l->memo, n) != ERR_OK || read_next_attempt(p, d, &next_ms) != ERR_OK)
        return p->err.code;
    jw_object(w);
    DELIVERY_FIELDS(ENCODE_FIELD)
    jw_object_end(w);
    p->given++;
    return ERR_OK;
}

/* The cursor is the id of the last delivery that was looked at. */
static bool read_page_query(struct call *c, struct delivery_list *l)
{
    struct str cursor;
    struct uuid id;
    uint64_t low;
    l->page.c = c;
    l->query = (struct list_query){.bucket = LIST_DELIVERIES, .below_id = INT64_MAX};
    return page_limit(&l->page) && call_query(c, "cursor", &cursor) &&
           (!cursor.ptr || (uuid_parse(cursor, &id) && uuid_split_v7(&id, &l->query.below_id, &low)) ||
            call_bad_cursor(c));
}

static void send_deliveries(struct delivery_list *l, int64_t owner)
{
    struct page *p = &l->page;
    char text[UUID_TEXT_LEN + 1];
    l->query.owner_key = owner;
    if (!page_open(p))
        return;
    page_walk(p, &l->query, NULL, show_delivery);
    struct uuid last = uuid_from_v7(l->query.below_id, l->last_low);
    uuid_text(&last, text);
    page_close(p, "next_cursor", str_of(text));
}

void handle_list_job_deliveries(struct call *c)
{
    struct delivery_list l = {.last_low = 0};
    struct reader *r;
    struct job_view v;
    if (read_page_query(c, &l) && call_read_job(c, &r, &v))
        send_deliveries(&l, v.job.id);
}

void handle_list_deliveries(struct call *c)
{
    struct delivery_list l = {.last_low = 0};
    struct webhook_row hook = {0};
    uint64_t low;
    bool found;
    if (!read_page_query(c, &l) || !call_webhook_param(c, &hook.id, &low))
        return;
    struct reader *r = call_reader(c);
    if (!r || !call_row(c, r, &table_webhook_row, &hook, &found))
        return;
    if (!found || (uint64_t)hook.low != low)
        call_fail(c, ERR_WEBHOOK_NOT_FOUND, "no webhook has this id");
    else if (hook.client != c->who.client)
        call_fail(c, ERR_AUTH_FORBIDDEN, "the webhook belongs to another client");
    else
        send_deliveries(&l, hook.id);
}

/* --- asking -------------------------------------------------------------------------------------- */

static struct webhook_command *webhook_command(struct call *c, enum webhook_action action)
{
    struct webhook_command *command = ARENA_NEW(c->x->arena, struct webhook_command);
    command->action = action;
    command->client = c->who.client;
    return call_webhook_param(c, &command->id, &command->low) ? command : NULL;
}

static void delivery_accepted(struct call *c)
{
    const struct webhook_command *command = (const struct webhook_command *)c->command;
    struct json_writer w;
    call_object(c, 202, &w);
    encode_uuid_v7(&w, "delivery_id", command->delivery_id, command->delivery_low);
    encode_text(&w, "state", delivery_state_text(DELIVERY_PENDING));
    call_send_object(c, &w);
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
    call_object(c, 200, &w);
    encode_uuid_v7(&w, "webhook_id", command->id, command->low);
    encode_bool(&w, "enabled", true);
    call_send_object(c, &w);
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
    call_object(c, 200, &w);
    encode_uuid_v7(&w, "webhook_id", command->id, command->low);
    encode_str(&w, "secret", webhook_secret_text(c->x->arena, secret));
    call_send_object(c, &w);
}

void handle_rotate_secret_of_webhook(struct call *c)
{
    struct webhook_command *command = webhook_command(c, WEBHOOK_ROTATE);
    if (!command)
        return;
    random_bytes(command->secret, sizeof command->secret);
    call_post(c, &command->base, &webhook_command_type, 0, secret_rotated);
}
