/* lifecycle/client_lifecycle.h - every state and move of a client of the Jobs API, and what an operator may
 * do to one.
 *
 *   register ─► ACTIVE ─suspend─► SUSPENDED
 *                 │  ▲──resume──────┘  │
 *                 └────────delete──────┴──► DELETED
 *
 * A suspended client is refused with every key, and no work of its jobs is handed out. A deleted one has no
 * keys, secrets and webhooks any more; the reports of its jobs stay until their retention is over. */
#ifndef WEIR_LIFECYCLE_CLIENT_LIFECYCLE_H
#define WEIR_LIFECYCLE_CLIENT_LIFECYCLE_H

#include <stdbool.h>

#include "base/str.h"

/* X(name, wire name) */
#define CLIENT_STATES(X)                                                                                     \
    X(ACTIVE, "active")                                                                                      \
    X(SUSPENDED, "suspended")                                                                                \
    X(DELETED, "deleted")

#define X(name, wire) CLIENT_##name,
enum client_state { CLIENT_STATES(X) CLIENT_STATE_COUNT };
#undef X

/* An operator's actions on a client; stored by number, so new ones go to the end. X(name, wire name) */
#define OPERATOR_ACTIONS(X)                                                                                  \
    X(SUSPEND, "suspend")                                                                                    \
    X(RESUME, "resume")                                                                                      \
    X(PURGE_JOBS, "purge-jobs") /* cancels what is unfinished; no move */                                    \
    X(DELETE, "delete")

#define X(name, wire) OPERATOR_##name,
enum operator_action { OPERATOR_ACTIONS(X) OPERATOR_ACTION_COUNT };
#undef X

/* False: the lifecycle has no such move. */
bool client_move(enum client_state from, enum operator_action on, enum client_state *ret_to);
const char *client_state_text(enum client_state s);
bool client_state_parse(struct str text, enum client_state *ret_state);
const char *operator_action_text(enum operator_action a);

#endif
