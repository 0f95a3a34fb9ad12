/* GET /v1/queues and /v1/queues/{queue}; pause, resume and defaults of a queue. GET /ops/v1/queues. */
#include "api/jobs/jobs_contract.h"
#include "api/handlers.h"
#include "api/jobs/job_calls.h"
#include "api/jobs/encode.h"
#include "api/jobs/list_filter.h"
#include "api/ops/operators.h"
#include "api/queue_views.h"
#include "jobs/queue_commands.h"
#include "jobs/submit_values.h"

#include "base/banned.h"

enum { QUEUES_A_PAGE = 1000 };

/* --- as JSON ------------------------------------------------------------------------------------------ */

static void number(struct json_writer *w, const char *key, int64_t value)
{
    encode_int(w, key, value);
}

static void number_or_null(struct json_writer *w, const char *key, int64_t value)
{
    jw_key(w, key);
    if (value < 0)
        jw_null(w);
    else
        jw_int(w, value);
}

static void encode_queue_members(struct json_writer *w, const struct queue_view *v, int64_t now_us)
{
    int64_t age_us = v->sum.oldest_us && now_us > v->sum.oldest_us ? now_us - v->sum.oldest_us : 0;
    encode_str(w, "queue", v->sum.queue);
    number(w, "depth", v->sum.queued);
    number(w, "oldest_age_seconds", age_us / 1000000);
    number(w, "running", v->sum.running);
    number(w, "scheduled", v->sum.scheduled);
    encode_bool(w, "paused", v->paused);
    number(w, "completed_per_minute", v->completed_per_minute);
    number(w, "failed_per_minute", v->failed_per_minute);
}

static void encode_defaults(struct json_writer *w, const struct queue_defaults *d)
{
    jw_key(w, "defaults");
    jw_object(w);
    encode_text(w, "retry", d->retry < 0 ? NULL : job_retry_text((enum job_retry)d->retry));
    number_or_null(w, "max_retries", d->max_retries);
    number_or_null(w, "queue_ttl_seconds", d->queue_ttl_seconds);
    number_or_null(w, "retention_seconds", d->retention_seconds);
    jw_object_end(w);
}

/* --- reading ------------------------------------------------------------------------------------------ */

/* Of one client, as far as the caller's key goes; client 0: of all. False: answered. */
static bool read_views(struct call *c, int64_t client, struct queue_views *ret)
{
    struct err err = {.code = ERR_OK};
    struct reader *r = api_read_begin(c->api, &err);
    if (r)
        (void)!queue_views_read(jobs_api(c->api)->queue_flows, r, c->x->arena, client, c->who.power.queues,
                                c->x->received_us / 1000, ret, &err);
    if (err.code == ERR_OK)
        return true;
    call_problem(c, &err);
    return false;
}

static bool comes_after(struct str name, struct str cursor)
{
    int order = memcmp(name.ptr, cursor.ptr, name.len < cursor.len ? name.len : cursor.len);
    return order > 0 || (order == 0 && name.len > cursor.len);
}

static void send_queues(struct call *c, int64_t client)
{
    struct queue_views views;
    struct err err;
    struct str cursor, next = STR_ABSENT;
    struct json_writer w;
    int64_t limit, shown = 0;
    if (http_query(c->x, "cursor", &cursor, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    if (!call_limit(c, QUEUES_A_PAGE, QUEUES_A_PAGE, &limit) || !read_views(c, client, &views))
        return;
    call_json(c, 200, &w);
    jw_object(&w);
    jw_key(&w, "items");
    jw_array(&w);
    for (size_t i = 0; i < views.count && !next.ptr; i++) {
        if (cursor.ptr && !comes_after(views.list[i]->sum.queue, cursor))
            continue;
        jw_object(&w);
        encode_queue_members(&w, views.list[i], c->x->received_us);
        jw_object_end(&w);
        if (++shown == limit && i + 1 < views.count)
            next = views.list[i]->sum.queue;
    }
    jw_array_end(&w);
    encode_str(&w, "next_cursor", next);
    jw_object_end(&w);
    call_send(c);
}

void handle_list_queues(struct call *c)
{
    send_queues(c, c->who.client);
}

void handle_list_queues_of_all(struct call *c)
{
    struct err err;
    int64_t client = 0;
    struct reader *r = api_read_begin(c->api, &err);
    if (!r)
        call_problem(c, &err);
    else if (call_query_client(c, r, &client))
        send_queues(c, client);
}

bool call_queue_param(struct call *c, struct str *ret)
{
    *ret = route_param(&c->match, "queue");
    if (!queue_name_is_valid(*ret)) {
        call_fail(c, ERR_QUEUE_NOT_FOUND,
                  "no queue can have this name; names match [a-z0-9][a-z0-9_.-]{0,63}");
        return false;
    }
    if (!call_has_queue(c, *ret)) {
        call_fail(c, ERR_AUTH_FORBIDDEN, "the key is not for the queue %.*s", STR_ARG(*ret));
        return false;
    }
    return true;
}

/* Every name is a queue: one of which nothing is known is empty. */
static void send_queue(struct call *c, struct str queue)
{
    struct queue_views views;
    struct json_writer w;
    struct queue_view empty = {.sum.queue = queue, .defaults = queue_defaults_of(NULL)};
    if (!read_views(c, c->who.client, &views))
        return;
    const struct queue_view *v = queue_views_find(&views, queue);
    if (!v)
        v = &empty;
    call_json(c, 200, &w);
    jw_object(&w);
    encode_queue_members(&w, v, c->x->received_us);
    encode_defaults(&w, &v->defaults);
    jw_object_end(&w);
    call_send(c);
}

void handle_get_queue(struct call *c)
{
    struct str queue;
    if (call_queue_param(c, &queue))
        send_queue(c, queue);
}

/* --- pause, resume, defaults --------------------------------------------------------------------------- */

static void changed(struct call *c)
{
    const struct queue_command *command = (const struct queue_command *)c->command;
    struct json_writer w;
    call_json(c, 200, &w);
    jw_object(&w);
    encode_str(&w, "queue", command->queue);
    encode_bool(&w, "paused", command->paused);
    encode_defaults(&w, &command->defaults);
    jw_object_end(&w);
    call_send(c);
}

static struct queue_command *new_command(struct call *c, enum queue_action action)
{
    struct queue_command *command = ARENA_NEW(c->x->arena, struct queue_command);
    command->action = action;
    command->client = c->who.client;
    command->defaults = queue_defaults_of(NULL);
    return call_queue_param(c, &command->queue) ? command : NULL;
}

static void post(struct call *c, struct queue_command *command)
{
    if (command)
        call_post(c, &command->base, &queue_command_type, 0, changed);
}

void handle_pause_queue(struct call *c)
{
    post(c, new_command(c, QUEUE_PAUSE));
}
void handle_resume_queue(struct call *c)
{
    post(c, new_command(c, QUEUE_RESUME));
}

static int64_t number_of(const struct json *body, const char *key)
{
    int64_t value = -1;
    const struct json *j = json_get(body, key);
    return j && json_to_int(j, &value) ? value : -1;
}

void handle_set_queue(struct call *c)
{
    struct queue_command *command = new_command(c, QUEUE_SET);
    const struct json *retry = json_get(c->body, "retry");
    enum job_retry mode;
    if (!command)
        return;
    command->defaults = (struct queue_defaults){.retry = -1,
                                                .max_retries = number_of(c->body, "max_retries"),
                                                .queue_ttl_seconds = number_of(c->body, "queue_ttl_seconds"),
                                                .retention_seconds = number_of(c->body, "retention_seconds")};
    if (retry && retry->type == JSON_STRING && job_retry_parse(retry->text, &mode))
        command->defaults.retry = mode;
    post(c, command);
}
