/* lifecycle/job_lifecycle.h - every state, trigger, event and move of a job. The only place that decides
 * which move is legal; nothing else assigns a job state.
 *
 *                   cancel ┌───────────────────────────────► CANCELED
 *                          │          │            │            ▲
 *   submit ─► CREATED ─due─┴► QUEUED ─┴─claim─► ASSIGNED ─start─► RUNNING ─succeed─► SUCCEEDED
 *                              ▲  ▲                │                └─fail, timeout, worker lost─► FAILED
 *                              │  └─lease expires──┘ (recovery)                              │
 *                              └───────────── retry, by its client or by itself ─────────────┘
 *
 * Seed 001 section 9: 10 allowed pairs, 1 recovery pair (AJ-22), 38 forbidden ones. Wire names, the SQL
 * CHECK and docs/lifecycle.md come from these lists. To add a state: one line in JOB_STATES, its moves
 * in job_lifecycle.c, a migration for the CHECK. */
#ifndef WEIR_LIFECYCLE_JOB_LIFECYCLE_H
#define WEIR_LIFECYCLE_JOB_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "lifecycle/task_lifecycle.h"

/* X(name, final, outcome on the wire, phase of its task in the live queue) */
#define JOB_STATES(X)                                                                                        \
    X(CREATED, false, NULL, WAITING)                                                                         \
    X(QUEUED, false, NULL, READY)                                                                            \
    X(ASSIGNED, false, NULL, LEASED)                                                                         \
    X(RUNNING, false, NULL, RUNNING)                                                                         \
    X(SUCCEEDED, true, "SUCCESS", ENDED)                                                                     \
    X(FAILED, true, "FAILED", ENDED)                                                                         \
    X(CANCELED, true, "CANCELED", ENDED)

#define X(name, final, outcome, phase) JOB_##name,
enum job_state { JOB_STATES(X) JOB_STATE_COUNT, JOB_NO_STATE = JOB_STATE_COUNT };
#undef X

/* X(name, wire name) */
#define JOB_EVENTS(X)                                                                                        \
    X(CREATED, "job.created")                                                                                \
    X(QUEUED, "job.queued")                                                                                  \
    X(ASSIGNED, "job.assigned")                                                                              \
    X(RUNNING, "job.running")                                                                                \
    X(SUCCEEDED, "job.succeeded")                                                                            \
    X(FAILED, "job.failed")                                                                                  \
    X(CANCELED, "job.canceled")                                                                              \
    X(LEASE_EXPIRED, "job.lease_expired")                                                                    \
    X(TIMED_OUT, "job.timed_out")                                                                            \
    X(RETRIES_EXHAUSTED, "job.retries_exhausted") /* a note, not a move: prev = next = FAILED */

#define X(name, wire) JOB_EVENT_##name,
enum job_event { JOB_EVENTS(X) JOB_EVENT_COUNT };
#undef X

/* The triggers of a job's moves, from outside or by time. */
enum job_trigger {
    JOB_ON_SUBMIT,
    JOB_ON_DUE,
    JOB_ON_CLAIM,
    JOB_ON_START,
    JOB_ON_SUCCEED,
    JOB_ON_FAIL,
    JOB_ON_TIMEOUT,
    JOB_ON_WORKER_LOST,
    JOB_ON_CANCEL,
    JOB_ON_RETRY,
    JOB_ON_LEASE_EXPIRE, /* the lease reaper's own; also a worker's early release */
    JOB_TRIGGER_COUNT
};

struct job_move {
    enum job_state from;
    enum job_trigger on;
    enum job_state to;
    enum job_event event;
};

/* NULL: refused. */
const struct job_move *job_find_move(enum job_state from, enum job_trigger on);

bool job_state_is_final(enum job_state s);
enum task_phase job_state_phase(enum job_state s);
const char *job_state_text(enum job_state s);   /* NULL for JOB_NO_STATE */
const char *job_outcome_text(enum job_state s); /* NULL until final */
const char *job_event_text(enum job_event e);
/* In capital or small letters, as people type them. */
bool job_state_parse(struct str text, enum job_state *ret_state);
bool job_outcome_parse(struct str text, enum job_state *ret_state);
bool job_event_parse(struct str text, enum job_event *ret_event);

/* Who tries a failed job again: its client, by a call; or the server, after a backoff, while the failure is
 * retryable and attempts are left. X(name, wire name); stored by number. */
#define JOB_RETRIES(X) X(MANUAL, "manual") X(AUTO, "auto")
#define X(name, wire)  JOB_RETRY_##name,
enum job_retry { JOB_RETRIES(X) JOB_RETRY_COUNT };
#undef X
const char *job_retry_text(enum job_retry r);
bool job_retry_parse(struct str text, enum job_retry *ret_retry);

#define JOB_TYPES(X) X(EXECUTE) X(DEFERRED) X(EMIT_EVENT)
#define X(name)      JOB_TYPE_##name,
enum job_type { JOB_TYPES(X) JOB_TYPE_COUNT };
#undef X
const char *job_type_text(enum job_type t);
bool job_type_parse(struct str text, enum job_type *ret_type);

#endif
