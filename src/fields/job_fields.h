/* fields/job_fields.h - what the Jobs API shows: contracts/openapi/jobs.yaml. */
#ifndef WEIR_FIELDS_JOB_FIELDS_H
#define WEIR_FIELDS_JOB_FIELDS_H

#include "fields/fields.h"

/* v: struct job_view. */
#define JOB_FIELDS(X)                                                                                        \
    X(ID, job_id, v->job.id, (uint64_t)v->job.low)                                                           \
    X(WORD, type, job_type_text((enum job_type)v->job.type))                                                 \
    X(WORD, state, job_state_text(v->state))                                                                 \
    X(WORD_OR_NULL, outcome, job_outcome_text(v->state))                                                     \
    X(TIME, created_at, v->job.created_ms)                                                                   \
    X(TIME_OR_NULL, execution_at, v->job.execution_ms)                                                       \
    X(TIME_US, updated_at, v->updated_us)                                                                    \
    X(INT, attempt, v->attempt)                                                                              \
    X(TEXT_OR_NULL, callback, v->job.callback)                                                               \
    X(TEXT_OR_NULL, kind, v->job.kind_name)                                                                  \
    X(WORD_OR_NULL, work_kind, work_kind_text((enum work_kind)v->job.kind))                                  \
    X(TEXT, queue, v->job.queue)                                                                             \
    X(INT, priority, v->job.priority)                                                                        \
    X(INT, max_runtime_ms, v->job.max_runtime_ms)                                                            \
    X(INT, max_retries, v->job.max_retries)                                                                  \
    X(WORD, retry, job_retry_text((enum job_retry)v->job.retry))                                             \
    X(INT_OR_NULL, queue_ttl_seconds, v->job.queue_ttl_ms >= 1000, v->job.queue_ttl_ms / 1000)               \
    X(OBJECT_OR_NULL, definition, put_definition(w, &v->job))                                                \
    X(JSON_OR_NULL, payload, v->job.payload)                                                                 \
    X(JSON_OR_NULL, error, v->error)
/* Of one job alone: a page of results would be large. */
#define JOB_END_FIELDS(X)                                                                                    \
    X(JSON_OR_NULL, result, v->result)                                                                       \
    X(JSON_OR_NULL, progress, v->is_live ? v->task.progress : STR_ABSENT)
struct job_fields {
    JOB_FIELDS(MEMBER_NAME) JOB_END_FIELDS(MEMBER_NAME)
};

/* v: struct job_view; an unfinished job does not know all of it yet. */
#define ENDED_FIELDS(X)                                                                                      \
    X(ID, job_id, v->job.id, (uint64_t)v->job.low)                                                           \
    X(WORD_OR_NULL, outcome, job_outcome_text(v->state))                                                     \
    X(TIME_OR_NULL, started_at, v->started_ms)                                                               \
    X(TIME_OR_NULL, finished_at, v->finished_ms)                                                             \
    X(INT_OR_NULL, duration_ms, !v->is_live, v->started_ms ? v->finished_ms - v->started_ms : 0)
/* Its events follow. */
#define REPORT_FIELDS(X)                                                                                     \
    X(INT, attempt, v->attempt)                                                                              \
    X(JSON_OR_NULL, result, v->result)                                                                       \
    X(JSON_OR_NULL, error, v->error)
struct report_fields {
    ENDED_FIELDS(MEMBER_NAME) REPORT_FIELDS(MEMBER_NAME)
};

/* Behind ENDED_FIELDS, in the report of all jobs. */
#define REPORT_ROW_FIELDS(X)                                                                                 \
    X(WORD, type, job_type_text((enum job_type)v->job.type))                                                 \
    X(WORD_OR_NULL, work_kind, work_kind_text((enum work_kind)v->job.kind))                                  \
    X(TEXT, queue, v->job.queue)                                                                             \
    X(WORD, state, job_state_text(v->state))                                                                 \
    X(INT, attempt, v->attempt)                                                                              \
    X(TIME, created_at, v->job.created_ms)                                                                   \
    X(TEXT_OR_NULL, kind, v->job.kind_name)
/* Its columns as CSV; in another order, which programs rely on. */
#define REPORT_CSV_COLUMNS(C)                                                                                \
    C(job_id), C(type), C(work_kind), C(queue), C(state), C(outcome), C(attempt), C(created_at),             \
        C(started_at), C(finished_at), C(duration_ms), C(kind)

/* v: struct queue_view; now_us. */
#define QUEUE_FIELDS(X)                                                                                      \
    X(TEXT, queue, v->sum.queue)                                                                             \
    X(INT, depth, v->sum.queued)                                                                             \
    X(INT, oldest_age_seconds, age_seconds(v->sum.oldest_us, now_us))                                        \
    X(INT, running, v->sum.running)                                                                          \
    X(INT, scheduled, v->sum.scheduled)                                                                      \
    X(BOOL, paused, v->paused)                                                                               \
    X(INT, completed_per_minute, v->completed_per_minute)                                                    \
    X(INT, failed_per_minute, v->failed_per_minute)
struct queue_fields {
    QUEUE_FIELDS(MEMBER_NAME)
};

/* d: struct queue_defaults, -1 where nothing is set. */
#define QUEUE_DEFAULT_FIELDS(X)                                                                              \
    X(WORD_OR_NULL, retry, d->retry < 0 ? NULL : job_retry_text((enum job_retry)d->retry))                   \
    X(INT_OR_NULL, max_retries, d->max_retries >= 0, d->max_retries)                                         \
    X(INT_OR_NULL, queue_ttl_seconds, d->queue_ttl_seconds >= 0, d->queue_ttl_seconds)                       \
    X(INT_OR_NULL, retention_seconds, d->retention_seconds >= 0, d->retention_seconds)
struct queue_default_fields {
    QUEUE_DEFAULT_FIELDS(MEMBER_NAME)
};

/* hook: struct webhook_row; is_told: it was disabled, and why is known. */
#define WEBHOOK_FIELDS(X)                                                                                    \
    X(ID, webhook_id, hook->id, (uint64_t)hook->low)                                                         \
    X(TEXT, url, hook->url)                                                                                  \
    X(ARRAY, events, put_words(w, hook->events))                                                             \
    X(BOOL, enabled, hook->enabled != 0)                                                                     \
    X(TIME, created_at, hook->created_ms)                                                                    \
    X(TIME_OR_NULL, failing_since, hook->failing_since_ms)                                                   \
    X(TIME_OR_NULL, disabled_at, is_told ? hook->disabled_ms : 0)                                            \
    X(WORD_OR_NULL, disabled_reason,                                                                         \
      is_told ? webhook_fault_text((enum webhook_fault)hook->disabled_why) : NULL)

/* a: struct attempt. */
#define ATTEMPT_FIELDS(X)                                                                                    \
    X(TIME, at, a->at_ms)                                                                                    \
    X(INT_OR_NULL, status, a->status != 0, a->status)                                                        \
    X(TEXT_OR_NULL, error, a->error)                                                                         \
    X(INT, duration_ms, a->duration_ms)

/* d: struct delivery_row; n: its job, event and webhook; next_ms: the next attempt. */
#define DELIVERY_FIELDS(X)                                                                                   \
    X(ID, delivery_id, d->id, (uint64_t)d->low)                                                              \
    X(ID_OR_NULL, webhook_id, d->webhook != 0, d->webhook, (uint64_t)n->webhook.low)                         \
    X(UUID_OR_NULL, event_id, n->has_event ? uuid_str(&n->event.id) : STR_ABSENT)                            \
    X(WORD_OR_NULL, event_name, event_name_of(d, n))                                                         \
    X(ID_OR_NULL, job_id, n->has_job, d->job, (uint64_t)n->job.low)                                          \
    X(WORD, state, delivery_state_text((enum delivery_state)d->state))                                       \
    X(TIME, created_at, d->created_ms)                                                                       \
    X(ARRAY, attempts, put_attempts(w, d->attempts))                                                         \
    X(TIME_OR_NULL, next_attempt_at, next_ms)

/* key: struct api_key_row; now_ms. */
#define KEY_FIELDS(X)                                                                                        \
    X(ID, key_id, key->id, (uint64_t)key->low)                                                               \
    X(TEXT_OR_NULL, name, key->name)                                                                         \
    X(WORD, state, state_of(key, now_ms))                                                                    \
    X(ARRAY, scopes, put_scopes(w, key_scopes_of_stored(key->scopes)))                                       \
    X(ARRAY_OR_NULL, queues, put_words(w, key->queues))                                                      \
    X(TIME, created_at, key->created_ms)                                                                     \
    X(TIME, expires_at, key->expires_ms)                                                                     \
    X(TIME_OR_NULL, revoked_at, key->revoked_ms ? key->revoked_ms : key->ends_ms)                            \
    X(TIME_OR_NULL, last_used_at, key->used_ms)
struct key_fields {
    KEY_FIELDS(MEMBER_NAME)
};

#endif
