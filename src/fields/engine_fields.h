/* fields/engine_fields.h - what the Engine API shows: contracts/openapi/engine.yaml. */
#ifndef WEIR_FIELDS_ENGINE_FIELDS_H
#define WEIR_FIELDS_ENGINE_FIELDS_H

#include "fields/fields.h"

/* plan: struct plan_version_row. */
#define PLAN_VERSION_FIELDS(X)                                                                               \
    X(TEXT, planId, plan->plan)                                                                              \
    X(TEXT, planVersion, plan->version)                                                                      \
    X(INT, steps, plan->step_count)                                                                          \
    X(TIME, createdAt, plan->created_ms)
struct plan_version_fields {
    PLAN_VERSION_FIELDS(MEMBER_NAME)
};

/* plan: struct plan_row; its steps and createdAt follow. */
#define PLAN_HEAD_FIELDS(X)                                                                                  \
    X(TEXT, planId, plan->plan)                                                                              \
    X(TEXT, planVersion, plan->version)                                                                      \
    X(WORD, onFailure, plan_on_failure_text((enum plan_on_failure)plan->on_failure))
struct plan_head_fields {
    PLAN_HEAD_FIELDS(MEMBER_NAME) char createdAt;
};

/* s: struct plan_step_row; steps: all of the plan. */
#define PLAN_STEP_FIELDS(X)                                                                                  \
    X(TEXT, stepId, s->step)                                                                                 \
    X(ARRAY, dependsOn, put_dependencies(w, steps, s->needs))                                                \
    X(TEXT, queue, s->queue)                                                                                 \
    X(JSON_IF, config, s->config)                                                                            \
    X(INT, maxAttempts, s->max_attempts)                                                                     \
    X(INT_IF, timeoutMs, s->timeout_ms != 0, s->timeout_ms)                                                  \
    X(INT, delayMs, s->delay_ms)
struct plan_step_fields {
    PLAN_STEP_FIELDS(MEMBER_NAME)
};

/* run: struct run_row. */
#define RUN_IDENTITY_FIELDS(X)                                                                               \
    X(TEXT, runId, run->id)                                                                                  \
    X(TEXT, tenantId, run->tenant_name)                                                                      \
    X(TEXT, projectId, run->project)                                                                         \
    X(TEXT, environmentId, run->environment)                                                                 \
    X(TEXT, planId, run->plan)                                                                               \
    X(TEXT, planVersion, run->version)                                                                       \
    X(BOOL, external, run->plan_num == 0)                                                                    \
    X(TIME, createdAt, run->created_ms)
/* In a list. */
#define RUN_ITEM_FIELDS(X)                                                                                   \
    X(WORD, status, run_status_text((enum run_status)run->state))                                            \
    X(BOOL, inconsistent, run->inconsistent != 0)                                                            \
    X(INT, lastRunSeq, run->last_seq)                                                                        \
    X(TIME_OR_NULL, startedAt, run->started_ms)                                                              \
    X(TIME_OR_NULL, endedAt, run->ended_ms)
/* Of one run; p: struct run_projection, NULL for the run as it is now. Its steps follow. */
#define RUN_FIELDS(X)                                                                                        \
    X(WORD, status, run_status_text(p ? p->status : (enum run_status)run->state))                            \
    X(OBJECT, metadata, put_metadata(w, run, p ? p->invalid != 0 : run->inconsistent != 0))                  \
    X(INT, lastRunSeq, p ? p->last_seq : run->last_seq)
/* Left out as of an earlier time. */
#define RUN_NOW_FIELDS(X)                                                                                    \
    X(JSON_OR_NULL, params, run->params)                                                                     \
    X(BOOL, ending, run->ending && !run_status_is_final((enum run_status)run->state))                        \
    X(TIME_OR_NULL, queuedAt, run->queued_ms)                                                                \
    X(TIME_OR_NULL, startedAt, run->started_ms)                                                              \
    X(TIME_OR_NULL, endedAt, run->ended_ms)
struct run_fields {
    RUN_IDENTITY_FIELDS(MEMBER_NAME) RUN_FIELDS(MEMBER_NAME) RUN_NOW_FIELDS(MEMBER_NAME)
};

/* name, status, attempt: as of the time that is asked for. */
#define STEP_FIELDS(X)                                                                                       \
    X(TEXT, stepId, name)                                                                                    \
    X(WORD, status, step_status_text(status))                                                                \
    X(INT, logicalAttemptId, attempt)
/* s: struct run_step_row; left out as of an earlier time. */
#define STEP_NOW_FIELDS(X)                                                                                   \
    X(TIME_OR_NULL, startedAt, s->started_ms)                                                                \
    X(TIME_OR_NULL, endedAt, s->ended_ms)                                                                    \
    X(ANY_IF, result, s->result)                                                                             \
    X(ANY_IF, failure, s->error)                                                                             \
    X(JSON_IF, override, s->override)                                                                        \
    X(JSON_IF, target, s->target)
struct step_fields {
    STEP_FIELDS(MEMBER_NAME) STEP_NOW_FIELDS(MEMBER_NAME)
};

/* run; e: struct run_event_row; parts: what its key is made of; key. */
#define RUN_EVENT_FIELDS(X)                                                                                  \
    X(UUID, eventId, e->event_id)                                                                            \
    X(TEXT, eventType, parts.event_type)                                                                     \
    X(TEXT, runId, run->id)                                                                                  \
    X(TEXT, tenantId, run->tenant_name)                                                                      \
    X(TEXT, projectId, run->project)                                                                         \
    X(TEXT, environmentId, run->environment)                                                                 \
    X(TEXT, planId, parts.plan_id)                                                                           \
    X(TEXT, planVersion, parts.plan_version)                                                                 \
    X(TEXT_IF, stepId, e->step)                                                                              \
    X(INT, engineAttemptId, e->engine_attempt)                                                               \
    X(INT, logicalAttemptId, e->attempt)                                                                     \
    X(TEXT, idempotencyKey, key)                                                                             \
    X(TEXT, emittedAt, e->emitted)                                                                           \
    X(JSON_IF, payload, e->payload)                                                                          \
    X(INT, runSeq, e->seq)                                                                                   \
    X(TIME, persistedAt, e->persisted_ms)
struct run_event_fields {
    RUN_EVENT_FIELDS(MEMBER_NAME)
};

/* run; d: struct decision_row. */
#define DECISION_FIELDS(X)                                                                                   \
    X(UUID, signalDecisionId, d->uuid)                                                                       \
    X(UUID, signalId, d->signal)                                                                             \
    X(TEXT, runId, run->id)                                                                                  \
    X(WORD, decision, signal_decision_text((enum signal_decision)d->state))                                  \
    X(TEXT_IF, reason, d->reason)                                                                            \
    X(UUID, policyDecisionId, d->policy)                                                                     \
    X(OBJECT, audit, put_audit(w, run, d))                                                                   \
    X(WORD, signalType, signal_type_text((enum signal_type)d->type))                                         \
    X(JSON, signalPayload, d->payload)                                                                       \
    X(TIME_IF, engineProcessedAt, d->processed_ms)                                                           \
    X(OBJECT_IF, engineResult, d->processed_ms, put_result(w, d))                                            \
    X(BOOL_IF, approvalRequired, d->needs_approval, true)                                                    \
    X(TEXT_IF, approvedBy, d->approved_ms ? d->approved_by : STR_ABSENT)                                     \
    X(TIME_IF, approvalTimestamp, d->approved_ms)
struct decision_fields {
    DECISION_FIELDS(MEMBER_NAME)
};

#define DECISION_AUDIT_FIELDS(X)                                                                             \
    X(TEXT, actorId, d->actor)                                                                               \
    X(TEXT, actorRole, d->role)                                                                              \
    X(TEXT, tenantId, run->tenant_name)                                                                      \
    X(TEXT_IF, actorTenantId, d->actor_tenant)                                                               \
    X(TIME, timestamp, d->created_ms)                                                                        \
    X(TEXT_IF, reason, d->audit_reason)                                                                      \
    X(TEXT_IF, sourceIp, d->source_ip)
struct decision_audit_fields {
    DECISION_AUDIT_FIELDS(MEMBER_NAME)
};

#define ENGINE_RESULT_FIELDS(X)                                                                              \
    X(WORD, status, d->succeeded ? "success" : "failure")                                                    \
    X(TEXT_IF, errorCode, d->succeeded ? STR_ABSENT : d->error_code)                                         \
    X(TEXT_IF, newRunId, d->new_run)
struct engine_result_fields {
    ENGINE_RESULT_FIELDS(MEMBER_NAME)
};

/* run; a: struct alert_row; of_signal: it is about a signal, not an event. */
#define ALERT_FIELDS(X)                                                                                      \
    X(ID, alertId, a->id, (uint64_t)a->low)                                                                  \
    X(TEXT, code, a->code)                                                                                   \
    X(WORD, severity, alert_severity_text((enum alert_severity)a->severity))                                 \
    X(WORD, category, alert_category_text((enum alert_category)a->category))                                 \
    X(TEXT, runId, run->id)                                                                                  \
    X(TEXT, tenantId, run->tenant_name)                                                                      \
    X(TEXT, projectId, run->project)                                                                         \
    X(TEXT, environmentId, run->environment)                                                                 \
    X(UUID_OR_NULL, eventId, of_signal ? STR_ABSENT : a->event_id)                                           \
    X(UUID_IF, signalDecisionId, of_signal ? a->event_id : STR_ABSENT)                                       \
    X(TEXT, eventType, a->event_type)                                                                        \
    X(INT_OR_NULL, runSeq, a->seq != 0, a->seq)                                                              \
    X(TIME_OR_NULL, persistedAt, a->persisted_ms)                                                            \
    X(TEXT_OR_NULL, priorState, a->prior)                                                                    \
    X(TEXT_OR_NULL, attemptedState, a->attempted)                                                            \
    X(TEXT_IF, actorId, of_signal ? a->detail : STR_ABSENT)                                                  \
    X(TEXT_IF, note, of_signal ? STR_ABSENT : a->detail)                                                     \
    X(TIME, createdAt, a->created_ms)
struct alert_fields {
    ALERT_FIELDS(MEMBER_NAME)
};

#endif
