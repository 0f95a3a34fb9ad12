/* fields/operator_fields.h - what operators are shown of clients: contracts/openapi/ops.yaml. */
#ifndef WEIR_FIELDS_OPERATOR_FIELDS_H
#define WEIR_FIELDS_OPERATOR_FIELDS_H

#include "fields/fields.h"

/* f: struct client_facts. */
#define CLIENT_FIELDS(X)                                                                                     \
    X(UUID, client_id, f->client.uuid)                                                                       \
    X(WORD, state, client_state_text((enum client_state)f->state.state))                                     \
    X(TIME, created_at, f->client.created_ms)                                                                \
    X(TIME_OR_NULL, changed_at, f->state.changed_ms)                                                         \
    X(TIME_OR_NULL, last_seen_at, f->seen_ms)                                                                \
    X(INT, keys, f->keys)                                                                                    \
    X(INT, active_jobs, counts_unfinished(&f->counts))                                                       \
    X(INT, queued_jobs, f->counts.by_state[JOB_QUEUED])
struct client_fields {
    CLIENT_FIELDS(MEMBER_NAME)
};

/* a: struct operator_action_row. */
#define ACTION_FIELDS(X)                                                                                     \
    X(ID, action_id, -a->back, (uint64_t)a->low)                                                             \
    X(TIME, at, a->at_ms)                                                                                    \
    X(TEXT, actor, a->actor)                                                                                 \
    X(WORD, action, action_of(a))                                                                            \
    X(UUID, client_id, a->client)                                                                            \
    X(INT, changed, a->changed)

#endif
