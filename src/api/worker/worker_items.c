#include "api/jobs/jobs_contract.h"
#include "api/handlers.h"
#include "api/worker/worker_items.h"

#include <stdio.h>

#include "base/json_members.h"
#include "base/log.h"
#include "base/must.h"
#include "runtime/event_names.h"

#include "base/banned.h"

int64_t worker_client_of(const struct call *c)
{
    return c->who.kind == PRINCIPAL_KEY ? c->who.client : 0;
}

int64_t worker_integer(const struct json *object, const char *key, int64_t fallback)
{
    const struct json *j = object ? json_get(object, key) : NULL;
    int64_t value = fallback;
    return j && json_to_int(j, &value) ? value : fallback;
}

/* --- results ------------------------------------------------------------------------------------------ */

static void encode_code(struct json_writer *w, const struct worker_item *item)
{
    encode_bool(w, "ok", item->code == ERR_OK);
    if (item->code == ERR_OK)
        return;
    encode_text(w, "code", err_wire(item->code));
    if (item->detail.ptr)
        encode_str(w, "detail", item->detail);
}

static void encode_item(struct json_writer *w, const struct json *asked, const struct worker_item *item,
                        bool heartbeat)
{
    const struct json *id = json_get(asked, "task_id");
    jw_object(w);
    encode_str(w, "task_id", id && id->type == JSON_STRING ? id->text : STR_ABSENT);
    encode_code(w, item);
    if (heartbeat && item->code == ERR_OK) {
        encode_bool(w, "cancel", item->cancel);
        encode_time_ms(w, "lease_expires_at", item->lease_expires_ms);
    }
    jw_object_end(w);
}

static void items_done(struct call *c, bool heartbeat)
{
    const struct worker_command *command = (const struct worker_command *)c->command;
    const struct json *asked = json_get(c->body, "tasks")->child;
    struct json_writer w;
    call_json(c, 200, &w);
    jw_object(&w);
    jw_key(&w, "results");
    jw_array(&w);
    for (size_t i = 0; i < command->item_count; i++, asked = asked->next)
        encode_item(&w, asked, &command->items[i], heartbeat);
    jw_array_end(&w);
    jw_object_end(&w);
    call_send(c);
}

static void results(struct call *c)
{
    items_done(c, false);
}
static void heartbeat_results(struct call *c)
{
    const struct worker_command *command = (const struct worker_command *)c->command;
    uint64_t accepted = 0;
    for (size_t i = 0; i < command->item_count; i++)
        accepted += command->items[i].code == ERR_OK;
    metrics_heartbeats(c->api->metrics, accepted);
    items_done(c, true);
}

/* --- deliveries ----------------------------------------------------------------------------------------- */

static struct str member_text(const struct json *object, const char *key)
{
    const struct json *j = object ? json_get(object, key) : NULL;
    return j ? (struct str){j->text.ptr ? j->text.ptr : "", j->text.len} : STR_ABSENT;
}

static enum outbound_class class_of(const struct call *c, const struct json *result,
                                    const struct task_outcome *o)
{
    if (o->success)
        return OUTBOUND_DELIVERED;
    if (!o->retryable || o->status == 410)
        return OUTBOUND_REJECTED;
    int64_t attempt = worker_integer(result, "attempt", 0);
    return attempt >= c->api->config.settings->webhooks_max_attempts ? OUTBOUND_EXHAUSTED : OUTBOUND_RETRIED;
}

/* One attempt. At full rate most go well: those lines are for log.level debug, and counted anyway. */
static void log_delivery(struct call *c, const struct json *result, const struct task_outcome *o)
{
    const struct json *about = json_get(result, "about");
    char status[24];
    if (!about)
        return;
    enum outbound_class class = class_of(c, result, o);
    struct str channel = member_text(about, "channel");
    snprintf(status, sizeof status, "%lld", (long long)o->status);
    metrics_webhook(c->api->metrics, o->success, o->duration_ms * 1000);
    metrics_outbound(c->api->metrics, str_is(channel, "webhook"), class);
    log_line(o->success ? LOG_DEBUG : LOG_INFO, EVENT_OUTBOUND_RESULT, "channel", LOG_STR(channel),
             "provider_code", LOG_STR(o->status ? str_of(status) : o->error_code), "classification",
             LOG_TEXT(outbound_class_text(class)), "instance_id", LOG_STR(member_text(about, "instance_id")),
             "delivery_id", LOG_STR(member_text(about, "delivery_id")), "job_id",
             LOG_STR(member_text(about, "job_id")), "event_name", LOG_STR(member_text(about, "event_name")),
             "attempt", LOG_INT(worker_integer(result, "attempt", 0)), "status", LOG_INT(o->status),
             "error_code", LOG_STR(o->error_code), "error_message", LOG_STR(o->error_message), "duration_ms",
             LOG_INT(o->duration_ms), NULL);
}

/* --- reading ------------------------------------------------------------------------------------------ */

static void decode_outcome(const struct json *asked, struct task_outcome *o)
{
    const struct json *error = json_get(asked, "error"), *result = json_get(asked, "result");
    const struct json *retryable = error ? json_get(error, "retryable") : NULL;
    *o = (struct task_outcome){.success = str_is(member_text(asked, "outcome"), "success"),
                               .result = result ? result->source : STR_ABSENT,
                               .error_code = member_text(error, "code"),
                               .error_message = member_text(error, "message"),
                               .retryable = !retryable || retryable->type == JSON_TRUE,
                               .status = worker_integer(result, "status", 0),
                               .duration_ms = worker_integer(result, "duration_ms", 0),
                               .retry_after_ms = worker_integer(result, "retry_after_ms", 0)};
}

static void malformed(struct worker_item *item, struct str detail)
{
    item->is_bad = true;
    item->code = ERR_ITEM_MALFORMED;
    item->detail = detail;
}

/* Two places behind the point: what is shown stays short, whatever was sent. */
static void decode_progress(const struct json *asked, struct worker_item *item)
{
    const struct json *progress = json_get(asked, "progress");
    double percent;
    if (!progress || !json_to_double(json_get(progress, "percent"), &percent))
        return;
    item->has_progress = true;
    item->progress.percent = (double)(int64_t)(percent * 100 + 0.5) / 100;
    item->progress.note = member_text(progress, "note");
    if (item->progress.note.len > PROGRESS_NOTE_BYTES_MAX)
        malformed(item, STR("/progress/note has more than 256 bytes"));
}

static void decode_item(struct call *c, const struct schema *form, const struct json *asked,
                        struct worker_item *item)
{
    struct schema_violation v;
    struct uuid id;
    if (!schema_check(form, asked, &v)) {
        malformed(item, arena_str(c->x->arena, str_of(v.text)));
        return;
    }
    item->is_bad = !uuid_parse(member_text(asked, "task_id"), &id) ||
                   !uuid_split_v7(&id, &item->id, &item->low) ||
                   !token_parse(member_text(asked, "token"), &item->token);
    item->code = item->is_bad ? ERR_LEASE_LOST : ERR_OK; /* no lease has such an id or token */
    decode_outcome(asked, &item->outcome);
    decode_progress(asked, item);
    item->release.message = member_text(asked, "reason");
    item->release.delay_ms = worker_integer(asked, "delay_ms", 0);
}

static void post_items(struct call *c, enum worker_form form, const struct command_type *type,
                       void (*finish)(struct call *c))
{
    struct worker_command *command = ARENA_NEW(c->x->arena, struct worker_command);
    const struct json *tasks = json_get(c->body, "tasks");
    const struct schema *schema = jobs_api(c->api)->worker_forms[form];
    command->client = worker_client_of(c);
    command->queues = c->who.power.queues;
    command->items = ARENA_ARRAY(c->x->arena, struct worker_item, tasks->count);
    for (const struct json *j = tasks->child; j; j = j->next)
        decode_item(c, schema, j, &command->items[command->item_count++]);
    command->base.weight = (int64_t)command->item_count;
    for (size_t i = 0; i < command->item_count; i++)
        command->base.for_first_lane |= !task_id_is_job(command->items[i].id);
    call_post(c, &command->base, type, 0, finish);
}

/* --- calls -------------------------------------------------------------------------------------------- */

void handle_start_tasks(struct call *c)
{
    post_items(c, WORKER_FORM_START, &start_command_type, results);
}

void handle_heartbeat_tasks(struct call *c)
{
    post_items(c, WORKER_FORM_HEARTBEAT, &heartbeat_command_type, heartbeat_results);
}

/* Deliveries among them are counted and logged here, once each, after the commit. */
static void finish_results(struct call *c)
{
    const struct worker_command *command = (const struct worker_command *)c->command;
    const struct json *asked = json_get(c->body, "tasks")->child;
    for (size_t i = 0; c->who.kind == PRINCIPAL_DOMAIN && i < command->item_count; i++, asked = asked->next)
        if (command->items[i].code == ERR_OK && json_get(asked, "result"))
            log_delivery(c, json_get(asked, "result"), &command->items[i].outcome);
    items_done(c, false);
}

void handle_finish_tasks(struct call *c)
{
    post_items(c, WORKER_FORM_FINISH, &finish_command_type, finish_results);
}

/* A process of ours may give back what it had begun, too: it ends as with a lost sender, but at once. */
void handle_release_tasks(struct call *c)
{
    bool ours = c->who.kind == PRINCIPAL_DOMAIN;
    post_items(c, WORKER_FORM_RELEASE, ours ? &give_back_command_type : &release_command_type, results);
}
