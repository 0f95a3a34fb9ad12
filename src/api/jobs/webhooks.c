/* Webhooks: register, list, remove. */
#include <stdlib.h>

#include "api/handlers.h"
#include "api/jobs/encode.h"
#include "base/random.h"
#include "base/url.h"
#include "jobs/webhook_fingerprint.h"
#include "lifecycle/delivery_lifecycle.h"

#include "base/banned.h"

static bool event_name_is_known(struct str name)
{
    enum job_event e;
    return str_is(name, "*") || str_is(name, "job.*") || job_event_parse(name, &e) ||
           str_is(name, webhook_event_text(WEBHOOK_EVENT_DISABLED));
}

static int by_text(const void *a, const void *b)
{
    const struct str *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->ptr, y->ptr, n);
    return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

/* A set: sorted, each name once, joined by commas. False: answered. */
static bool read_events(struct call *c, struct str *ret_events)
{
    const struct json *list = json_get(c->body, "events");
    struct str *names = ARENA_ARRAY(c->x->arena, struct str, list->count);
    size_t count = 0;
    for (const struct json *j = list->child; j; j = j->next) {
        if (!event_name_is_known(j->text)) {
            call_fail(c, ERR_JOB_VALIDATION_FAILED, "events: \"%.*s\" is no event name",
                      (int)(j->text.len > 60 ? 60 : j->text.len), j->text.ptr);
            return false;
        }
        names[count++] = j->text;
    }
    qsort(names, count, sizeof *names, by_text);
    struct strbuf b = {0};
    for (size_t i = 0; i < count; i++) {
        if (i && str_equal(names[i], names[i - 1]))
            continue;
        if (b.len)
            strbuf_add_char(&b, ',');
        strbuf_add_str(&b, names[i]);
    }
    *ret_events = arena_str(c->x->arena, strbuf_str(&b));
    strbuf_free(&b);
    return true;
}

static void webhook_created(struct call *c)
{
    struct create_webhook_command *command = (struct create_webhook_command *)c->command;
    struct str secret = {(const char *)command->secret, sizeof command->secret};
    struct json_writer w;
    if (command->replayed)
        http_reply_header(c->x, "Idempotency-Replayed", STR("true"));
    call_object(c, 201, &w);
    encode_uuid_v7(&w, "webhook_id", command->id, command->low);
    encode_time_ms(&w, "created_at", command->created_ms);
    encode_str(&w, "secret", command->replayed ? STR_ABSENT : webhook_secret_text(c->x->arena, secret));
    call_send_object(c, &w);
}

void handle_create_webhook(struct call *c)
{
    struct create_webhook_command *command = ARENA_NEW(c->x->arena, struct create_webhook_command);
    command->client = c->who.client;
    command->url = json_get(c->body, "url")->text;
    if (!call_idempotency_key(c, &command->once.name))
        return;
    if (command->once.name.ptr)
        call_body_fingerprint(c->body, NULL, command->once.fingerprint);
    struct url url;
    const char *fault = url_parse(command->url, &url);
    if (fault) {
        call_fail(c, ERR_JOB_VALIDATION_FAILED, "url %s", fault);
        return;
    }
    if (!read_events(c, &command->events))
        return;
    webhook_fingerprint(command->url, command->events, command->fingerprint);
    random_bytes(command->secret, sizeof command->secret);
    call_post(c, &command->base, &create_webhook_command_type, 0, webhook_created);
}

static bool show_webhook(const void *row, void *arg)
{
    struct json_writer *w = arg;
    const struct webhook_row *hook = row;
    bool is_told = !hook->enabled && hook->disabled_ms;
    jw_object(w);
    WEBHOOK_FIELDS(ENCODE_FIELD)
    jw_object_end(w);
    return true;
}

void handle_list_webhooks(struct call *c)
{
    struct page p = {.c = c};
    if (!page_open(&p))
        return;
    (void)!p.r->ops->reader_of_client(p.r, &table_webhook_row, c->who.client, show_webhook, &p.w, &p.err);
    page_close(&p, "next_cursor", STR_ABSENT);
}

static void webhook_deleted(struct call *c)
{
    call_say(c, "deleted");
}

void handle_delete_webhook(struct call *c)
{
    struct delete_webhook_command *command = ARENA_NEW(c->x->arena, struct delete_webhook_command);
    command->client = c->who.client;
    if (call_webhook_param(c, &command->id, &command->low))
        call_post(c, &command->base, &delete_webhook_command_type, 0, webhook_deleted);
}
