/* GET /v1/queues and /v1/queues/{queue}; pause, resume and defaults of a queue. GET /ops/v1/queues. */
#include "api/jobs/jobs_contract.h"
#include "api/handlers.h"
#include "api/jobs/job_calls.h"
#include "api/jobs/encode.h"
#include "api/ops/operators.h"
#include "api/queue_views.h"
#include "jobs/queue_commands.h"
#include "jobs/submit_values.h"
#include "lifecycle/job_lifecycle.h"

#include "base/banned.h"

enum { QUEUES_A_PAGE = 1000 };

/* --- as JSON ------------------------------------------------------------------------------------------ */

static int64_t age_seconds(int64_t oldest_us, int64_t now_us)
{
    return oldest_us && now_us > oldest_us ? (now_us - oldest_us) / 1000000 : 0;
}

static void encode_queue_members(struct json_writer *w, const struct queue_view *v, int64_t now_us)
{
    QUEUE_FIELDS(ENCODE_FIELD)
}

static void encode_defaults(struct json_writer *w, const struct queue_defaults *d)
{
    jw_key(w, "defaults");
    jw_object(w);
    QUEUE_DEFAULT_FIELDS(ENCODE_FIELD)
    jw_object_end(w);
}

/* --- reading ------------------------------------------------------------------------------------------ */

/* Of one client, as far as the caller's key goes; client 0: of all. False: answered. */
static bool read_views(struct call *c, int64_t client, struct queue_views *ret)
{
    struct err err;
    struct reader *r = call_reader(c);
    if (!r || queue_views_read(jobs_api(c->api)->queue_flows, r, c->x->arena, client, c->who.power.queues,
                               c->x->received_us / 1000, ret, &err) == ERR_OK)
        return r != NULL;
    call_problem(c, &err);
    return false;
}

static bool comes_after(struct str name, struct str cursor)
{
    int order = memcmp(name.ptr, cursor.ptr, name.len < cursor.len ? name.len : cursor.len);
    return order > 0 || (order == 0 && name.len > cursor.len);
}

/* All of them are at hand: the pages are for the caller. */
static void send_queues(struct call *c, int64_t client)
{
    struct page p = {.c = c};
    struct queue_views views;
    struct str cursor;
    if (!call_limit(c, QUEUES_A_PAGE, QUEUES_A_PAGE, &p.limit) || !call_query(c, "cursor", &cursor) ||
        !read_views(c, client, &views) || !page_open(&p))
        return;
    for (size_t i = 0; i < views.count && !p.more; i++) {
        struct str name = views.list[i]->sum.queue;
        if (cursor.ptr && !comes_after(name, cursor))
            continue;
        jw_object(&p.w);
        encode_queue_members(&p.w, views.list[i], c->x->received_us);
        jw_object_end(&p.w);
        p.more = ++p.given == p.limit && i + 1 < views.count;
        cursor = p.more ? name : cursor;
    }
    page_close(&p, "next_cursor", cursor);
}

void handle_list_queues(struct call *c)
{
    send_queues(c, c->who.client);
}

void handle_list_queues_of_all(struct call *c)
{
    int64_t client;
    struct reader *r = call_reader(c);
    if (r && call_query_client(c, r, &client))
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
    call_object(c, 200, &w);
    encode_queue_members(&w, v, c->x->received_us);
    encode_defaults(&w, &v->defaults);
    call_send_object(c, &w);
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
    call_object(c, 200, &w);
    encode_str(&w, "queue", command->queue);
    encode_bool(&w, "paused", command->paused);
    encode_defaults(&w, &command->defaults);
    call_send_object(c, &w);
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

void handle_set_queue(struct call *c)
{
    struct queue_command *command = new_command(c, QUEUE_SET);
    const struct json *retry = json_get(c->body, "retry");
    enum job_retry mode;
    if (!command)
        return;
    command->defaults =
        (struct queue_defaults){.retry = -1,
                                .max_retries = json_int(c->body, "max_retries", -1),
                                .queue_ttl_seconds = json_int(c->body, "queue_ttl_seconds", -1),
                                .retention_seconds = json_int(c->body, "retention_seconds", -1)};
    if (retry && retry->type == JSON_STRING && job_retry_parse(retry->text, &mode))
        command->defaults.retry = mode;
    post(c, command);
}
