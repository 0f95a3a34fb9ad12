/* engine/schedule.h - what a run of ours does next: which steps get a task, when it ends.
 *
 * Each function follows one thing that happened and costs as much as the steps it touches, never as much as
 * the run has behind it; only pausing, resuming and stopping look at all its steps. Counters in the run's row
 * (left, open, failed) say when it is over.
 *
 *   a step gets a task when all it depends on is SUCCESS or SKIPPED, not to be claimed before its delayMs is
 *   over, and another one after a failure while it has tries left, behind a pause as jobs have; no task is
 *   given while the run is paused or ending. */
#ifndef WEIR_ENGINE_SCHEDULE_H
#define WEIR_ENGINE_SCHEDULE_H

#include "engine/producer.h"
#include "kernel/task_owner.h"

enum run_ending { RUN_GOES_ON, RUN_IS_CANCELLED, RUN_IS_STOPPED };

enum { STEP_ATTEMPTS_MAX = 1000 }; /* of one step, however they come about, unless forced */

/* Load step: the step of a task, what depends on it, and the run. */
void schedule_prefetch_step(struct unit *u, int64_t run, int64_t idx);

/* Steps and first tasks of a run that was just added; its plan's rows are read here. */
void schedule_begin(struct unit *u, struct run_row *run, const struct plan_row *plan);
/* A task of it was started by a worker: StepStarted, before it RunStarted if it is the first. False: the
 * step cannot start any more. */
bool schedule_started(struct unit *u, struct run_row *run, struct run_step_row *step);
/* Its task is gone, the step is what is left to be told. */
void schedule_succeeded(struct unit *u, struct run_row *run, struct run_step_row *step, struct str result);
void schedule_failed(struct unit *u, struct run_row *run, struct run_step_row *step, struct str code,
                     struct str message, bool retryable);

/* Signals; the caller has checked that the state allows it. */
void schedule_pause(struct unit *u, struct run_row *run, struct str reason);
void schedule_resume(struct unit *u, struct run_row *run);
void schedule_retry(struct unit *u, struct run_row *run, struct run_step_row *step);
/* The instructions of a step have changed: a worker that has its task and has not begun loses it. */
void schedule_give_anew(struct unit *u, struct run_row *run, struct run_step_row *step);
void schedule_skip(struct unit *u, struct run_row *run, struct run_step_row *step, struct str reason);
/* The workers of running steps get `cancel` with their heartbeats and `grace_ms` to end; 0: the steps are
 * closed at once. `payload` is the RunCancelled's. Of repeated calls the earlier end counts. */
void schedule_stop(struct unit *u, struct run_row *run, enum run_ending how, int64_t grace_ms,
                   struct str payload);
/* The time of grace is over. */
void schedule_close(struct unit *u, struct run_row *run);

#endif
