/* POST /v1/jobs and POST /v1/jobs:batch. */
#include "api/jobs/jobs_contract.h"
#include "api/handlers.h"
#include "api/jobs/submit.h"

#include "api/jobs/encode.h"

#include "base/banned.h"

static void encode_accepted(struct json_writer *w, const struct submit_item *item)
{
    jw_object(w);
    encode_uuid_v7(w, "job_id", item->id, item->low);
    encode_text(w, "state", job_state_text(item->state));
    encode_time_ms(w, "created_at", item->created_ms);
    jw_object_end(w);
}

/* Fingerprints are only needed with a key; the key itself is not part of what is compared. */
static void complete_item(struct call *c, const struct json *body, struct submit_item *item)
{
    item->traceparent = call_traceparent(c);
    if (item->idem_key.ptr)
        call_body_fingerprint(body, "idempotency_key", item->fingerprint);
}

/* False with the item's err set. */
static bool has_its_queue(const struct call *c, struct submit_item *item)
{
    struct str queue = item->queue.ptr ? item->queue : STR(JOB_QUEUE_DEFAULT);
    if (call_has_queue(c, queue))
        return true;
    err_set(&item->err, ERR_AUTH_FORBIDDEN, "the key is not for the queue %.*s", STR_ARG(queue));
    return false;
}

static void submitted(struct call *c)
{
    struct submit_command *command = (struct submit_command *)c->command;
    struct submit_item *item = command->items;
    if (item->err.code != ERR_OK) {
        call_problem(c, &item->err);
        return;
    }
    struct json_writer w;
    if (item->replayed) {
        http_reply_header(c->x, "Idempotency-Replayed", STR("true"));
        metrics_idempotent_replay(c->api->metrics);
    }
    struct uuid id = uuid_from_v7(item->id, item->low);
    char text[UUID_TEXT_LEN + 1];
    uuid_text(&id, text);
    c->job_id = arena_str(c->x->arena, str_of(text));
    http_reply_header(c->x, "Location", arena_printf(c->x->arena, "/v1/jobs/%s", text));
    call_json(c, 202, &w);
    encode_accepted(&w, item);
    call_send(c);
}

void handle_submit_job(struct call *c)
{
    struct submit_command *command = ARENA_NEW(c->x->arena, struct submit_command);
    struct str header_key;
    if (!call_idempotency_key(c, &header_key))
        return;
    c->ingests = true;
    command->client = c->who.client;
    command->items = ARENA_NEW(c->x->arena, struct submit_item);
    command->item_count = 1;
    submit_decode(c->body, command->items);
    if (!has_its_queue(c, command->items)) {
        call_problem(c, &command->items->err);
        return;
    }
    if (!command->items->idem_key.ptr)
        command->items->idem_key = header_key;
    complete_item(c, c->body, command->items);
    call_post(c, &command->base, &submit_command_type, 0, submitted);
}

static void batch_submitted(struct call *c)
{
    struct submit_command *command = (struct submit_command *)c->command;
    struct json_writer w;
    call_object(c, 202, &w);
    jw_key(&w, "results");
    jw_array(&w);
    for (size_t i = 0; i < command->item_count; i++) {
        const struct submit_item *item = &command->items[i];
        if (item->err.code == ERR_OK) {
            encode_accepted(&w, item);
            if (item->replayed)
                metrics_idempotent_replay(c->api->metrics);
            continue;
        }
        call_write_refusal(c, &item->err, &w);
    }
    jw_array_end(&w);
    call_send_object(c, &w);
}

void handle_submit_job_batch(struct call *c)
{
    const struct schema *submit_schema = jobs_api(c->api)->submit_schema;
    const struct json *jobs = json_get(c->body, "jobs");
    struct submit_command *command = ARENA_NEW(c->x->arena, struct submit_command);
    c->ingests = true;
    command->client = c->who.client;
    command->items = ARENA_ARRAY(c->x->arena, struct submit_item, jobs->count);
    for (const struct json *j = jobs->child; j; j = j->next) {
        struct submit_item *item = &command->items[command->item_count++];
        struct schema_violation v;
        if (!schema_check(submit_schema, j, &v)) {
            err_set(&item->err, ERR_REQUEST_MALFORMED, "%s", v.text);
            item->is_bad = true;
            continue;
        }
        submit_decode(j, item);
        item->is_bad = !has_its_queue(c, item);
        if (!item->is_bad)
            complete_item(c, j, item);
    }
    command->base.weight = (int64_t)command->item_count;
    call_post(c, &command->base, &submit_command_type, 0, batch_submitted);
}
