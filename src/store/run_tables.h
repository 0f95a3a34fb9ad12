/* store/run_tables.h - the tables of what workflow runs consist of; a part of store/rows.h.
 *
 * A run is named by a text from outside and has a number here (a v7 key, so numbers rise with time); whatever
 * belongs to it begins with that number, so that a run lies together. Events, alerts and the words of a
 * decision are never changed. `runs` and `run_steps` are what the events say, kept beside them in the same
 * transaction (engine/append.h); weir verify reduces the events again and compares. */
#ifndef WEIR_STORE_RUN_TABLES_H
#define WEIR_STORE_RUN_TABLES_H

#include "store/table.h"

/* A tenant's number, the one of the client when a client's id is its name. */
#define TENANT_COLUMNS(X, row)                                                                               \
    X(row, KEY, TEXT, name)                                                                                  \
    X(row, FIXED, INT, num)
#define TENANT_TABLE(T)                                                                                      \
    T(tenant_row, "tenants", TENANT_COLUMNS, RETENTION("for good"),                                          \
      INDEXES({"num", "num", IN_POSTGRES, true}))

/* Plans never change: what is read of one can be kept. */
#define PLAN_COLUMNS(X, row)                                                                                 \
    X(row, KEY, INT, tenant)                                                                                 \
    X(row, KEY, TEXT, plan)                                                                                  \
    X(row, KEY, TEXT, version)                                                                               \
    X(row, FIXED, INT, num, IS_ID)                                                                           \
    X(row, FIXED, INT, created_ms)                                                                           \
    X(row, FIXED, INT, on_failure) /* enum plan_on_failure */                                                \
    X(row, FIXED, INT, step_count)                                                                           \
    X(row, FIXED, BLOB_OR_NULL, fingerprint)
#define PLAN_TABLE(T) T(plan_row, "plans", PLAN_COLUMNS, RETENTION("for good"))

/* Plans of a tenant in the order they were stored; `back` is the negative number, so the newest is first. */
#define PLAN_VERSION_COLUMNS(X, row)                                                                         \
    X(row, KEY, INT, tenant)                                                                                 \
    X(row, KEY, INT, back)                                                                                   \
    X(row, FIXED, INT, created_ms)                                                                           \
    X(row, FIXED, INT, step_count)                                                                           \
    X(row, FIXED, TEXT_OR_NULL, plan)                                                                        \
    X(row, FIXED, TEXT_OR_NULL, version)
#define PLAN_VERSION_TABLE(T)                                                                                \
    T(plan_version_row, "plan_versions", PLAN_VERSION_COLUMNS, RETENTION("for good"))

/* A plan's steps one by one, numbered as they stand in it: a run reads those it comes to. A plan's number is
 * no run's, so the run index (below) finds its steps by name too. */
#define PLAN_STEP_COLUMNS(X, row)                                                                            \
    X(row, KEY, INT, plan)                                                                                   \
    X(row, KEY, INT, idx)                                                                                    \
    X(row, FIXED, INT, max_attempts)                                                                         \
    X(row, FIXED, TEXT_OR_NULL, step)                                                                        \
    X(row, FIXED, TEXT_OR_NULL, queue)                                                                       \
    X(row, FIXED, BLOB_OR_NULL, needs) /* numbers of the steps it depends on (base/varint.h) */              \
    X(row, FIXED, BLOB_OR_NULL, feeds) /* of those that depend on it */                                      \
    X(row, FIXED, TEXT_OR_NULL, config)                                                                      \
    X(row, FIXED, INT, timeout_ms) /* of an attempt; 0: engine.step_timeout_ms */                            \
    X(row, FIXED, INT, delay_ms)   /* from its last dependency until it can be claimed */
#define PLAN_STEP_TABLE(T) T(plan_step_row, "plan_steps", PLAN_STEP_COLUMNS, RETENTION("for good"))

#define RUN_ID_COLUMNS(X, row)                                                                               \
    X(row, KEY, TEXT, id)                                                                                    \
    X(row, FIXED, INT, run)
#define RUN_ID_TABLE(T) T(run_id_row, "run_ids", RUN_ID_COLUMNS, RETENTION("for good"))

#define RUN_COLUMNS(X, row)                                                                                  \
    X(row, KEY, INT, num, IS_ID)                                                                             \
    X(row, FIXED, TEXT_OR_NULL, id)                                                                          \
    X(row, FIXED, INT, tenant)                                                                               \
    X(row, FIXED, TEXT_OR_NULL, tenant_name)                                                                 \
    X(row, FIXED, TEXT_OR_NULL, project)                                                                     \
    X(row, FIXED, TEXT_OR_NULL, environment)                                                                 \
    X(row, FIXED, TEXT_OR_NULL, plan)                                                                        \
    X(row, FIXED, TEXT_OR_NULL, version)                                                                     \
    X(row, FIXED, INT, plan_num)   /* 0: an engine outside executes it */                                    \
    X(row, FIXED, INT, on_failure) /* enum plan_on_failure */                                                \
    X(row, FIXED, INT, created_ms)                                                                           \
    X(row, FIXED, TEXT_OR_NULL, original)                         /* the run it repeats */                   \
    X(row, FIXED, BLOB_OR_NULL, fingerprint)                      /* of the request that made it */          \
    X(row, CHANGING, INT, state, STATES(0, RUN_STATUS_COUNT - 1)) /* enum run_status */                      \
    X(row, CHANGING, INT, inconsistent, RANGE(0, 1))              /* an event was no valid transition */     \
    X(row, CHANGING, INT, last_seq)                                                                          \
    X(row, CHANGING, INT, queued_ms)                                                                         \
    X(row, CHANGING, INT, started_ms)                                                                        \
    X(row, CHANGING, INT, ended_ms)                                                                          \
    X(row, CHANGING, INT, step_count)                                                                        \
    X(row, CHANGING, INT, left_count)   /* steps that are neither SUCCESS nor SKIPPED */                     \
    X(row, CHANGING, INT, open_count)   /* steps with a task */                                              \
    X(row, CHANGING, INT, failed_count) /* steps that failed and are not tried again by themselves */        \
    X(row, CHANGING, INT, cycles)       /* pauses so far: the attempt of RunPaused and RunResumed */         \
    X(row, CHANGING, INT, ending)       /* enum run_ending */                                                \
    X(row, CHANGING, TEXT_OR_NULL, params, PERSONAL)                                                         \
    X(row, CHANGING, TEXT_OR_NULL, ending_payload, PERSONAL) /* of the event that ends it */
#define RUN_TABLE(T)                                                                                         \
    T(run_row, "runs", RUN_COLUMNS, RETENTION("for good"),                                                   \
      LISTINGS({LIST_RUNS, LIST_RUNS, "of a tenant"},                                                        \
               {LIST_RUNS_IN, LIST_RUNS_IN + RUN_STATUS_COUNT - 1, "of a tenant, by status"}))

#define RUN_EVENT_COLUMNS(X, row)                                                                            \
    X(row, KEY, INT, run)                                                                                    \
    X(row, KEY, INT, seq)                                                                                    \
    X(row, FIXED, INT, type) /* enum run_event_type */                                                       \
    X(row, FIXED, INT, attempt)                                                                              \
    X(row, FIXED, INT, engine_attempt)                                                                       \
    X(row, FIXED, INT, persisted_ms)                                                                         \
    X(row, FIXED, BLOB_OR_NULL, event_id)                                                                    \
    X(row, FIXED, TEXT_OR_NULL, emitted) /* as the producer wrote it */                                      \
    X(row, FIXED, TEXT_OR_NULL, step)                                                                        \
    X(row, FIXED, TEXT_OR_NULL, name)    /* of an unknown type */                                            \
    X(row, FIXED, TEXT_OR_NULL, plan)    /* unless it is the run's */                                        \
    X(row, FIXED, TEXT_OR_NULL, version) /* unless it is the run's */                                        \
    X(row, FIXED, TEXT_OR_NULL, payload, PERSONAL)
#define RUN_EVENT_TABLE(T) T(run_event_row, "run_events", RUN_EVENT_COLUMNS, RETENTION("for good"))

/* Where something of a run is, by 64 bits of its digest: an event by its key and by its id, a step by its
 * name. Two that fall together stand side by side (engine/run_index.h). */
#define RUN_INDEX_COLUMNS(X, row)                                                                            \
    X(row, KEY, INT, run)                                                                                    \
    X(row, KEY, INT, hash)                                                                                   \
    X(row, FIXED, INT, place) /* runSeq, or index of the step */
#define RUN_INDEX_TABLE(T) T(run_index_row, "run_index", RUN_INDEX_COLUMNS, RETENTION("for good"))

#define RUN_STEP_COLUMNS(X, row)                                                                             \
    X(row, KEY, INT, run)                                                                                    \
    X(row, KEY, INT, idx)                                                                                    \
    X(row, FIXED, TEXT_OR_NULL, step)                                                                        \
    X(row, CHANGING, INT, state,                                                                             \
      STATES(0, STEP_STATUS_COUNT - 1)) /* enum step_status, of the highest attempt */                       \
    X(row, CHANGING, INT, attempt)      /* 0: none yet */                                                    \
    X(row, CHANGING, INT, waits)        /* steps it depends on that are not done */                          \
    X(row, CHANGING, INT, task)         /* 0: none */                                                        \
    X(row, CHANGING, INT, tries_left)   /* attempts that follow a failure by themselves */                   \
    X(row, CHANGING, INT, started_ms)                                                                        \
    X(row, CHANGING, INT, ended_ms)                                                                          \
    X(row, CHANGING, TEXT_OR_NULL, result, PERSONAL)                                                         \
    X(row, CHANGING, TEXT_OR_NULL, error, PERSONAL)                                                          \
    X(row, CHANGING, TEXT_OR_NULL, override, PERSONAL)                                                       \
    X(row, CHANGING, TEXT_OR_NULL, target)
#define RUN_STEP_TABLE(T) T(run_step_row, "run_steps", RUN_STEP_COLUMNS, RETENTION("for good"))

/* Layer 2: what was refused once is refused for good, in the same words. `run` is below zero while there is
 * none: engine/append.c. */
#define REFUSED_EVENT_COLUMNS(X, row)                                                                        \
    X(row, KEY, INT, run)                                                                                    \
    X(row, KEY, BLOB, key)                                                                                   \
    X(row, FIXED, INT, at_ms)                                                                                \
    X(row, FIXED, TEXT_OR_NULL, prior, PERSONAL)                                                             \
    X(row, FIXED, TEXT_OR_NULL, attempted, PERSONAL)
#define REFUSED_EVENT_TABLE(T)                                                                               \
    T(refused_event_row, "refused_events", REFUSED_EVENT_COLUMNS, RETENTION("for good"))

/* EventIdRegistry for engines outside: which id an event has that is not written yet. */
#define EVENT_ID_COLUMNS(X, row)                                                                             \
    X(row, KEY, TEXT, run)                                                                                   \
    X(row, KEY, BLOB, key)                                                                                   \
    X(row, FIXED, INT, tenant)                                                                               \
    X(row, FIXED, INT, created_ms)                                                                           \
    X(row, FIXED, BLOB_OR_NULL, event_id)
#define EVENT_ID_TABLE(T) T(event_id_row, "event_ids", EVENT_ID_COLUMNS, RETENTION("for good"))

#define ALERT_COLUMNS(X, row)                                                                                \
    X(row, KEY, INT, id, IS_ID)                                                                              \
    X(row, FIXED, INT, low)                                                                                  \
    X(row, FIXED, INT, tenant)                                                                               \
    X(row, FIXED, INT, run)                                                                                  \
    X(row, FIXED, INT, severity) /* enum alert_severity */                                                   \
    X(row, FIXED, INT, category) /* enum alert_category */                                                   \
    X(row, FIXED, INT, created_ms)                                                                           \
    X(row, FIXED, INT, seq) /* of the event; 0: none */                                                      \
    X(row, FIXED, INT, persisted_ms)                                                                         \
    X(row, FIXED, TEXT_OR_NULL, code)                                                                        \
    X(row, FIXED, BLOB_OR_NULL, event_id) /* of the event, or of the decision */                             \
    X(row, FIXED, TEXT_OR_NULL, event_type)                                                                  \
    X(row, FIXED, TEXT_OR_NULL, prior, PERSONAL)                                                             \
    X(row, FIXED, TEXT_OR_NULL, attempted, PERSONAL)                                                         \
    X(row, FIXED, TEXT_OR_NULL, detail, PERSONAL)
#define ALERT_TABLE(T)                                                                                       \
    T(alert_row, "alerts", ALERT_COLUMNS, RETENTION("for good"),                                             \
      LISTINGS({LIST_ALERTS, LIST_ALERTS, "of a tenant"},                                                    \
               {LIST_ALERTS_OF_RUN, LIST_ALERTS_OF_RUN, "of a run"}))

/* SignalDecisionRecord. Kept for seven years at least; nothing deletes one. */
#define DECISION_COLUMNS(X, row)                                                                             \
    X(row, KEY, INT, id, IS_ID)                                                                              \
    X(row, FIXED, BLOB_OR_NULL, uuid)                                                                        \
    X(row, FIXED, INT, run)                                                                                  \
    X(row, FIXED, INT, tenant)                                                                               \
    X(row, FIXED, INT, type, RANGE(0, SIGNAL_TYPE_COUNT - 1)) /* enum signal_type */                         \
    X(row, FIXED, INT, created_ms)                                                                           \
    X(row, FIXED, BLOB_OR_NULL, signal)                                                                      \
    X(row, FIXED, BLOB_OR_NULL, policy)                                                                      \
    X(row, FIXED, TEXT_OR_NULL, actor, PERSONAL)                                                             \
    X(row, FIXED, TEXT_OR_NULL, role)                                                                        \
    X(row, FIXED, TEXT_OR_NULL, audit_reason, PERSONAL)                                                      \
    X(row, FIXED, TEXT_OR_NULL, source_ip, PERSONAL)                                                         \
    X(row, FIXED, TEXT_OR_NULL, payload, PERSONAL)                                                           \
    X(row, FIXED, BLOB_OR_NULL, fingerprint) /* of type and payload */                                       \
    X(row, FIXED, INT, needs_approval, RANGE(0, 1))                                                          \
    X(row, CHANGING, INT, state, STATES(0, SIGNAL_DECISION_COUNT - 1)) /* enum signal_decision */            \
    X(row, CHANGING, INT, processed_ms)                                                                      \
    X(row, CHANGING, INT, succeeded)                                                                         \
    X(row, CHANGING, INT, approved_ms)                                                                       \
    X(row, CHANGING, TEXT_OR_NULL, reason)                                                                   \
    X(row, CHANGING, TEXT_OR_NULL, error_code)                                                               \
    X(row, CHANGING, TEXT_OR_NULL, new_run)                                                                  \
    X(row, CHANGING, TEXT_OR_NULL, approved_by, PERSONAL)                                                    \
    X(row, CHANGING, TEXT_OR_NULL, actor_tenant) /* of a foreigner, who is refused; absent: the run's */
#define DECISION_TABLE(T)                                                                                    \
    T(decision_row, "signal_decisions", DECISION_COLUMNS, RETENTION("for good"),                             \
      LISTINGS({LIST_DECISIONS, LIST_DECISIONS, "of a run"},                                                 \
               {LIST_DECISIONS_OPEN, LIST_DECISIONS_OPEN, "of a run, accepted and not processed"}))

#define SIGNAL_KEY_COLUMNS(X, row)                                                                           \
    X(row, KEY, INT, run)                                                                                    \
    X(row, KEY, BLOB, signal)                                                                                \
    X(row, FIXED, INT, decision)
#define SIGNAL_KEY_TABLE(T) T(signal_key_row, "signal_keys", SIGNAL_KEY_COLUMNS, RETENTION("for good"))

#define POLICY_KEY_COLUMNS(X, row)                                                                           \
    X(row, KEY, BLOB, policy)                                                                                \
    X(row, FIXED, INT, decision)
#define POLICY_KEY_TABLE(T) T(policy_key_row, "policy_keys", POLICY_KEY_COLUMNS, RETENTION("for good"))

/* tasks.owner of the tasks of steps (engine/step_task.h). */
enum { STEP_TASK_OWNER = 2 };

#define RUN_TABLES(T)                                                                                        \
    TENANT_TABLE(T)                                                                                          \
    PLAN_TABLE(T)                                                                                            \
    PLAN_VERSION_TABLE(T)                                                                                    \
    PLAN_STEP_TABLE(T)                                                                                       \
    RUN_ID_TABLE(T)                                                                                          \
    RUN_TABLE(T)                                                                                             \
    RUN_EVENT_TABLE(T)                                                                                       \
    RUN_INDEX_TABLE(T)                                                                                       \
    RUN_STEP_TABLE(T)                                                                                        \
    REFUSED_EVENT_TABLE(T)                                                                                   \
    EVENT_ID_TABLE(T)                                                                                        \
    ALERT_TABLE(T)                                                                                           \
    DECISION_TABLE(T)                                                                                        \
    SIGNAL_KEY_TABLE(T)                                                                                      \
    POLICY_KEY_TABLE(T)

#endif
