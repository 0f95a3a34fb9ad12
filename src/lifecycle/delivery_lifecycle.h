/* lifecycle/delivery_lifecycle.h - every state and move of a delivery, and of the stream it stands in.
 *
 * A delivery is one event on its way to one receiver:
 *
 *   PENDING ─delivered─► DELIVERED         PENDING ─given up─► EXHAUSTED
 *      ▲──────────────── redelivered on request ─────────────────┘  (also from DELIVERED)
 *
 * A stream is all deliveries of one job to one receiver, in order; it is what is claimed and sent:
 *
 *   IDLE ─something to send─► READY ─claim─► CLAIMED ─start─► SENDING ─answered─► READY or IDLE, or gone
 *                               ▲──lease expires──┘  └─► READY (worker lost: a failed attempt)
 *
 * A stream's states are phases of the live queue and nothing else; it emits no events. */
#ifndef WEIR_LIFECYCLE_DELIVERY_LIFECYCLE_H
#define WEIR_LIFECYCLE_DELIVERY_LIFECYCLE_H

#include "lifecycle/job_lifecycle.h"

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

/* X(name, phase of its task in the live queue); numbered like the live states of a job */
#define STREAM_STATES(X)                                                                                     \
    X(IDLE, WAITING)                                                                                         \
    X(READY, READY)                                                                                          \
    X(CLAIMED, LEASED)                                                                                       \
    X(SENDING, RUNNING)

#define X(name, phase) STREAM_##name,
enum stream_state { STREAM_STATES(X) STREAM_STATE_COUNT };
#undef X

enum stream_trigger {
    STREAM_ON_WORK, /* something to send */
    STREAM_ON_CLAIM,
    STREAM_ON_START,
    STREAM_ON_RETRY,   /* the head failed, or another one follows it */
    STREAM_ON_DRAINED, /* nothing left, and the job may still say more */
    STREAM_ON_RETURN,  /* given back, or its lease ended before it was started */
};

/* Why a webhook is disabled. X(name, wire name) */
#define WEBHOOK_FAULTS(X)                                                                                    \
    X(GONE, "gone")       /* it answered 410 */                                                              \
    X(FAILING, "failing") /* it has only failed for webhooks.disable_after_seconds */

#define X(name, wire) WEBHOOK_##name,
enum webhook_fault { WEBHOOK_FAULTS(X) WEBHOOK_FAULT_COUNT };
#undef X

const char *webhook_fault_text(enum webhook_fault f);

/* What a webhook hears of that is no event of a job. X(name, wire name) */
#define WEBHOOK_EVENTS(X)                                                                                    \
    X(TEST, "webhook.test")         /* to itself, on request */                                              \
    X(DISABLED, "webhook.disabled") /* another webhook of the client was */

#define X(name, wire) WEBHOOK_EVENT_##name,
enum webhook_event { WEBHOOK_EVENTS(X) WEBHOOK_EVENT_COUNT };
#undef X

const char *webhook_event_text(enum webhook_event e);

bool stream_move(enum stream_state from, enum stream_trigger on, enum stream_state *ret_to);
enum task_phase stream_state_phase(enum stream_state s);

#endif
