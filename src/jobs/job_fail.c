/* A failed attempt: the end of the job, or the next attempt in the same write. */
#include "base/must.h"
#include "jobs/job_commands.h"
#include "jobs/job_move.h"

#include "base/banned.h"

void job_archive(struct unit *u, const struct archive_row *attempt)
{
    struct archive_row *row = ARENA_NEW(u->arena, struct archive_row);
    *row = *attempt;
    unit_insert(u, &table_archive_row, row);
}

/* No room is asked for, unlike for a retry by the client. The job never ended, so it counts against
 * jobs.max_active already; and work that was accepted is not lost because the queue is full. jobs.queue_size
 * refuses what is new: retries go beyond it by what was running at most, as leases that end do. */
void job_requeue(struct unit *u, struct task *t, int64_t due_ms, bool is_release)
{
    t->row.lease_ms = 0;
    t->row.started_ms = 0;
    t->row.due_ms = due_ms;
    live_set_worker(u->store->live, t, STR_ABSENT, 0);
    MUST(job_move(u, t, JOB_ON_RETRY, STR_ABSENT, &(struct job_ending){.is_release = is_release}));
    unit_task_place(u, t);
}

static bool is_retried(const struct task *t, const struct job_failure *f)
{
    return t->row.retry == JOB_RETRY_AUTO && f->retryable && t->row.attempt <= t->row.max_retries;
}

void job_fail(struct unit *u, struct task *t, enum job_trigger on, const struct job_failure *f)
{
    struct job_ending ending = {.error = f->error, .is_retried = is_retried(t, f)};
    MUST(job_move(u, t, on, f->reason, &ending));
    if (!ending.is_retried)
        return;
    job_archive(u, &(struct archive_row){.job = t->row.id,
                                         .attempt = t->row.attempt,
                                         .started_ms = t->row.started_ms,
                                         .finished_ms = t->row.last_us / 1000,
                                         .error = f->error});
    t->row.attempt++;
    unit_task_move(u, t, TASK_ON_RETRY);
    job_requeue(u, t, u->now_ms + job_backoff_ms(u->settings, t->row.id, t->row.attempt), false);
}
