/* store/job_tables.h - tables of jobs, of their webhooks and deliveries, and of the inbox; a part of
 * store/rows.h.
 *
 * Layout F of the write path: `jobs` and `ends` are insert-only, `tasks` holds only what is alive, and
 * events are in the log (store/log.h), referenced from tasks.refs and ends.refs. */
#ifndef WEIR_STORE_JOB_TABLES_H
#define WEIR_STORE_JOB_TABLES_H

#include "store/table.h"

#define WEBHOOK_COLUMNS(X, row)                                                                              \
    X(row, KEY, INT, id, IS_ID)                                                                              \
    X(row, FIXED, INT, low)                                                                                  \
    X(row, FIXED, INT, client)                                                                               \
    X(row, FIXED, TEXT, url, PERSONAL)                                                                       \
    X(row, FIXED, TEXT, events) /* sorted, comma-separated set of names */                                   \
    X(row, FIXED, INT, created_ms)                                                                           \
    X(row, CHANGING, BLOB, secret)                                                                           \
    X(row, CHANGING, INT, enabled)                                                                           \
    X(row, CHANGING, BLOB_OR_NULL, former)  /* secret before the last rotation, while both are live */       \
    X(row, CHANGING, INT, rotated_ms)       /* 0: never */                                                   \
    X(row, CHANGING, INT, failing_since_ms) /* first failure after the last success; 0: none */              \
    X(row, CHANGING, INT, disabled_ms)      /* when it was last; 0: never */                                 \
    X(row, CHANGING, INT, disabled_why)     /* enum webhook_fault */
#define WEBHOOK_TABLE(T)                                                                                     \
    T(webhook_row, "webhooks", WEBHOOK_COLUMNS, RETENTION("until it is deleted"),                            \
      INDEXES({"client", "client", IN_BOTH}))

/* Guards "same url and same set of events": one row per live webhook. */
#define WEBHOOK_KEY_COLUMNS(X, row)                                                                          \
    X(row, KEY, INT, client)                                                                                 \
    X(row, KEY, BLOB, fingerprint)                                                                           \
    X(row, FIXED, INT, webhook)
#define WEBHOOK_KEY_TABLE(T)                                                                                 \
    T(webhook_key_row, "webhook_keys", WEBHOOK_KEY_COLUMNS, RETENTION("with the webhook"))

/* Idempotency of creates other than jobs (client, key, webhook). */
#define CREATE_COLUMNS(X, row)                                                                               \
    X(row, KEY, TEXT, scope)                                                                                 \
    X(row, KEY, TEXT, name)                                                                                  \
    X(row, FIXED, BLOB, fingerprint)                                                                         \
    X(row, FIXED, BLOB, uuid)                                                                                \
    X(row, FIXED, INT, created_ms)
#define CREATE_TABLE(T) T(create_row, "creates", CREATE_COLUMNS, RETENTION("jobs.retention_seconds"))

#define JOB_COLUMNS(X, row)                                                                                  \
    X(row, KEY, INT, id, IS_ID)                                                                              \
    X(row, FIXED, INT, low)                                                                                  \
    X(row, FIXED, INT, client)                                                                               \
    X(row, FIXED, INT, type, RANGE(0, JOB_TYPE_COUNT - 1))                                                   \
    X(row, FIXED, INT, kind)                                                                                 \
    X(row, FIXED, INT, priority, RANGE(0, 9))                                                                \
    X(row, FIXED, INT, created_ms)                                                                           \
    X(row, FIXED, INT, execution_ms) /* 0: instant */                                                        \
    X(row, FIXED, INT, seed)                                                                                 \
    X(row, FIXED, INT, duration_ms) /* -1: the definition is missing (AJ-23) */                              \
    X(row, FIXED, INT, should_fail)                                                                          \
    X(row, FIXED, INT, payload_size)                                                                         \
    X(row, FIXED, INT, max_runtime_ms)                                                                       \
    X(row, FIXED, INT, max_retries)                                                                          \
    X(row, FIXED, TEXT, queue)                                                                               \
    X(row, FIXED, TEXT_OR_NULL, callback, PERSONAL)                                                          \
    X(row, FIXED, TEXT_OR_NULL, idem_key)                                                                    \
    X(row, FIXED, BLOB_OR_NULL, idem_fingerprint)                                                            \
    X(row, FIXED, TEXT_OR_NULL, payload, PERSONAL)                                                           \
    X(row, FIXED, TEXT_OR_NULL, traceparent)                                                                 \
    X(row, FIXED, INT,                                                                                       \
      queue_ttl_ms) /* unclaimed for so long it expires; 0: as jobs.queue_ttl_seconds says */                \
    X(row, FIXED, INT, retry, RANGE(0, JOB_RETRY_COUNT - 1)) /* enum job_retry */                            \
    X(row, FIXED, TEXT_OR_NULL, kind_name) /* the caller's name for the work; absent: none */
#define JOB_TABLE(T)                                                                                         \
    T(job_row, "jobs", JOB_COLUMNS,                                                                          \
      RETENTION("jobs.retention_seconds after the end, or less in a queue that says so"), GROWS,             \
      INDEXES({"client", "client,id", IN_POSTGRES, .only = "id>0"},                                          \
              {"key", "client,idem_key", IN_POSTGRES, true, "idem_key IS NOT NULL"}),                        \
      LISTINGS({LIST_ALL, LIST_ALL, "jobs of a client"},                                                     \
               {1 + JOB_SUCCEEDED, JOB_STATE_COUNT, "ended jobs of a client, by state"},                     \
               {LIST_LATE, LIST_LATE, "jobs past retention that had something to deliver"},                  \
               {LIST_EARLY, LIST_EARLY_SLOTS, "jobs of queues with a retention of their own"}))

/* Written in the transaction that finishes a job: outcome and report. Deleted again by a retry. */
#define END_COLUMNS(X, row)                                                                                  \
    X(row, KEY, INT, id)                                                                                     \
    X(row, FIXED, INT, client)                                                                               \
    X(row, FIXED, INT, kind)                                                                                 \
    X(row, FIXED, INT, state, STATES(JOB_SUCCEEDED, JOB_STATE_COUNT - 1))                                    \
    X(row, FIXED, INT, attempt)                                                                              \
    X(row, FIXED, INT, token)                                                                                \
    X(row, FIXED, INT, started_ms) /* 0: never started */                                                    \
    X(row, FIXED, INT, finished_ms)                                                                          \
    X(row, FIXED, INT, last_us) /* time of the last event */                                                 \
    X(row, FIXED, INT, seq)     /* number of the last event */                                               \
    X(row, FIXED, TEXT_OR_NULL, result, PERSONAL)                                                            \
    X(row, FIXED, TEXT_OR_NULL, error, PERSONAL)                                                             \
    X(row, FIXED, BLOB, refs, LOG_POSITIONS)
#define END_TABLE(T)                                                                                         \
    T(end_row, "ends", END_COLUMNS, RETENTION("with the job"), GROWS,                                        \
      INDEXES({"client", "client,state,id", IN_POSTGRES, .only = "id>0"}))

/* The report of an attempt that was retried. */
#define ARCHIVE_COLUMNS(X, row)                                                                              \
    X(row, KEY, INT, job)                                                                                    \
    X(row, KEY, INT, attempt)                                                                                \
    X(row, FIXED, INT, started_ms)                                                                           \
    X(row, FIXED, INT, finished_ms)                                                                          \
    X(row, FIXED, TEXT_OR_NULL, result, PERSONAL)                                                            \
    X(row, FIXED, TEXT_OR_NULL, error, PERSONAL)
#define ARCHIVE_TABLE(T) T(archive_row, "archives", ARCHIVE_COLUMNS, RETENTION("with the job"))

/* Numbers of owners are below it. */
enum { TASK_OWNERS_MAX = 32 };

/* Live work. Gone when it ends. */
#define TASK_COLUMNS(X, row)                                                                                 \
    X(row, KEY, INT, id, IDS("id & 576460752303423487", "target=0"))                                         \
    X(row, FIXED, INT, low)                                                                                  \
    X(row, FIXED, INT, client)                                                                               \
    X(row, FIXED, INT, owner, RANGE(0, TASK_OWNERS_MAX - 1)) /* its number (kernel/task_owner.h) */          \
    X(row, FIXED, INT, step)                                 /* of a step: its index in the run */           \
    X(row, FIXED, INT, kind)                                 /* of a job */                                  \
    X(row, FIXED, INT, priority, RANGE(0, 9))                                                                \
    X(row, FIXED, INT, created_ms)                                                                           \
    X(row, FIXED, INT, max_runtime_ms)                                                                       \
    X(row, FIXED, INT, max_retries)                                                                          \
    X(row, FIXED, INT, subject) /* what it is about: a stream's job, the run of a step; 0: itself */         \
    X(row, FIXED, INT, target)  /* the receiver whose slots limit the task (store/receivers.h); 0: none */   \
    X(row, FIXED, TEXT, queue)                                                                               \
    X(row, CHANGING, INT, state, STATES(TASK_WAITING, TASK_RUNNING)) /* enum task_phase */                   \
    X(row, CHANGING, INT, attempt)                                                                           \
    X(row, CHANGING, INT, token)      /* fencing: grows at every claim */                                    \
    X(row, CHANGING, INT, lease_ms)   /* 0: no lease */                                                      \
    X(row, CHANGING, INT, due_ms)     /* not claimable before */                                             \
    X(row, CHANGING, INT, started_ms) /* of this attempt; 0: not started */                                  \
    X(row, CHANGING, INT, last_us)    /* of a job: time of its last event */                                 \
    X(row, CHANGING, INT, done)       /* of a stream: so many of its deliveries */                           \
    X(row, CHANGING, TEXT_OR_NULL, worker)                                                                   \
    X(row, CHANGING, BLOB, refs, LOG_POSITIONS) /* a job's events in the log; a stream's deliveries */       \
    X(row, CHANGING, INT, queue_ttl_ms)         /* of its job; never changes */                              \
    X(row, CHANGING, INT, expire_ms) /* steady time: expires unless it was claimed before; 0: never */       \
    X(row, CHANGING, INT, retry, RANGE(0, JOB_RETRY_COUNT - 1)) /* of its job; never changes */              \
    X(row, CHANGING, TEXT_OR_NULL, progress,                                                                 \
      PERSONAL) /* of a running job, JSON, as its worker told it last; absent: it did not */                 \
    X(row, CHANGING, INT, job_state,                                                                         \
      RANGE(0, JOB_NO_STATE))                        /* of its job; only jobs/job_move.c writes it */        \
    X(row, CHANGING, INT, cancel_asked, RANGE(0, 1)) /* its worker hears so with its next heartbeat */
/* No index names state, lease_ms, worker or refs: a start and a heartbeat change no index. The indexes that
 * say that ids are above 0, as all are, serve the statements that say so too, and no others. */
#define TASK_TABLE(T)                                                                                        \
    T(task_row, "tasks", TASK_COLUMNS, RETENTION("until it ends"),                                           \
      HOT(60), /* What the live queue would compute of the row (store/live.h). */                            \
      POSTGRES_COLUMNS("phase smallint NOT NULL,place bigint NOT NULL"),                                     \
      INDEXES(                                                                                               \
          {"ready", "queue,priority DESC,place", IN_POSTGRES, .only = "phase=1"},                            \
          {"ready_client", "client,queue,priority DESC,place", IN_POSTGRES, .only = "phase>0 AND phase<2"},  \
          {"client", "client,id", IN_POSTGRES, .only = "id>0"},                                              \
          {"subject", "subject", IN_POSTGRES, .only = "subject<>0"},                                         \
          {"due", "due_ms", IN_POSTGRES, .only = "phase=0"}, {"held", "id", IN_POSTGRES, .only = "phase=2"}, \
          {"expire", "expire_ms", IN_POSTGRES, .only = "phase=1 AND expire_ms>0"},                           \
          {"target", "target,phase,place", IN_POSTGRES, .only = "target<>0 AND phase>1"}))

/* Counters kept in the transaction: no statistic scans a table. */
#define STATS_COLUMNS(X, row)                                                                                \
    X(row, KEY, INT, client)                                                                                 \
    X(row, CHANGING, BLOB, counts) /* struct client_counts, little endian */
#define STATS_TABLE(T) T(stats_row, "client_stats", STATS_COLUMNS, RETENTION("with the client"), HOT(50))

/* Events whose log chunk was purged while their job lives on. */
#define KEPT_COLUMNS(X, row)                                                                                 \
    X(row, KEY, INT, job)                                                                                    \
    X(row, KEY, INT, seq)                                                                                    \
    X(row, FIXED, BLOB, event)
#define KEPT_TABLE(T) T(kept_row, "kept", KEPT_COLUMNS, RETENTION("with the job"))

/* One event on its way to one receiver. Written with the event, changed at the end of each attempt. */
#define DELIVERY_COLUMNS(X, row)                                                                             \
    X(row, KEY, INT, id, IS_ID)                                                                              \
    X(row, FIXED, INT, low)                                                                                  \
    X(row, FIXED, INT, client)                                                                               \
    X(row, FIXED, INT, webhook) /* 0: the callback of the job */                                             \
    X(row, FIXED, INT, job)     /* 0: of no job */                                                           \
    X(row, FIXED, INT,                                                                                       \
      event) /* its number in the job; of no job: the webhook that was disabled, 0: a test */                \
    X(row, FIXED, INT, created_ms)                                                                           \
    X(row, CHANGING, INT, state, STATES(0, DELIVERY_STATE_COUNT - 1)) /* enum delivery_state */              \
    X(row, CHANGING, BLOB_OR_NULL, attempts)                          /* lifecycle/attempts.h */
#define DELIVERY_TABLE(T)                                                                                    \
    T(delivery_row, "deliveries", DELIVERY_COLUMNS,                                                          \
      RETENTION("with the job; of no job: jobs.retention_seconds"), GROWS,                                   \
      LISTINGS({LIST_DELIVERIES, LIST_DELIVERIES, "of a webhook, or of the callback of a job"},              \
               {LIST_OF_JOB, LIST_OF_JOB, "of a job to webhooks"}))

/* How much of its limits.requests_per_day a client has used: its last day with a request. */
#define REQUEST_DAY_COLUMNS(X, row)                                                                          \
    X(row, KEY, INT, client)                                                                                 \
    X(row, CHANGING, INT, day) /* since 1970 */                                                              \
    X(row, CHANGING, INT, requests)
#define REQUEST_DAY_TABLE(T)                                                                                 \
    T(request_day_row, "request_days", REQUEST_DAY_COLUMNS, RETENTION("for good"), HOT(50))

/* A job that an application asks for in a transaction of its own (jobs/inbox.h). Numbers: -1 is not given. */
#define INBOX_COLUMNS(X, row)                                                                                \
    X(row, KEY, INT, failed_ms) /* 0: it waits; else it was refused then, and stands behind all that wait */ \
    X(row, KEY, INT, id)                                                                                     \
    X(row, FIXED, INT, created_ms)                                                                           \
    X(row, FIXED, INT, execution_ms) /* 0: instant */                                                        \
    X(row, FIXED, INT, priority)                                                                             \
    X(row, FIXED, INT, max_runtime_ms)                                                                       \
    X(row, FIXED, INT, max_retries)                                                                          \
    X(row, FIXED, TEXT, client) /* client_id */                                                              \
    X(row, FIXED, TEXT_OR_NULL, type)                                                                        \
    X(row, FIXED, TEXT_OR_NULL, work_kind)                                                                   \
    X(row, FIXED, TEXT_OR_NULL, queue)                                                                       \
    X(row, FIXED, TEXT_OR_NULL, callback, PERSONAL)                                                          \
    X(row, FIXED, TEXT_OR_NULL, payload, PERSONAL)                                                           \
    X(row, FIXED, TEXT_OR_NULL, idempotency_key)                                                             \
    X(row, FIXED, TEXT_OR_NULL, error, PERSONAL) /* why it was refused */                                    \
    X(row, CHANGING, TEXT_OR_NULL, kind)                                                                     \
    X(row, CHANGING, TEXT_OR_NULL, retry)
#define INBOX_TABLE(T)                                                                                       \
    T(inbox_row, "weir_inbox", INBOX_COLUMNS, RETENTION("until it is a job; one that was refused: for good"))

#define JOB_TABLES(T)                                                                                        \
    WEBHOOK_TABLE(T)                                                                                         \
    WEBHOOK_KEY_TABLE(T)                                                                                     \
    CREATE_TABLE(T)                                                                                          \
    JOB_TABLE(T)                                                                                             \
    END_TABLE(T)                                                                                             \
    ARCHIVE_TABLE(T)                                                                                         \
    TASK_TABLE(T)                                                                                            \
    STATS_TABLE(T)                                                                                           \
    KEPT_TABLE(T)                                                                                            \
    DELIVERY_TABLE(T)                                                                                        \
    REQUEST_DAY_TABLE(T)                                                                                     \
    INBOX_TABLE(T)

#endif
