/* jobs/job_move.h - moves a job from one state to another. No other function does.
 *
 * The job's state (tasks.job_state), event, counters and notice are written together: a move and its event
 * are one write. The task of the job has moves of its own (kernel/task_owner.h). A retry
 * first makes the task again in the state that the job has in its end row (decide_retry.c), and then moves
 * it. */
#ifndef WEIR_JOBS_JOB_MOVE_H
#define WEIR_JOBS_JOB_MOVE_H

#include "jobs/job_notices.h"
#include "kernel/task_owner.h"
#include "kernel/unit.h"

extern const struct task_owner job_task_owner; /* job_owner.c */

/* The additional facts of a final move besides its event, for the end row and the notice. */
struct job_ending {
    struct str result; /* JSON object, or absent */
    struct str error;  /* JSON object {"code","message","retryable"}, or absent */
    bool is_retried;   /* FAILED, and QUEUED again by the next move of this batch: the task stays alive */
    bool is_release;   /* a worker gave the job back: nothing failed */
};

/* Moves a live task's job. `extra` is a JSON object with more event payload, or absent. A final move writes
 * the end row (outcome and report) and takes the task out of the live queue, unless the job is retried in the
 * same batch. False: the lifecycle has no such move, and nothing was changed. The caller has touched the task
 * and places it afterwards. */
bool job_move(struct unit *u, struct task *t, enum job_trigger on, struct str extra,
              const struct job_ending *ending);

/* A FAILED job is QUEUED again after a backoff. Refuses when its retries are used up or there is no room. */
MUST_CHECK enum err_code job_retry_failed(struct unit *u, const struct job_row *job,
                                          const struct end_row *end, struct task **ret_task, struct err *err);

/* A running attempt failed, by `on`. The job ends FAILED; or, when its `retry` is auto, the failure is
 * retryable and attempts are left, it is QUEUED again in the same write: the next attempt is due after its
 * backoff, the report of this one is archived, callbacks stay open. Places the task. */
struct job_failure {
    struct str reason; /* JSON object with more event payload (job_reason) */
    struct str error;  /* as in struct job_ending */
    bool retryable;
};
void job_fail(struct unit *u, struct task *t, enum job_trigger on, const struct job_failure *f);

/* Second half of a retry without an end row: a FAILED job whose task is still alive becomes QUEUED, without
 * lease and worker, and claimable from due_ms on. The caller has moved the task and set its attempt.
 * is_release: its worker gave it back. Places the task. */
void job_requeue(struct unit *u, struct task *t, int64_t due_ms, bool is_release);

/* The report of an attempt that was retried. */
void job_archive(struct unit *u, const struct archive_row *attempt);

/* Cancels an unfinished job; a worker that has it hears of it with its next heartbeat. The
 * reason goes into the event; NULL: none, its client asked. */
void job_cancel(struct unit *u, struct task *t, const char *reason);

/* The part of a task that its job decides; state, attempt, token and history are the caller's. */
struct task_row job_task_row(const struct job_row *job);

/* {"reason":"...", "message":"..."} cut to what an event may carry; message may be absent. */
struct str job_reason(struct unit *u, const char *reason, struct str message);
struct str job_error(struct unit *u, struct str code, struct str message, bool retryable);

#endif
