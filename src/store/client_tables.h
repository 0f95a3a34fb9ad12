/* store/client_tables.h - tables of clients, their keys, their queues and their operators; a part of
 * store/rows.h. */
#ifndef WEIR_STORE_CLIENT_TABLES_H
#define WEIR_STORE_CLIENT_TABLES_H

#include "store/table.h"

/* A client of the Jobs API. Its row never changes; keys, secrets and state live apart. */
#define CLIENT_COLUMNS(X, row)                                                                               \
    X(row, KEY, BLOB, uuid) /* client_id, v4 */                                                              \
    X(row, FIXED, INT, num) /* small number used in every other row */                                       \
    X(row, FIXED, INT, created_ms)
#define CLIENT_TABLE(T)                                                                                      \
    T(client_row, "clients", CLIENT_COLUMNS,                                                                 \
      RETENTION("for good, or clients.keyless_ttl_seconds when it never had a key"),                         \
      INDEXES({"num", "num", IN_POSTGRES, true}))

/* What an operator made of a client. Absent: it is active. */
#define CLIENT_STATE_COLUMNS(X, row)                                                                         \
    X(row, KEY, INT, client)                                                                                 \
    X(row, CHANGING, INT, state, STATES(CLIENT_ACTIVE, CLIENT_STATE_COUNT - 1)) /* enum client_state */      \
    X(row, CHANGING, INT, changed_ms)
#define CLIENT_STATE_TABLE(T)                                                                                \
    T(client_state_row, "client_states", CLIENT_STATE_COLUMNS, RETENTION("for good"),                        \
      INDEXES({"suspended", "client", IN_POSTGRES, .only = "state=1"}))

/* Which client has which number, in the order of their creation; those that never had a key apart. */
#define CLIENT_NUMBER_COLUMNS(X, row)                                                                        \
    X(row, KEY, INT, keyless, RANGE(0, 1)) /* 0 or 1 */                                                      \
    X(row, KEY, INT, num)                                                                                    \
    X(row, FIXED, BLOB, uuid)
#define CLIENT_NUMBER_TABLE(T)                                                                               \
    T(client_number_row, "client_numbers", CLIENT_NUMBER_COLUMNS, RETENTION("with the client"))

/* What an operator did to a client, newest first. */
#define OPERATOR_ACTION_COLUMNS(X, row)                                                                      \
    X(row, KEY, INT, part)                     /* 0: a page of them begins as all do */                      \
    X(row, KEY, INT, back, IDS("-back", NULL)) /* the id, negative */                                        \
    X(row, FIXED, INT, low)                                                                                  \
    X(row, FIXED, INT, at_ms)                                                                                \
    X(row, FIXED, INT, action, RANGE(0, OPERATOR_ACTION_COUNT - 1)) /* enum operator_action */               \
    X(row, FIXED, INT, changed) /* jobs that were canceled, keys and webhooks that were removed */           \
    X(row, FIXED, BLOB, client) /* client_id */                                                              \
    X(row, FIXED, TEXT, actor, PERSONAL)
#define OPERATOR_ACTION_TABLE(T)                                                                             \
    T(operator_action_row, "operator_actions", OPERATOR_ACTION_COLUMNS, RETENTION("for good"))

/* What a client has set for one of its queues. Absent: nothing. */
#define QUEUE_COLUMNS(X, row)                                                                                \
    X(row, KEY, INT, client)                                                                                 \
    X(row, KEY, TEXT, queue)                                                                                 \
    X(row, CHANGING, INT, paused, RANGE(0, 1)) /* 1: no task of the client in this queue is handed out */    \
    X(row, CHANGING, INT, changed_ms)                                                                        \
    X(row, CHANGING, INT, retry,                                                                             \
      RANGE(-1, JOB_RETRY_COUNT - 1)) /* enum job_retry; -1: not set, as in the next one */                  \
    X(row, CHANGING, INT, max_retries)                                                                       \
    X(row, CHANGING, INT, queue_ttl_ms) /* 0: not set, as in the next one */                                 \
    X(row, CHANGING, INT, retention_ms)
#define QUEUE_TABLE(T)                                                                                       \
    T(queue_row, "queues", QUEUE_COLUMNS, RETENTION("until it sets nothing"),                                \
      INDEXES({"paused", "queue", IN_POSTGRES, .only = "paused=1"}))

/* Attempts that ended lately, of all nodes of a shared store (api/queue_flows.h). */
#define QUEUE_FLOW_COLUMNS(X, row)                                                                           \
    X(row, KEY, INT, client)                                                                                 \
    X(row, KEY, TEXT, queue)                                                                                 \
    X(row, CHANGING, INT, slot)    /* the newest that `counts` tells of */                                   \
    X(row, CHANGING, BLOB, counts) /* struct flow_counts, little endian */
#define QUEUE_FLOW_TABLE(T) T(queue_flow_row, "queue_flows", QUEUE_FLOW_COLUMNS, RETENTION("an hour or two"))

/* The signing secrets of a client's callbacks: the current one and, during rotation, the former. */
#define CLIENT_SECRET_COLUMNS(X, row)                                                                        \
    X(row, KEY, INT, client)                                                                                 \
    X(row, CHANGING, BLOB, secret)                                                                           \
    X(row, CHANGING, BLOB_OR_NULL, former)                                                                   \
    X(row, CHANGING, INT, rotated_ms)
#define CLIENT_SECRET_TABLE(T)                                                                               \
    T(client_secret_row, "client_secrets", CLIENT_SECRET_COLUMNS, RETENTION("until the client is deleted"))

#define API_KEY_COLUMNS(X, row)                                                                              \
    X(row, KEY, INT, id, IS_ID)                                                                              \
    X(row, FIXED, INT, low)                                                                                  \
    X(row, FIXED, INT, client)                                                                               \
    X(row, FIXED, BLOB, client_uuid) /* client_id, so that auth is one read */                               \
    X(row, FIXED, BLOB, hash)        /* SHA-256 of the secret part */                                        \
    X(row, FIXED, INT, created_ms)                                                                           \
    X(row, FIXED, INT, expires_ms)                                                                           \
    X(row, CHANGING, INT, revoked_ms) /* 0: it was not; else it is refused, whatever a node's clock says */  \
    X(row, CHANGING, INT, scopes)     /* enum key_scope_bits; 0: all */                                      \
    X(row, CHANGING, TEXT_OR_NULL, queues) /* that it is limited to (lifecycle/key_power.h); absent: none */ \
    X(row, CHANGING, TEXT_OR_NULL, name, PERSONAL) /* absent: it has none */                                 \
    X(row, CHANGING, INT, ends_ms) /* it was replaced and is refused from then on; 0: it was not */          \
    X(row, CHANGING, INT,                                                                                    \
      used_ms) /* last use that was saved, at most one a minute (api/key_uses.h); 0: none */
#define API_KEY_TABLE(T)                                                                                     \
    T(api_key_row, "api_keys", API_KEY_COLUMNS,                                                              \
      RETENTION("keys.revoked_retention_seconds after it was revoked or has expired"),                       \
      INDEXES({"client", "client", IN_BOTH}))

/* The keys of a client. Absent: the client never had one. */
#define KEY_HEAD_COLUMNS(X, row)                                                                             \
    X(row, KEY, INT, client)                                                                                 \
    X(row, CHANGING, INT, active)          /* the newest that is neither revoked nor replaced; 0: none */    \
    X(row, CHANGING, BLOB_OR_NULL, listed) /* ids, oldest first (lifecycle/key_list.h); absent: `active` */
#define KEY_HEAD_TABLE(T)                                                                                    \
    T(key_head_row, "key_heads", KEY_HEAD_COLUMNS, RETENTION("while the client has keys"))

#define CLIENT_TABLES(T)                                                                                     \
    CLIENT_TABLE(T)                                                                                          \
    CLIENT_STATE_TABLE(T)                                                                                    \
    CLIENT_NUMBER_TABLE(T)                                                                                   \
    OPERATOR_ACTION_TABLE(T)                                                                                 \
    QUEUE_TABLE(T)                                                                                           \
    QUEUE_FLOW_TABLE(T)                                                                                      \
    CLIENT_SECRET_TABLE(T)                                                                                   \
    API_KEY_TABLE(T)                                                                                         \
    KEY_HEAD_TABLE(T)

#endif
