/* lifecycle/run_lifecycle.h - every status and event of a workflow run and its steps, and what an event does
 * to them. The only place that decides which transition is valid; nothing else assigns a run's or a step's
 * status.
 *
 *   a run:   PENDING ─RunStarted─► RUNNING ─RunCompleted─► COMPLETED
 *                                   │   ▲
 *                          RunPaused▼   │RunResumed
 *                                  PAUSED
 *            from PENDING, RUNNING and PAUSED: RunFailed ─► FAILED, RunCancelled ─► CANCELLED
 *
 *   a step:  PENDING ─StepStarted─► RUNNING ─StepCompleted─► SUCCESS
 *               └─StepSkipped─► SKIPPED └─StepFailed─► FAILED ─the next attempt is PENDING again
 *
 * Seed 002 section 5, with the source states of AR-03, the attempts of AR-04 and the run statuses that a step
 * event needs (AR-07). RunQueued and unknown types change nothing and are never invalid (AR-02, AR-10). */
#ifndef WEIR_LIFECYCLE_RUN_LIFECYCLE_H
#define WEIR_LIFECYCLE_RUN_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* X(name, final) */
#define RUN_STATUSES(X)                                                                                      \
    X(PENDING, false)                                                                                        \
    X(RUNNING, false)                                                                                        \
    X(PAUSED, false)                                                                                         \
    X(COMPLETED, true)                                                                                       \
    X(FAILED, true)                                                                                          \
    X(CANCELLED, true)

#define X(name, final) RUN_##name,
enum run_status { RUN_STATUSES(X) RUN_STATUS_COUNT };
#undef X

/* X(name, final): of one attempt */
#define STEP_STATUSES(X)                                                                                     \
    X(PENDING, false)                                                                                        \
    X(RUNNING, false)                                                                                        \
    X(SUCCESS, true)                                                                                         \
    X(FAILED, true)                                                                                          \
    X(SKIPPED, true)

#define X(name, final) STEP_##name,
enum step_status { STEP_STATUSES(X) STEP_STATUS_COUNT };
#undef X

/* X(name on the wire, is about a step) */
#define RUN_EVENTS(X)                                                                                        \
    X(RunQueued, false)                                                                                      \
    X(RunStarted, false)                                                                                     \
    X(StepStarted, true)                                                                                     \
    X(StepCompleted, true)                                                                                   \
    X(StepFailed, true)                                                                                      \
    X(StepSkipped, true)                                                                                     \
    X(RunPaused, false)                                                                                      \
    X(RunResumed, false)                                                                                     \
    X(RunCompleted, false)                                                                                   \
    X(RunFailed, false)                                                                                      \
    X(RunCancelled, false)

#define X(name, step) RUN_EVENT_##name,
enum run_event_type { RUN_EVENTS(X) RUN_EVENT_COUNT, RUN_EVENT_UNKNOWN = RUN_EVENT_COUNT };
#undef X

/* The facts derived about a step: its highest attempt. All zero: no event has named it. */
struct step_state {
    int64_t attempt; /* 0: none yet */
    enum step_status status;
};

enum transition {
    TRANSITION_DONE,
    TRANSITION_NONE,    /* the event says nothing about states */
    TRANSITION_INVALID, /* nothing was changed */
};

/* Of a transition that is invalid, what an alert tells. */
struct transition_fault {
    const char *prior, *attempted; /* names of statuses */
};

/* Applies a run-level event. `fault` is set when it is invalid; may be NULL. */
enum transition run_apply(enum run_status *status, enum run_event_type event, struct transition_fault *fault);
/* Applies a step-level event of an attempt, in a run of this status. */
enum transition step_apply(struct step_state *step, enum run_status run, enum run_event_type event,
                           int64_t attempt, struct transition_fault *fault);

/* The status of one attempt: PENDING for the one that may come next. */
enum step_status step_attempt_status(const struct step_state *step, int64_t attempt);

enum run_event_type run_event_of(struct str name); /* RUN_EVENT_UNKNOWN: none of ours */
const char *run_event_text(enum run_event_type e); /* not for UNKNOWN */
bool run_event_is_step(enum run_event_type e);     /* not for UNKNOWN: those have a step or not */
const char *run_status_text(enum run_status s);
/* In capital or small letters. */
bool run_status_of(struct str name, enum run_status *ret_status);
bool run_status_is_final(enum run_status s);
const char *step_status_text(enum step_status s);
bool step_status_is_final(enum step_status s);

#endif
