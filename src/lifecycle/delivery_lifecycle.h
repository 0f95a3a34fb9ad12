/* lifecycle/delivery_lifecycle.h - every state and move of a delivery.
 *
 * A delivery is one event on its way to one receiver:
 *
 *   PENDING ─delivered─► DELIVERED         PENDING ─given up─► EXHAUSTED
 *      ▲──────────────── redelivered on request ─────────────────┘  (also from DELIVERED)
 *
 * A stream is all deliveries of one job to one receiver, in order; it is a task (task_lifecycle.h), which is
 * claimed and sent, waits while it has nothing to send, and emits no events. */
#ifndef WEIR_LIFECYCLE_DELIVERY_LIFECYCLE_H
#define WEIR_LIFECYCLE_DELIVERY_LIFECYCLE_H

#include <stdbool.h>

#include "base/str.h"

/* X(name, wire name) */
#define DELIVERY_STATES(X)                                                                                   \
    X(PENDING, "pending")                                                                                    \
    X(DELIVERED, "delivered")                                                                                \
    X(EXHAUSTED, "exhausted")

#define X(name, wire) DELIVERY_##name,
enum delivery_state { DELIVERY_STATES(X) DELIVERY_STATE_COUNT };
#undef X

enum delivery_trigger { DELIVERY_ON_SUCCESS, DELIVERY_ON_GIVE_UP, DELIVERY_ON_REDELIVER };

/* False: the lifecycle has no such move. */
bool delivery_move(enum delivery_state from, enum delivery_trigger on, enum delivery_state *ret_to);
const char *delivery_state_text(enum delivery_state s);

/* Why a webhook is disabled. X(name, wire name) */
#define WEBHOOK_FAULTS(X)                                                                                    \
    X(GONE, "gone")       /* it answered 410 */                                                              \
    X(FAILING, "failing") /* it has only failed for webhooks.disable_after_seconds */

#define X(name, wire) WEBHOOK_##name,
enum webhook_fault { WEBHOOK_FAULTS(X) WEBHOOK_FAULT_COUNT };
#undef X

const char *webhook_fault_text(enum webhook_fault f);

/* Events for webhooks that are no events of a job. X(name, wire name) */
#define WEBHOOK_EVENTS(X)                                                                                    \
    X(TEST, "webhook.test")         /* to itself, on request */                                              \
    X(DISABLED, "webhook.disabled") /* another webhook of the client was */

#define X(name, wire) WEBHOOK_EVENT_##name,
enum webhook_event { WEBHOOK_EVENTS(X) WEBHOOK_EVENT_COUNT };
#undef X

const char *webhook_event_text(enum webhook_event e);

#endif
