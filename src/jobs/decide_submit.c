/* Submit: replay before value checks, value checks before conflict, then limits, then one write of job,
 * events, queue entry, listing and idempotency key. */
#include "base/must.h"
#include "jobs/deliver.h"
#include "jobs/job_commands.h"
#include "jobs/job_move.h"
#include "jobs/job_room.h"
#include "jobs/submit_values.h"

#include "base/banned.h"

static void load_submit(struct unit *u, struct command *base)
{
    const struct submit_command *c = (const struct submit_command *)base;
    for (size_t i = 0; i < c->item_count; i++) {
        const struct submit_item *item = &c->items[i];
        size_t cursor = 0;
        int64_t job;
        if (item->is_bad || !item->idem_key.ptr)
            continue;
        unit_prefetch_key(u, c->client, item->idem_key);
        while ((job = idem_find(&u->store->idem, idem_hash(c->client, item->idem_key), &cursor))) {
            unit_prefetch(u, &table_job_row, &(struct job_row){.id = job});
            unit_prefetch(u, &table_end_row, &(struct end_row){.id = job});
        }
    }
}

static struct str fingerprint_of(const struct submit_item *item)
{
    return (struct str){(const char *)item->fingerprint, sizeof item->fingerprint};
}

/* The job that used this key before, or NULL. */
static const struct job_row *find_former(struct unit *u, int64_t client, const struct submit_item *item)
{
    size_t cursor = 0;
    int64_t job;
    while ((job = idem_find(&u->store->idem, idem_hash(client, item->idem_key), &cursor))) {
        const struct job_row *row = unit_row(u, &table_job_row, &(struct job_row){.id = job});
        if (row && row->client == client && str_equal(row->idem_key, item->idem_key))
            return row;
    }
    return NULL;
}

static void replay(struct unit *u, const struct job_row *former, struct submit_item *item)
{
    struct end_row key = {.id = former->id};
    const struct task *live = unit_task(u, former->id);
    const struct end_row *end = live ? NULL : unit_row(u, &table_end_row, &key);
    item->id = former->id;
    item->low = (uint64_t)former->low;
    item->created_ms = former->created_ms;
    item->state = (enum job_state)(live ? live->row.job_state : end ? end->state : JOB_CREATED);
    item->replayed = true;
}

/* Limits of seed 001 section 17, the client's share of them, and the classes under pressure. */
static enum err_code check_room(struct unit *u, int64_t client, const struct submit_values *v,
                                struct err *err)
{
    const struct settings *s = u->settings;
    bool is_low = v->priority <= JOB_PRIORITY_LOW_MAX;
    if (is_low && u->sheds_low_priority) {
        err_set(err, ERR_EXEC_QUEUE_FULL, "under pressure no priority 0 to 2 is taken; send it again later");
        err->retry_after_s = 1;
        return err->code;
    }
    /* Of low ones so many that the queue is 85 % full: the first number of jobs that is 85 % or more. */
    int64_t queue_max = is_low ? (s->jobs_queue_size * 85 + 99) / 100 : s->jobs_queue_size;
    struct job_room room = {.client = client, .is_new = true, .queue_max = v->execution_ms ? -1 : queue_max};
    return job_room_take(u, &room, err);
}

static struct job_row *new_job_row(struct unit *u, int64_t client, const struct submit_item *item,
                                   const struct submit_values *v, int64_t seed)
{
    struct job_row *row = ARENA_NEW(u->arena, struct job_row);
    *row = (struct job_row){.id = unit_id(u),
                            .low = unit_uuid_tail(u),
                            .client = client,
                            .type = v->type,
                            .kind = v->kind,
                            .priority = v->priority,
                            .created_ms = u->now_ms,
                            .execution_ms = v->execution_ms,
                            .seed = v->kind == WORK_KIND_NONE ? 0 : seed,
                            .duration_ms = v->definition.duration_ms,
                            .should_fail = v->definition.should_fail,
                            .payload_size = v->definition.payload_size,
                            .max_runtime_ms = v->max_runtime_ms,
                            .max_retries = v->max_retries,
                            .queue_ttl_ms = v->queue_ttl_ms,
                            .retry = v->retry,
                            .queue = v->queue,
                            .kind_name = v->kind_name,
                            .callback = item->callback,
                            .idem_key = item->idem_key,
                            .idem_fingerprint = item->idem_key.ptr ? fingerprint_of(item) : STR_ABSENT,
                            .payload = item->payload,
                            .traceparent = item->traceparent};
    return row;
}

static struct task *new_task(struct unit *u, const struct job_row *job)
{
    struct task_row row = job_task_row(job);
    row.state = TASK_WAITING;
    row.job_state = JOB_NO_STATE;
    row.attempt = 1;
    row.due_ms = job->execution_ms;
    struct task *t = unit_task_add(u, &row);
    t->about_loaded = true; /* what is about it comes later */
    return t;
}

static void accept(struct unit *u, int64_t client, struct submit_item *item, const struct submit_values *v,
                   int64_t seed)
{
    struct job_row *job = new_job_row(u, client, item, v, seed);
    unit_insert(u, &table_job_row, job);
    unit_list(u, client, LIST_ALL, job->id, false);
    if (item->idem_key.ptr)
        unit_idem_add(u, idem_hash(client, item->idem_key), job->id);
    struct task *t = new_task(u, job);
    deliver_open_callback(u, job, t);
    MUST(job_move(u, t, JOB_ON_SUBMIT, STR_ABSENT, NULL));
    if (!job->execution_ms) {
        unit_task_move(u, t, TASK_ON_DUE);
        MUST(job_move(u, t, JOB_ON_DUE, STR_ABSENT, NULL));
    }
    unit_task_place(u, t);
    item->id = job->id;
    item->low = (uint64_t)job->low;
    item->created_ms = job->created_ms;
    item->state = (enum job_state)t->row.job_state;
}

/* What the client has set for its queue, then what holds for any. */
static struct submit_defaults defaults_of(const struct unit *u, int64_t client, struct str queue)
{
    struct submit_defaults d = submit_defaults(u->settings, queue);
    const struct queue_row *set = queue_settings_find(&u->store->queues, client, queue);
    if (set && set->retry >= 0)
        d.retry = (enum job_retry)set->retry;
    if (set && set->max_retries >= 0 &&
        set->max_retries < d.max_retries) /* jobs.retry_max may be smaller now */
        d.max_retries = set->max_retries;
    if (set && set->queue_ttl_ms)
        d.queue_ttl_ms = set->queue_ttl_ms;
    return d;
}

static enum err_code decide_item(struct unit *u, int64_t client, struct submit_item *item, int64_t seed,
                                 struct err *err)
{
    const struct job_row *former = item->idem_key.ptr ? find_former(u, client, item) : NULL;
    if (former && str_equal(former->idem_fingerprint, fingerprint_of(item))) {
        replay(u, former, item);
        return ERR_OK;
    }
    struct submit_values v;
    struct submit_defaults d = defaults_of(u, client, submit_queue(item));
    if (submit_check_values(u->settings, &d, item, u->now_us, seed, &v, err) != ERR_OK)
        return err->code;
    if (former)
        return err_set(err, ERR_EXEC_IDEMPOTENCY_CONFLICT,
                       "this idempotency key was used before with another body");
    if (check_room(u, client, &v, err) != ERR_OK)
        return err->code;
    accept(u, client, item, &v, seed);
    return ERR_OK;
}

/* Items stand alone, each with its own answer. Their seeds differ by their place, so a batch without kinds is
 * a mix. */
static enum err_code decide_submit(struct unit *u, struct command *base, struct err *err)
{
    (void)err;
    struct submit_command *c = (struct submit_command *)base;
    for (size_t i = 0; i < c->item_count; i++) {
        struct submit_item *item = &c->items[i];
        if (item->is_bad)
            continue;
        item->err = (struct err){.code = ERR_OK};
        item->replayed = false;
        decide_item(u, c->client, item, base->received_us / 1000 + (int64_t)i, &item->err);
    }
    return ERR_OK;
}

const struct command_type submit_command_type = {"submit", load_submit, decide_submit};
