/* Many jobs of a client at once: each by the rules of its own cancel or retry. */
#include "jobs/job_move.h"
#include "jobs/queue_commands.h"
#include "lifecycle/key_power.h"

#include "base/banned.h"

static void load_bulk(struct unit *u, struct command *base)
{
    const struct bulk_command *c = (const struct bulk_command *)base;
    for (size_t i = 0; i < c->id_count; i++) {
        (void)unit_prefetch_task(u, c->ids[i]);
        if (c->action != BULK_RETRY)
            continue;
        unit_prefetch(u, &table_job_row, &(struct job_row){.id = c->ids[i]});
        unit_prefetch(u, &table_end_row, &(struct end_row){.id = c->ids[i]});
    }
}

static void cancel_one(struct unit *u, struct bulk_command *c, int64_t id)
{
    struct task *t = unit_task(u, id);
    if (!t || !task_is_job(&t->row) || t->row.client != c->client ||
        !key_queues_have(c->queues, t->row.queue) ||
        (c->only_state >= 0 && t->row.job_state != c->only_state))
        return;
    job_cancel(u, t, c->reason);
    c->changed++;
}

/* A job whose retries are used up stays as it is. */
static void retry_one(struct unit *u, struct bulk_command *c, int64_t id)
{
    struct err err = {.code = ERR_OK};
    struct task *t;
    const struct job_row *job = unit_row(u, &table_job_row, &(struct job_row){.id = id});
    const struct end_row *end = unit_row(u, &table_end_row, &(struct end_row){.id = id});
    if (!job || !end || end->state != JOB_FAILED || job->client != c->client ||
        !key_queues_have(c->queues, job->queue))
        return;
    c->changed += job_retry_failed(u, job, end, &t, &err) == ERR_OK;
    c->is_full = err.code == ERR_EXEC_QUEUE_FULL || err.code == ERR_EXEC_CLIENT_LIMIT;
}

static enum err_code decide_bulk(struct unit *u, struct command *base, struct err *err)
{
    (void)err;
    struct bulk_command *c = (struct bulk_command *)base;
    for (c->handled = 0; c->handled < c->id_count; c->handled++) {
        if (c->action == BULK_CANCEL)
            cancel_one(u, c, c->ids[c->handled]);
        else
            retry_one(u, c, c->ids[c->handled]);
        if (c->is_full)
            break;
    }
    return ERR_OK;
}

const struct command_type bulk_command_type = {"bulk", load_bulk, decide_bulk,
                                               COMMAND_ANSWER(struct bulk_command, changed)};
