#include "jobs/owned_job.h"

#include "lifecycle/key_power.h"

#include "base/banned.h"

void owned_job_load(struct unit *u, struct command *base)
{
    const struct job_command *c = (const struct job_command *)base;
    (void)unit_prefetch_task(u, c->id);
    unit_prefetch(u, &table_job_row, &(struct job_row){.id = c->id});
    unit_prefetch(u, &table_end_row, &(struct end_row){.id = c->id});
}

enum err_code owned_job_find(struct unit *u, const struct job_command *c, const struct job_row **ret_job,
                             struct task **ret_task, struct end_row **ret_end, struct err *err)
{
    const struct job_row *job = unit_row(u, &table_job_row, &(struct job_row){.id = c->id});
    if (!job || (uint64_t)job->low != c->low)
        return err_set(err, ERR_JOB_NOT_FOUND, "no job has this id");
    if (job->client != c->client)
        return err_set(err, ERR_AUTH_FORBIDDEN, "the job belongs to another client");
    if (!key_queues_have(c->queues, job->queue))
        return err_set(err, ERR_AUTH_FORBIDDEN, "the key is not for the queue %.*s", STR_ARG(job->queue));
    *ret_job = job;
    *ret_task = unit_task(u, c->id);
    *ret_end = *ret_task ? NULL : unit_row(u, &table_end_row, &(struct end_row){.id = c->id});
    if (*ret_task || *ret_end)
        return ERR_OK;
    err_set(err, ERR_STORE_CORRUPT, "the job has neither a live nor a final state");
    unit_report_inconsistent(u, err); /* it may have moved from one to the other between two reads */
    return err->code;
}

void owned_job_answer(struct job_command *c, const struct task *t, const struct end_row *end)
{
    c->state = (enum job_state)(t ? t->row.job_state : end->state);
    c->updated_us = t ? t->row.last_us : end->last_us;
    c->attempt = t ? t->row.attempt : end->attempt;
}
