/* The worker API: batches in, item results out. An item's refusal is in its result, not in the status. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/jobs/encode.h"
#include "api/worker/encode_delivery.h"
#include "api/worker/encode_step_task.h"
#include "base/log.h"
#include "base/must.h"
#include "base/time_text.h"
#include "kernel/worker_commands.h"
#include "runtime/event_names.h"

#include "base/banned.h"

enum { PRESSED_WAIT_MS = 5000 };

static int64_t client_of(const struct call *c)
{
    return c->who.kind == PRINCIPAL_KEY ? c->who.client : 0;
}

static void encode_code(struct json_writer *w, enum err_code code)
{
    jw_key(w, "ok");
    jw_bool(w, code == ERR_OK);
    if (code != ERR_OK) {
        jw_key(w, "code");
        jw_text(w, err_wire(code));
    }
}

/* --- claim ------------------------------------------------------------------------------------------ */

static void encode_task(struct call *c, struct json_writer *w, const struct claimed_task *t,
                        const struct job_row *job)
{
    char token[24];
    jw_object(w);
    encode_uuid_v7(w, "task_id", t->id, t->low);
    jw_key(w, "token");
    jw_str(w, token_text(t->token, token));
    jw_key(w, "kind");
    jw_text(w, "job");
    encode_uuid_v7(w, "job_id", t->id, t->low);
    jw_key(w, "queue");
    jw_str(w, job->queue);
    jw_key(w, "attempt");
    jw_int(w, t->attempt);
    encode_time_ms(w, "lease_expires_at", t->lease_expires_ms);
    jw_key(w, "max_runtime_ms");
    jw_int(w, job->max_runtime_ms);
    encode_definition(w, job);
    jw_key(w, "payload");
    if (job->payload.ptr)
        jw_raw(w, job->payload);
    else
        jw_null(w);
    jw_key(w, "traceparent");
    jw_str(w, call_run_traceparent(c, job, t->attempt));
    jw_object_end(w);
}

/* A command of our own: nobody waits for its answer. */
struct give_back {
    struct worker_command command;
    struct worker_item items[];
};

static void given_back(struct command *base)
{
    free(base);
}

/* The worker hung up before it could hear of its tasks: they go back now, not when the lease ends. */
static void give_back(struct call *c, const struct claim_command *claim)
{
    struct give_back *g = must_alloc(sizeof *g + claim->task_count * sizeof g->items[0]);
    for (uint32_t i = 0; i < claim->task_count; i++)
        g->items[i] = (struct worker_item){
            .id = claim->tasks[i].id, .token = claim->tasks[i].token, .low = claim->tasks[i].low};
    g->command.client = claim->client;
    g->command.items = g->items;
    g->command.item_count = claim->task_count;
    g->command.base.type = &give_back_command_type;
    g->command.base.done = given_back;
    g->command.base.for_first_lane = claim->base.for_first_lane;
    if (!kernel_post_in_round(c->api->kernel, &g->command.base))
        free(g); /* their leases run out */
}

/* The jobs of what was claimed: submitted a moment ago they come from memory, the others are read together.
 * ret_jobs[i] is NULL for a delivery, and for a job that is gone. */
static enum err_code read_claimed(struct call *c, const struct claim_command *claim, uint32_t count,
                                  struct reader **r, struct job_row **ret_jobs, struct err *err)
{
    struct load_row *missing = ARENA_ARRAY(c->x->arena, struct load_row, count + 1);
    uint32_t *places = ARENA_ARRAY(c->x->arena, uint32_t, count + 1);
    size_t missing_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct claimed_task *t = &claim->tasks[i];
        if (t->owner != TASK_OWNER_JOB)
            continue;
        ret_jobs[i] = ARENA_NEW(c->x->arena, struct job_row);
        if (recent_jobs_find(c->api->recent_jobs, t->id, c->x->arena, ret_jobs[i]))
            continue;
        *ret_jobs[i] = (struct job_row){.id = t->id};
        places[missing_count] = i;
        missing[missing_count++] = (struct load_row){.table = &table_job_row, .row = ret_jobs[i]};
    }
    if (!missing_count)
        return ERR_OK;
    if (!(*r = api_read_begin(c->api, err)) ||
        store_read_rows(*r, missing, missing_count, c->x->arena, err) != ERR_OK)
        return err->code;
    for (size_t i = 0; i < missing_count; i++)
        if (!missing[i].found)
            ret_jobs[places[i]] = NULL;
    return ERR_OK;
}

static void encode_claimed(struct call *c, struct json_writer *w, const struct claimed_task *t,
                           const struct job_row *job, struct delivery_reads *reads, struct err *err)
{
    if (job)
        encode_task(c, w, t, job);
    else if (t->owner != TASK_OWNER_JOB && (reads->reader || (reads->reader = api_read_begin(c->api, err))))
        (void)(t->owner == TASK_OWNER_STEP ? encode_step_task(c, w, reads->reader, t, err)
                                           : encode_delivery_task(c, w, reads, t, err));
}

static void claimed(struct call *c);

/* Whether the key or token still holds after the wait; false: answered. */
static bool still_admitted(struct call *c)
{
    struct err err = {.code = ERR_OK};
    if (credential_check(c, c->x->arena, clock_wall_ms(c->api->config.clock), &err) == ERR_OK)
        return true;
    call_problem(c, &err);
    return false;
}

/* It does not wait beyond the end of its key or token, which may be never: before 1970 what is left of that
 * is no number. */
static void wait_for_task(struct call *c, struct claim_command *command)
{
    int64_t now_ms = clock_wall_ms(c->api->config.clock), ends_ms = c->credential.look_at_ms;
    if (now_ms > ends_ms - command->wait_ms)
        command->wait_ms = ends_ms > now_ms ? ends_ms - now_ms : 0;
    call_post(c, &command->base, &claim_command_type, command->wait_ms, claimed);
}

/* Keys have changed while it waited, so it was asked for nothing: is it to wait on? True: it does, or was
 * answered. A key that was replaced meanwhile ends sooner than when the wait began. */
static bool waits_on(struct call *c, struct claim_command *command)
{
    if (command->task_count || !command->wait_ms || atomic_load(&c->x->gone) || !credential_is_stale(c))
        return false;
    if (still_admitted(c))
        wait_for_task(c, command);
    return true;
}

/* Nobody announces that an outside issuer has dropped a key, and a revocation may be a moment old: one that
 * has waited with a token is looked at before it gets anything. */
static bool may_have(struct call *c, const struct claim_command *command)
{
    int64_t waited_ms = clock_wall_ms(c->api->config.clock) - c->x->received_us / 1000;
    if (!c->claims || !command->task_count || waited_ms < 1 || still_admitted(c))
        return true;
    give_back(c, command);
    return false;
}

static void claimed(struct call *c)
{
    struct claim_command *command = (struct claim_command *)c->command;
    if (waits_on(c, command) || !may_have(c, command))
        return;
    uint32_t count = command->task_count;
    if (count && atomic_load(&c->x->gone)) {
        give_back(c, command);
        count = 0; /* one that only half-closed hears of none */
    }
    struct err err = {.code = ERR_OK};
    struct delivery_reads reads = {.reader = NULL};
    struct job_row **jobs = ARENA_ARRAY(c->x->arena, struct job_row *, count + 1);
    struct json_writer w;
    if (read_claimed(c, command, count, &reads.reader, jobs, &err) != ERR_OK) {
        call_problem(c, &err); /* the leases run out and the jobs are queued again */
        return;
    }
    call_json(c, 200, &w);
    jw_object(&w);
    jw_key(&w, "tasks");
    jw_array(&w);
    for (uint32_t i = 0; i < count && err.code == ERR_OK; i++)
        encode_claimed(c, &w, &command->tasks[i], jobs[i], &reads, &err);
    if (err.code != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    jw_array_end(&w);
    jw_object_end(&w);
    call_send(c);
}

static int64_t integer(const struct json *body, const char *key, int64_t fallback)
{
    const struct json *j = body ? json_get(body, key) : NULL;
    int64_t value = fallback;
    return j && json_to_int(j, &value) ? value : fallback;
}

static void handle_claim(struct call *c)
{
    struct claim_command *command = ARENA_NEW(c->x->arena, struct claim_command);
    const struct json *queues = json_get(c->body, "queues");
    struct str *names = ARENA_ARRAY(c->x->arena, struct str, queues->count);
    for (const struct json *j = queues->child; j; j = j->next) {
        if (queue_is_of_domain(j->text) && c->who.kind != PRINCIPAL_DOMAIN) {
            call_fail(c, ERR_AUTH_FORBIDDEN, "queues that begin with ~ are the server's own");
            return;
        }
        if (!call_has_queue(c, j->text)) {
            call_fail(c, ERR_AUTH_FORBIDDEN, "the key is not for the queue %.*s", STR_ARG(j->text));
            return;
        }
        names[command->queue_count++] = j->text;
    }
    command->queues = names;
    command->worker_id = json_get(c->body, "worker_id")->text;
    command->client = client_of(c);
    command->max = (uint32_t)integer(c->body, "max", 1);
    command->start = json_get(c->body, "start") && json_get(c->body, "start")->type == JSON_TRUE;
    command->wait_ms = integer(c->body, "wait_ms", 0);
    if (atomic_load(&c->api->draining))
        command->wait_ms = 0;
    /* Long polls hold connections: under pressure they are shorter. */
    if (overload_level(c->api->overload) >= PRESSURE_DEGRADED && command->wait_ms > PRESSED_WAIT_MS)
        command->wait_ms = PRESSED_WAIT_MS;
    credential_begin(c);
    command->tasks = ARENA_ARRAY(c->x->arena, struct claimed_task, command->max);
    command->base.for_first_lane = command->queue_count && queue_is_of_domain(names[0]);
    wait_for_task(c, command);
}

/* --- the others -------------------------------------------------------------------------------------- */

static void encode_item(struct json_writer *w, const struct json *asked, const struct worker_item *item,
                        bool heartbeat)
{
    jw_object(w);
    jw_key(w, "task_id");
    jw_str(w, json_get(asked, "task_id")->text);
    encode_code(w, item->code);
    if (heartbeat && item->code == ERR_OK) {
        jw_key(w, "cancel");
        jw_bool(w, item->cancel);
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
    int64_t attempt = integer(result, "attempt", 0);
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
             "attempt", LOG_INT(integer(result, "attempt", 0)), "status", LOG_INT(o->status), "error_code",
             LOG_STR(o->error_code), "error_message", LOG_STR(o->error_message), "duration_ms",
             LOG_INT(o->duration_ms), NULL);
}

static void decode_item(const struct json *asked, struct worker_item *item)
{
    struct uuid id;
    item->is_bad = !uuid_parse(member_text(asked, "task_id"), &id) ||
                   !uuid_split_v7(&id, &item->id, &item->low) ||
                   !token_parse(member_text(asked, "token"), &item->token);
    item->code = item->is_bad ? ERR_LEASE_LOST : ERR_OK; /* no lease has such an id or token */
    const struct json *error = json_get(asked, "error"), *result = json_get(asked, "result");
    const struct json *retryable = error ? json_get(error, "retryable") : NULL;
    item->outcome = (struct task_outcome){.success = str_is(member_text(asked, "outcome"), "success"),
                                          .result = result ? result->source : STR_ABSENT,
                                          .error_code = member_text(error, "code"),
                                          .error_message = member_text(error, "message"),
                                          .retryable = !retryable || retryable->type == JSON_TRUE,
                                          .status = integer(result, "status", 0),
                                          .duration_ms = integer(result, "duration_ms", 0),
                                          .retry_after_ms = integer(result, "retry_after_ms", 0)};
}

static void post_items(struct call *c, const struct command_type *type, void (*finish)(struct call *c))
{
    struct worker_command *command = ARENA_NEW(c->x->arena, struct worker_command);
    const struct json *tasks = json_get(c->body, "tasks");
    command->client = client_of(c);
    command->queues = c->who.power.queues;
    command->items = ARENA_ARRAY(c->x->arena, struct worker_item, tasks->count);
    for (const struct json *j = tasks->child; j; j = j->next)
        decode_item(j, &command->items[command->item_count++]);
    command->base.weight = (int64_t)command->item_count;
    for (size_t i = 0; i < command->item_count; i++)
        command->base.for_first_lane |= task_id_is_stream(command->items[i].id);
    call_post(c, &command->base, type, 0, finish);
}

static void handle_start(struct call *c)
{
    post_items(c, &start_command_type, results);
}
static void handle_heartbeat(struct call *c)
{
    post_items(c, &heartbeat_command_type, heartbeat_results);
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

static void handle_finish(struct call *c)
{
    post_items(c, &finish_command_type, finish_results);
}
/* A process of ours may give back what it had begun, too: it ends as with a lost sender, but at once. */
static void handle_release(struct call *c)
{
    bool ours = c->who.kind == PRINCIPAL_DOMAIN;
    post_items(c, ours ? &give_back_command_type : &release_command_type, results);
}

/* A table reads best as a table. */
/* clang-format off */
const struct route worker_routes[] = {
    ROUTE(POST, "/worker/v1/claim",     claimTasks,     AUTH_WORKER, SCOPE_WORK, "claim",     ACCEPT_JSON, false, handle_claim)
    ROUTE(POST, "/worker/v1/start",     startTasks,     AUTH_WORKER, SCOPE_WORK, "start",     ACCEPT_JSON, false, handle_start)
    ROUTE(POST, "/worker/v1/heartbeat", heartbeatTasks, AUTH_WORKER, SCOPE_WORK, "heartbeat", ACCEPT_JSON, false, handle_heartbeat)
    ROUTE(POST, "/worker/v1/finish",    finishTasks,    AUTH_WORKER, SCOPE_WORK, "finish",    ACCEPT_JSON, false, handle_finish)
    ROUTE(POST, "/worker/v1/release",   releaseTasks,   AUTH_WORKER, SCOPE_WORK, "release",   ACCEPT_JSON, false, handle_release)
};
/* clang-format on */
const size_t worker_route_count = LENGTH_OF(worker_routes);
