/* Retry: only a FAILED job with retries left. Its report is archived per attempt, the end row goes away,
 * and the job is QUEUED again after a backoff. Anything else is left as it is and told. */
#include "base/must.h"
#include "base/backoff.h"
#include "jobs/deliver.h"
#include "jobs/job_move.h"
#include "jobs/job_room.h"
#include "jobs/owned_job.h"

#include "base/banned.h"

int64_t job_backoff_ms(const struct settings *s, int64_t job, int64_t attempt)
{
    double delay = (double)backoff_ms(s->jobs_retry_base_ms, attempt - 2, s->jobs_retry_cap_ms);
    return (int64_t)(delay * (1 + s->jobs_retry_jitter * (2 * backoff_spread(job, attempt) - 1)));
}

static enum err_code refuse(struct unit *u, const struct job_row *job, const struct end_row *end,
                            struct err *err)
{
    if (end->attempt > job->max_retries)
        return err_set(err, ERR_JOB_CONFLICT, "all %lld retries of this job are used",
                       (long long)job->max_retries);
    struct job_room room = {.client = job->client, .is_new = true, .queue_max = u->settings->jobs_queue_size};
    if (job_room_take(u, &room, err) == ERR_REQUEST_RATE_LIMITED || err->code == ERR_EXEC_QUEUE_FULL) {
        err_set(err, ERR_EXEC_QUEUE_FULL, "the queue is full; the job stays FAILED");
        err->retry_after_s = 1;
    }
    return err->code;
}

static void archive(struct unit *u, const struct end_row *end)
{
    job_archive(u, &(struct archive_row){.job = end->id,
                                         .attempt = end->attempt,
                                         .started_ms = end->started_ms,
                                         .finished_ms = end->finished_ms,
                                         .result = end->result,
                                         .error = end->error});
    unit_delete(u, &table_end_row, end);
    unit_list(u, end->client, (uint8_t)(1 + end->state), end->id, true);
}

static struct task *revive(struct unit *u, const struct job_row *job, const struct end_row *end)
{
    struct task_row row = job_task_row(job);
    row.state = TASK_WAITING;
    row.job_state = JOB_FAILED;
    row.attempt = end->attempt + 1;
    row.token = end->token;
    row.due_ms = u->now_ms + job_backoff_ms(u->settings, job->id, row.attempt);
    row.last_us = end->last_us;
    row.refs = end->refs;
    return unit_task_add(u, &row);
}

enum err_code job_retry_failed(struct unit *u, const struct job_row *job, const struct end_row *end,
                               struct task **ret_task, struct err *err)
{
    if (refuse(u, job, end, err) != ERR_OK)
        return err->code;
    archive(u, end);
    struct task *t = revive(u, job, end);
    deliver_open_callback(u, job, t);
    unit_task_move(u, t, TASK_ON_DUE);
    MUST(job_move(u, t, JOB_ON_RETRY, STR_ABSENT, NULL));
    unit_task_place(u, t);
    *ret_task = t;
    return ERR_OK;
}

static enum err_code decide_retry(struct unit *u, struct command *base, struct err *err)
{
    struct job_command *c = (struct job_command *)base;
    const struct job_row *job;
    struct task *t;
    struct end_row *end;
    if (owned_job_find(u, c, &job, &t, &end, err) != ERR_OK)
        return err->code;
    if (end && end->state == JOB_FAILED) {
        if (job_retry_failed(u, job, end, &t, err) != ERR_OK)
            return err->code;
        c->changed = true;
    }
    owned_job_answer(c, t, end);
    return ERR_OK;
}

const struct command_type retry_command_type = {"retry", owned_job_load, decide_retry,
                                                COMMAND_ANSWER(struct job_command, state)};
