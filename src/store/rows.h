/* store/rows.h - every stored row, described once: the struct, the columns and their order come from one
 * list per table, so a backend handles a new table without new code.
 *
 * Columns stand in this order: key columns, then columns that never change, then the ones an UPDATE
 * writes. All numbers are int64, all texts and blobs are borrowed strs (absent = NULL).
 * To change a table: (1) add a numbered migration in store/migrations, (2) change the list here,
 * (3) extend the row's broken-rule check in store/verify.c. A test compares the migrated schema with
 * these lists.
 *
 * Layout F of the write path: `jobs` and `ends` are insert-only, `tasks` holds only what is alive, and
 * events are in the log (store/log.h), referenced from tasks.refs and ends.refs. */
#ifndef WEIR_STORE_ROWS_H
#define WEIR_STORE_ROWS_H

#include "store/client_columns.h"
#include "store/run_columns.h"
#include "store/table.h"

#define WEBHOOK_COLUMNS(INT, TEXT, BLOB)                                                                     \
    INT(id)                                                                                                  \
    INT(low)                                                                                                 \
    INT(client)                                                                                              \
    TEXT(url)                                                                                                \
    TEXT(events) /* sorted, comma-separated set of names */                                                  \
    INT(created_ms)                                                                                          \
    BLOB(secret)                                                                                             \
    INT(enabled)                                                                                             \
    BLOB(former)          /* secret before the last rotation, while both are live */                         \
    INT(rotated_ms)       /* 0: never */                                                                     \
    INT(failing_since_ms) /* first failure after the last success; 0: none */                                \
    INT(disabled_ms)      /* when it was last; 0: never */                                                   \
    INT(disabled_why)     /* enum webhook_fault */

/* Guards "same url and same set of events": one row per live webhook. */
#define WEBHOOK_KEY_COLUMNS(INT, TEXT, BLOB)                                                                 \
    INT(client)                                                                                              \
    BLOB(fingerprint)                                                                                        \
    INT(webhook)

/* Idempotency of creates other than jobs (client, key, webhook). */
#define CREATE_COLUMNS(INT, TEXT, BLOB)                                                                      \
    TEXT(scope)                                                                                              \
    TEXT(name)                                                                                               \
    BLOB(fingerprint)                                                                                        \
    BLOB(uuid)                                                                                               \
    INT(created_ms)

#define JOB_COLUMNS(INT, TEXT, BLOB)                                                                         \
    INT(id)                                                                                                  \
    INT(low)                                                                                                 \
    INT(client)                                                                                              \
    INT(type)                                                                                                \
    INT(kind)                                                                                                \
    INT(priority)                                                                                            \
    INT(created_ms)                                                                                          \
    INT(execution_ms) /* 0: instant */                                                                       \
    INT(seed)                                                                                                \
    INT(duration_ms) /* -1: the definition is missing (AJ-23) */                                             \
    INT(should_fail)                                                                                         \
    INT(payload_size)                                                                                        \
    INT(max_runtime_ms)                                                                                      \
    INT(max_retries)                                                                                         \
    TEXT(queue)                                                                                              \
    TEXT(callback)                                                                                           \
    TEXT(idem_key)                                                                                           \
    BLOB(idem_fingerprint)                                                                                   \
    TEXT(payload)                                                                                            \
    TEXT(traceparent)                                                                                        \
    INT(queue_ttl_ms) /* unclaimed for so long it expires; 0: as jobs.queue_ttl_seconds says */              \
    INT(retry)        /* enum job_retry */                                                                   \
    TEXT(kind_name)   /* the caller's name for the work; absent: none */

/* Written in the transaction that finishes a job: outcome and report. Deleted again by a retry. */
#define END_COLUMNS(INT, TEXT, BLOB)                                                                         \
    INT(id)                                                                                                  \
    INT(client)                                                                                              \
    INT(kind)                                                                                                \
    INT(state)                                                                                               \
    INT(attempt)                                                                                             \
    INT(token)                                                                                               \
    INT(started_ms) /* 0: never started */                                                                   \
    INT(finished_ms)                                                                                         \
    INT(last_us) /* time of the last event */                                                                \
    INT(seq)     /* number of the last event */                                                              \
    TEXT(result)                                                                                             \
    TEXT(error)                                                                                              \
    BLOB(refs)

/* The report of an attempt that was retried. */
#define ARCHIVE_COLUMNS(INT, TEXT, BLOB)                                                                     \
    INT(job)                                                                                                 \
    INT(attempt)                                                                                             \
    INT(started_ms)                                                                                          \
    INT(finished_ms)                                                                                         \
    TEXT(result)                                                                                             \
    TEXT(error)

/* Live work. Gone when it ends. */
#define TASK_COLUMNS(INT, TEXT, BLOB)                                                                        \
    INT(id)                                                                                                  \
    INT(low)                                                                                                 \
    INT(client)                                                                                              \
    INT(owner) /* enum task_owner_kind */                                                                    \
    INT(type)                                                                                                \
    INT(kind)                                                                                                \
    INT(priority)                                                                                            \
    INT(created_ms)                                                                                          \
    INT(max_runtime_ms)                                                                                      \
    INT(max_retries)                                                                                         \
    INT(subject) /* what it is about: the job of a stream of deliveries, the run of a step; 0: itself */     \
    INT(target)  /* whom it bothers: tasks of one target take turns (store/targets.h); 0: nobody */          \
    TEXT(queue)                                                                                              \
    INT(state) /* of the owner's lifecycle */                                                                \
    INT(attempt)                                                                                             \
    INT(token)      /* fencing: grows at every claim */                                                      \
    INT(lease_ms)   /* 0: no lease */                                                                        \
    INT(due_ms)     /* not claimable before */                                                               \
    INT(started_ms) /* of this attempt; 0: not started */                                                    \
    INT(last_us)                                                                                             \
    INT(seq)                                                                                                 \
    TEXT(worker)                                                                                             \
    BLOB(refs)        /* a job's events in the log; a stream's deliveries, `seq` of which are done */        \
    INT(queue_ttl_ms) /* of its job; never changes */                                                        \
    INT(expire_ms)    /* steady time: expires unless it was claimed before; 0: never */                      \
    INT(retry)        /* of its job; never changes */                                                        \
    TEXT(progress)    /* of a running job, JSON, as its worker told it last; absent: it did not */

/* Counters kept in the transaction: no statistic scans a table. */
#define STATS_COLUMNS(INT, TEXT, BLOB)                                                                       \
    INT(client)                                                                                              \
    BLOB(counts) /* struct client_counts, little endian */

/* Events whose log chunk was purged while their job lives on. */
#define KEPT_COLUMNS(INT, TEXT, BLOB)                                                                        \
    INT(job)                                                                                                 \
    INT(seq)                                                                                                 \
    BLOB(event)

/* One event on its way to one receiver. Written with the event, changed at the end of each attempt. */
#define DELIVERY_COLUMNS(INT, TEXT, BLOB)                                                                    \
    INT(id)                                                                                                  \
    INT(low)                                                                                                 \
    INT(client)                                                                                              \
    INT(webhook) /* 0: the callback of the job */                                                            \
    INT(job)     /* 0: of no job */                                                                          \
    INT(event)   /* its number in the job; of no job: the webhook that was disabled, 0: a test */            \
    INT(created_ms)                                                                                          \
    INT(state)     /* enum delivery_state */                                                                 \
    BLOB(attempts) /* lifecycle/attempts.h */

/* How much of its limits.requests_per_day a client has used: its last day with a request. */
#define REQUEST_DAY_COLUMNS(INT, TEXT, BLOB)                                                                 \
    INT(client)                                                                                              \
    INT(day) /* since 1970 */                                                                                \
    INT(requests)

/* A job that an application asks for in a transaction of its own (jobs/inbox.h). Numbers: -1 is not given. */
#define INBOX_COLUMNS(INT, TEXT, BLOB)                                                                       \
    INT(failed_ms) /* 0: it waits; else it was refused then, and stands behind all that wait */              \
    INT(id)                                                                                                  \
    INT(created_ms)                                                                                          \
    INT(execution_ms) /* 0: instant */                                                                       \
    INT(priority)                                                                                            \
    INT(max_runtime_ms)                                                                                      \
    INT(max_retries)                                                                                         \
    TEXT(client) /* client_id */                                                                             \
    TEXT(type)                                                                                               \
    TEXT(work_kind)                                                                                          \
    TEXT(queue)                                                                                              \
    TEXT(callback)                                                                                           \
    TEXT(payload)                                                                                            \
    TEXT(idempotency_key)                                                                                    \
    TEXT(error) /* why it was refused */                                                                     \
    TEXT(kind)                                                                                               \
    TEXT(retry)

/* X(struct name, SQL name, column list, key columns, fixed columns) */
#define STORE_TABLES(X)                                                                                      \
    X(client_row, "clients", CLIENT_COLUMNS, 1, 3)                                                           \
    X(client_state_row, "client_states", CLIENT_STATE_COLUMNS, 1, 1)                                         \
    X(client_number_row, "client_numbers", CLIENT_NUMBER_COLUMNS, 2, 3)                                      \
    X(client_secret_row, "client_secrets", CLIENT_SECRET_COLUMNS, 1, 1)                                      \
    X(api_key_row, "api_keys", API_KEY_COLUMNS, 1, 7)                                                        \
    X(key_head_row, "key_heads", KEY_HEAD_COLUMNS, 1, 1)                                                     \
    X(webhook_row, "webhooks", WEBHOOK_COLUMNS, 1, 6)                                                        \
    X(webhook_key_row, "webhook_keys", WEBHOOK_KEY_COLUMNS, 2, 3)                                            \
    X(create_row, "creates", CREATE_COLUMNS, 2, 5)                                                           \
    X(job_row, "jobs", JOB_COLUMNS, 1, 23)                                                                   \
    X(end_row, "ends", END_COLUMNS, 1, 13)                                                                   \
    X(archive_row, "archives", ARCHIVE_COLUMNS, 2, 6)                                                        \
    X(task_row, "tasks", TASK_COLUMNS, 1, 13)                                                                \
    X(stats_row, "client_stats", STATS_COLUMNS, 1, 1)                                                        \
    X(kept_row, "kept", KEPT_COLUMNS, 2, 3)                                                                  \
    X(delivery_row, "deliveries", DELIVERY_COLUMNS, 1, 7)                                                    \
    X(request_day_row, "request_days", REQUEST_DAY_COLUMNS, 1, 1)                                            \
    X(inbox_row, "weir_inbox", INBOX_COLUMNS, 2, 15)                                                         \
    X(queue_row, "queues", QUEUE_COLUMNS, 2, 2)                                                              \
    X(queue_flow_row, "queue_flows", QUEUE_FLOW_COLUMNS, 2, 2)                                               \
    X(operator_action_row, "operator_actions", OPERATOR_ACTION_COLUMNS, 2, 8)                                \
    RUN_TABLES(X)

/* Clients have smaller numbers. */
enum { TENANT_NUMBER_FIRST = 1 << 30 };

#define ROW_INT(name) int64_t name;
#define ROW_STR(name) struct str name;
#define X(row, sql, columns, keys, fixed)                                                                    \
    struct row {                                                                                             \
        columns(ROW_INT, ROW_STR, ROW_STR)                                                                   \
    };                                                                                                       \
    extern const struct table table_##row;
STORE_TABLES(X)
#undef X
#undef ROW_INT
#undef ROW_STR

#define X(row, sql, columns, keys, fixed) TABLE_NUMBER_##row,
enum table_number { STORE_TABLES(X) TABLE_COUNT };
#undef X

extern const struct table *const tables[TABLE_COUNT];

#endif
