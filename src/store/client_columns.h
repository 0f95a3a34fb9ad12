/* store/client_columns.h - columns of the tables about clients, their keys and their operators; a part of
 * store/rows.h. */
#ifndef WEIR_STORE_CLIENT_COLUMNS_H
#define WEIR_STORE_CLIENT_COLUMNS_H

/* A client of the Jobs API. Its row never changes; keys, secrets and state live apart. */
#define CLIENT_COLUMNS(INT, TEXT, BLOB)                                                                      \
    BLOB(uuid) /* client_id, v4 */                                                                           \
    INT(num)   /* small number used in every other row */                                                    \
    INT(created_ms)

/* What an operator made of a client. Absent: it is active. */
#define CLIENT_STATE_COLUMNS(INT, TEXT, BLOB)                                                                \
    INT(client)                                                                                              \
    INT(state) /* enum client_state */                                                                       \
    INT(changed_ms)

/* Which client has which number, in the order of their creation; those that never had a key apart. */
#define CLIENT_NUMBER_COLUMNS(INT, TEXT, BLOB)                                                               \
    INT(keyless) /* 0 or 1 */                                                                                \
    INT(num)                                                                                                 \
    BLOB(uuid)

/* What an operator did to a client, newest first. */
#define OPERATOR_ACTION_COLUMNS(INT, TEXT, BLOB)                                                             \
    INT(part) /* 0: a page of them begins as all do */                                                       \
    INT(back) /* the id, negative */                                                                         \
    INT(low)                                                                                                 \
    INT(at_ms)                                                                                               \
    INT(action)  /* enum operator_action */                                                                  \
    INT(changed) /* jobs that were canceled, keys and webhooks that were removed */                          \
    BLOB(client) /* client_id */                                                                             \
    TEXT(actor)

/* What a client has set for one of its queues. Absent: nothing. */
#define QUEUE_COLUMNS(INT, TEXT, BLOB)                                                                       \
    INT(client)                                                                                              \
    TEXT(queue)                                                                                              \
    INT(paused) /* 1: no task of the client in this queue is handed out */                                   \
    INT(changed_ms)                                                                                          \
    INT(retry) /* enum job_retry; -1: not set, as in the next one */                                         \
    INT(max_retries)                                                                                         \
    INT(queue_ttl_ms) /* 0: not set, as in the next one */                                                   \
    INT(retention_ms)

/* Attempts that ended lately, of all nodes of a shared store (api/queue_flows.h). */
#define QUEUE_FLOW_COLUMNS(INT, TEXT, BLOB)                                                                  \
    INT(client)                                                                                              \
    TEXT(queue)                                                                                              \
    INT(slot)    /* the newest that `counts` tells of */                                                     \
    BLOB(counts) /* struct flow_counts, little endian */

/* The signing secrets of a client's callbacks: the current one and, during rotation, the former. */
#define CLIENT_SECRET_COLUMNS(INT, TEXT, BLOB)                                                               \
    INT(client)                                                                                              \
    BLOB(secret)                                                                                             \
    BLOB(former)                                                                                             \
    INT(rotated_ms)

#define API_KEY_COLUMNS(INT, TEXT, BLOB)                                                                     \
    INT(id)                                                                                                  \
    INT(low)                                                                                                 \
    INT(client)                                                                                              \
    BLOB(client_uuid) /* client_id, so that auth is one read */                                              \
    BLOB(hash)        /* SHA-256 of the secret part */                                                       \
    INT(created_ms)                                                                                          \
    INT(expires_ms)                                                                                          \
    INT(revoked_ms) /* 0: it was not; else it is refused, whatever a node's clock says */                    \
    INT(scopes)     /* enum key_scope_bits; 0: all */                                                        \
    TEXT(queues)    /* that it is limited to (lifecycle/key_power.h); absent: none */                        \
    TEXT(name)      /* absent: it has none */                                                                \
    INT(ends_ms)    /* it was replaced and is refused from then on; 0: it was not */                         \
    INT(used_ms)    /* last use that was saved, at most one a minute (api/key_uses.h); 0: none */

/* The keys of a client. Absent: the client never had one. */
#define KEY_HEAD_COLUMNS(INT, TEXT, BLOB)                                                                    \
    INT(client)                                                                                              \
    INT(active)  /* the newest that is neither revoked nor replaced; 0: none */                              \
    BLOB(listed) /* ids, oldest first (lifecycle/key_list.h); absent: `active` */

#endif
