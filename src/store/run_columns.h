/* store/run_columns.h - the columns of what workflow runs consist of; a part of store/rows.h.
 *
 * A run is named by a text from outside and has a number here (a v7 key, so numbers rise with time); whatever
 * belongs to it begins with that number, so that a run lies together. Events, alerts and the words of a
 * decision are never changed. `runs` and `run_steps` are what the events say, kept beside them in the same
 * transaction (engine/append.h); weir verify reduces the events again and compares. */
#ifndef WEIR_STORE_RUN_COLUMNS_H
#define WEIR_STORE_RUN_COLUMNS_H

/* A tenant's number, the one of the client when a client's id is its name. */
#define TENANT_COLUMNS(INT, TEXT, BLOB)                                                                      \
    TEXT(name)                                                                                               \
    INT(num)

/* Plans never change: what is read of one can be kept. */
#define PLAN_COLUMNS(INT, TEXT, BLOB)                                                                        \
    INT(tenant)                                                                                              \
    TEXT(plan)                                                                                               \
    TEXT(version)                                                                                            \
    INT(num)                                                                                                 \
    INT(created_ms)                                                                                          \
    INT(on_failure) /* enum plan_on_failure */                                                               \
    INT(step_count)                                                                                          \
    BLOB(fingerprint)

/* Plans of a tenant in the order they were stored; `back` is the negative number, so the newest is first. */
#define PLAN_VERSION_COLUMNS(INT, TEXT, BLOB)                                                                \
    INT(tenant)                                                                                              \
    INT(back)                                                                                                \
    INT(created_ms)                                                                                          \
    INT(step_count)                                                                                          \
    TEXT(plan)                                                                                               \
    TEXT(version)

/* A plan's steps one by one, numbered as they stand in it: a run reads those it comes to. A plan's number is
 * no run's, so marks (below) find its steps by name too. */
#define PLAN_STEP_COLUMNS(INT, TEXT, BLOB)                                                                   \
    INT(plan)                                                                                                \
    INT(idx)                                                                                                 \
    INT(max_attempts)                                                                                        \
    TEXT(step)                                                                                               \
    TEXT(queue)                                                                                              \
    BLOB(needs) /* numbers of the steps it depends on (base/varint.h) */                                     \
    BLOB(feeds) /* of those that depend on it */                                                             \
    TEXT(config)                                                                                             \
    INT(timeout_ms) /* of an attempt; 0: engine.step_timeout_ms */                                           \
    INT(delay_ms)   /* from its last dependency until it can be claimed */

#define RUN_ID_COLUMNS(INT, TEXT, BLOB)                                                                      \
    TEXT(id)                                                                                                 \
    INT(run)

#define RUN_COLUMNS(INT, TEXT, BLOB)                                                                         \
    INT(num)                                                                                                 \
    TEXT(id)                                                                                                 \
    INT(tenant)                                                                                              \
    TEXT(tenant_name)                                                                                        \
    TEXT(project)                                                                                            \
    TEXT(environment)                                                                                        \
    TEXT(plan)                                                                                               \
    TEXT(version)                                                                                            \
    INT(plan_num)   /* 0: an engine outside executes it */                                                   \
    INT(on_failure) /* enum plan_on_failure */                                                               \
    INT(created_ms)                                                                                          \
    TEXT(original)    /* the run it repeats */                                                               \
    BLOB(fingerprint) /* of the request that made it */                                                      \
    INT(state)        /* enum run_status */                                                                  \
    INT(inconsistent) /* an event was no valid transition */                                                 \
    INT(last_seq)                                                                                            \
    INT(queued_ms)                                                                                           \
    INT(started_ms)                                                                                          \
    INT(ended_ms)                                                                                            \
    INT(step_count)                                                                                          \
    INT(left_count)   /* steps that are neither SUCCESS nor SKIPPED */                                       \
    INT(open_count)   /* steps with a task */                                                                \
    INT(failed_count) /* steps that failed and are not tried again by themselves */                          \
    INT(cycles)       /* pauses so far: the attempt of RunPaused and RunResumed */                           \
    INT(ending)       /* enum run_ending */                                                                  \
    INT(timer)        /* task that closes what is left when the time of grace is over; 0: none */            \
    TEXT(params)                                                                                             \
    TEXT(ending_payload) /* of the event that ends it */

#define RUN_EVENT_COLUMNS(INT, TEXT, BLOB)                                                                   \
    INT(run)                                                                                                 \
    INT(seq)                                                                                                 \
    INT(type) /* enum run_event_type */                                                                      \
    INT(attempt)                                                                                             \
    INT(engine_attempt)                                                                                      \
    INT(persisted_ms)                                                                                        \
    BLOB(event_id)                                                                                           \
    TEXT(emitted) /* as the producer wrote it */                                                             \
    TEXT(step)                                                                                               \
    TEXT(name)    /* of an unknown type */                                                                   \
    TEXT(plan)    /* unless it is the run's */                                                               \
    TEXT(version) /* unless it is the run's */                                                               \
    TEXT(payload)

/* Where something of a run is, by 64 bits of its digest: an event by its key and by its id, a step by its
 * name. Two that fall together stand side by side (engine/run_marks.h). */
#define RUN_MARK_COLUMNS(INT, TEXT, BLOB)                                                                    \
    INT(run)                                                                                                 \
    INT(hash)                                                                                                \
    INT(place) /* runSeq, or index of the step */

#define RUN_STEP_COLUMNS(INT, TEXT, BLOB)                                                                    \
    INT(run)                                                                                                 \
    INT(idx)                                                                                                 \
    TEXT(step)                                                                                               \
    INT(state)      /* enum step_status, of the highest attempt */                                           \
    INT(attempt)    /* 0: none yet */                                                                        \
    INT(waits)      /* steps it depends on that are not done */                                              \
    INT(task)       /* 0: none */                                                                            \
    INT(tries_left) /* attempts that follow a failure by themselves */                                       \
    INT(started_ms)                                                                                          \
    INT(ended_ms)                                                                                            \
    TEXT(result)                                                                                             \
    TEXT(error)                                                                                              \
    TEXT(override)                                                                                           \
    TEXT(target)

/* Layer 2: what was refused once is refused for good, in the same words. `run` is below zero while there is
 * none: engine/append.c. */
#define REFUSED_EVENT_COLUMNS(INT, TEXT, BLOB)                                                               \
    INT(run)                                                                                                 \
    BLOB(key)                                                                                                \
    INT(at_ms)                                                                                               \
    TEXT(prior)                                                                                              \
    TEXT(attempted)

/* EventIdRegistry for engines outside: which id an event has that is not written yet. */
#define EVENT_ID_COLUMNS(INT, TEXT, BLOB)                                                                    \
    TEXT(run)                                                                                                \
    BLOB(key)                                                                                                \
    INT(tenant)                                                                                              \
    INT(created_ms)                                                                                          \
    BLOB(event_id)

#define ALERT_COLUMNS(INT, TEXT, BLOB)                                                                       \
    INT(id)                                                                                                  \
    INT(low)                                                                                                 \
    INT(tenant)                                                                                              \
    INT(run)                                                                                                 \
    INT(severity) /* enum alert_severity */                                                                  \
    INT(category) /* enum alert_category */                                                                  \
    INT(created_ms)                                                                                          \
    INT(seq) /* of the event; 0: none */                                                                     \
    INT(persisted_ms)                                                                                        \
    TEXT(code)                                                                                               \
    BLOB(event_id) /* of the event, or of the decision */                                                    \
    TEXT(event_type)                                                                                         \
    TEXT(prior)                                                                                              \
    TEXT(attempted)                                                                                          \
    TEXT(detail)

/* SignalDecisionRecord. Kept for seven years at least; nothing deletes one. */
#define DECISION_COLUMNS(INT, TEXT, BLOB)                                                                    \
    INT(id)                                                                                                  \
    BLOB(uuid)                                                                                               \
    INT(run)                                                                                                 \
    INT(tenant)                                                                                              \
    INT(type) /* enum signal_type */                                                                         \
    INT(created_ms)                                                                                          \
    BLOB(signal)                                                                                             \
    BLOB(policy)                                                                                             \
    TEXT(actor)                                                                                              \
    TEXT(role)                                                                                               \
    TEXT(audit_reason)                                                                                       \
    TEXT(source_ip)                                                                                          \
    TEXT(payload)                                                                                            \
    BLOB(fingerprint) /* of type and payload */                                                              \
    INT(needs_approval)                                                                                      \
    INT(state) /* enum signal_decision */                                                                    \
    INT(processed_ms)                                                                                        \
    INT(succeeded)                                                                                           \
    INT(approved_ms)                                                                                         \
    TEXT(reason)                                                                                             \
    TEXT(error_code)                                                                                         \
    TEXT(new_run)                                                                                            \
    TEXT(approved_by)                                                                                        \
    TEXT(actor_tenant) /* of a foreigner, who is refused; absent: the run's */

#define SIGNAL_KEY_COLUMNS(INT, TEXT, BLOB)                                                                  \
    INT(run)                                                                                                 \
    BLOB(signal)                                                                                             \
    INT(decision)

#define POLICY_KEY_COLUMNS(INT, TEXT, BLOB)                                                                  \
    BLOB(policy)                                                                                             \
    INT(decision)

#define RUN_TABLES(X)                                                                                        \
    X(tenant_row, "tenants", TENANT_COLUMNS, 1, 2)                                                           \
    X(plan_row, "plans", PLAN_COLUMNS, 3, 8)                                                                 \
    X(plan_version_row, "plan_versions", PLAN_VERSION_COLUMNS, 2, 6)                                         \
    X(plan_step_row, "plan_steps", PLAN_STEP_COLUMNS, 2, 10)                                                 \
    X(run_id_row, "run_ids", RUN_ID_COLUMNS, 1, 2)                                                           \
    X(run_row, "runs", RUN_COLUMNS, 1, 13)                                                                   \
    X(run_event_row, "run_events", RUN_EVENT_COLUMNS, 2, 13)                                                 \
    X(run_mark_row, "run_marks", RUN_MARK_COLUMNS, 2, 3)                                                     \
    X(run_step_row, "run_steps", RUN_STEP_COLUMNS, 2, 3)                                                     \
    X(refused_event_row, "refused_events", REFUSED_EVENT_COLUMNS, 2, 5)                                      \
    X(event_id_row, "event_ids", EVENT_ID_COLUMNS, 2, 5)                                                     \
    X(alert_row, "alerts", ALERT_COLUMNS, 1, 15)                                                             \
    X(decision_row, "signal_decisions", DECISION_COLUMNS, 1, 15)                                             \
    X(signal_key_row, "signal_keys", SIGNAL_KEY_COLUMNS, 2, 3)                                               \
    X(policy_key_row, "policy_keys", POLICY_KEY_COLUMNS, 1, 2)

#endif
