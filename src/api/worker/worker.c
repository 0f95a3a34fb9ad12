/* The worker API: claims. The other calls: worker_items.c. */
#include <stdatomic.h>
#include <stdlib.h>

#include "api/handlers.h"
#include "api/jobs/encode.h"
#include "api/jobs/jobs_contract.h"
#include "api/worker/worker_items.h"
#include "base/must.h"

#include "base/banned.h"

/* --- claim ------------------------------------------------------------------------------------------ */

static void encode_task(struct call *c, struct json_writer *w, const struct claimed_task *t,
                        const struct job_row *job)
{
    char token[24];
    jw_object(w);
    encode_uuid_v7(w, "task_id", t->id, t->low);
    encode_str(w, "token", token_text(t->token, token));
    encode_text(w, "kind", "job");
    encode_uuid_v7(w, "job_id", t->id, t->low);
    encode_str(w, "queue", job->queue);
    encode_int(w, "attempt", t->attempt);
    encode_time_ms(w, "lease_expires_at", t->lease_expires_ms);
    encode_int(w, "max_runtime_ms", job->max_runtime_ms);
    encode_definition(w, job);
    encode_raw(w, "payload", job->payload);
    encode_str(w, "traceparent", call_run_traceparent(c, job, t->attempt));
    jw_object_end(w);
}

/* A command of our own: no caller waits for its answer. */
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
    struct recent_jobs *recent = jobs_api(c->api)->recent_jobs;
    size_t missing_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct claimed_task *t = &claim->tasks[i];
        if (!task_id_is_job(t->id))
            continue;
        ret_jobs[i] = ARENA_NEW(c->x->arena, struct job_row);
        if (recent_jobs_find(recent, t->id, c->x->arena, ret_jobs[i]))
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
                           const struct job_row *job, struct reader **r, struct err *err)
{
    const struct contract_task *kind = contract_set_task(&c->api->contracts, t->owner);
    if (job)
        encode_task(c, w, t, job);
    else if (kind->encode && (*r || (*r = api_read_begin(c->api, err))))
        (void)kind->encode(c, w, *r, t, err);
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
    struct reader *r = NULL;
    struct job_row **jobs = ARENA_ARRAY(c->x->arena, struct job_row *, count + 1);
    struct json_writer w;
    if (read_claimed(c, command, count, &r, jobs, &err) != ERR_OK) {
        call_problem(c, &err); /* the leases run out and the jobs are queued again */
        return;
    }
    call_json(c, 200, &w);
    jw_object(&w);
    jw_key(&w, "tasks");
    jw_array(&w);
    for (uint32_t i = 0; i < count && err.code == ERR_OK; i++)
        encode_claimed(c, &w, &command->tasks[i], jobs[i], &r, &err);
    if (err.code != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    jw_array_end(&w);
    jw_object_end(&w);
    call_send(c);
}

void handle_claim_tasks(struct call *c)
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
    command->client = worker_client_of(c);
    command->max = (uint32_t)worker_integer(c->body, "max", 1);
    command->start = json_get(c->body, "start") && json_get(c->body, "start")->type == JSON_TRUE;
    command->wait_ms = call_wait_ms(c, worker_integer(c->body, "wait_ms", 0));
    credential_begin(c);
    command->tasks = ARENA_ARRAY(c->x->arena, struct claimed_task, command->max);
    command->base.for_first_lane = command->queue_count && queue_is_of_domain(names[0]);
    wait_for_task(c, command);
}
