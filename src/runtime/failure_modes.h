/* runtime/failure_modes.h - the crash policy: every way to fail, its class, and what is told of it.
 *
 * One list. Each mode has its class, the word for how it is handled, what its supervisor does, and the
 * dimensions its event must carry. failure_MODE(component, ...) takes exactly those dimensions, so a missing
 * one does not compile; it writes one log line
 *   {"event":"weir.runtime.failure","mode":"...","component":"...","failure_class":"...", dimensions}
 * and counts. The line is an error for fatal, a warning for the others. Unbounded values (ids, reasons) stand
 * in the line only; counters know mode and class alone.
 *
 * Callers:   edges only (process mains, the gateway's loop, the commit loop's edge), like base/log.h.
 * Counters:  of this process, any thread. Root's page (base/heart.h) shows them to core's metrics.
 * To add one: a line in FAILURE_MODES and its FAILURE_DIMENSIONS_ID; docs/operations/topology.md follows by
 * tools/generate_docs.py. */
#ifndef WEIR_RUNTIME_FAILURE_MODES_H
#define WEIR_RUNTIME_FAILURE_MODES_H

#include <stdint.h>

#include "runtime/event_names.h"

/* Exactly three. X(id, wire) */
#define FAILURE_CLASSES(X)                                                                                   \
    X(FATAL, "fatal")             /* cannot get better by itself: crash and tell at once */                  \
    X(RECOVERABLE, "recoverable") /* safe to try again: a restart of one child, bounded tries */             \
    X(DEGRADED, "degraded")       /* reduced service: nothing is restarted */

/* What a supervisor does when a child of its ends like this. X(id, wire) */
#define FAILURE_ACTIONS(X)                                                                                   \
    X(STOP, "stop")       /* stop what was begun, carry it to the start of root: the program ends */         \
    X(RESTART, "restart") /* this child alone, within the intensity; then the supervisor ends */             \
    X(NONE, "none")       /* the worker lives on */                                                          \
    X(END, "end")         /* the supervisor ends; root counts one restart */

/* X(id, function, class, action, handling) in the order of seed 004, then our own.
 * The wire name of a mode is its function's name. */
#define FAILURE_MODES(X)                                                                                     \
    X(BOOT_CONFIG, boot_config_invalid, FATAL, STOP, "fail fast at the start with a typed error")            \
    X(ADAPTER_INIT, adapter_init_failed, FATAL, RESTART,                                                     \
      "no retry inside the process; an operator fixes it")                                                   \
    X(LISTENER, listener_disconnected, RECOVERABLE, RESTART, "connect again, backoff bounded and spread")    \
    X(OUTBOUND, outbound_failed, RECOVERABLE, RESTART, "bounded tries, same idempotency key")                \
    X(POISON, poison_message, DEGRADED, NONE, "item aside or dropped, told, queue goes on")                  \
    X(POLICY_TIMEOUT, policy_timeout, DEGRADED, NONE, "the configured fallback decides, marked for review")  \
    X(EXHAUSTED, restarts_exhausted, FATAL, END, "told to the domain's owner; an operator is needed")        \
    X(PROCESS_ENDED, process_ended, RECOVERABLE, RESTART, "start it again, backoff bounded and spread")      \
    X(PROCESS_HUNG, process_hung, RECOVERABLE, RESTART, "kill what does not beat, start it again")           \
    X(ACTOR_FAILED, actor_failed, RECOVERABLE, RESTART, "start the actor again alone, drop its message")

/* The dimensions besides component and failure_class. D(kind, name): TEXT const char *, INT int64_t. */
#define FAILURE_DIMENSIONS_BOOT_CONFIG(D)    D(TEXT, reason) D(TEXT, boot_stage)
#define FAILURE_DIMENSIONS_ADAPTER_INIT(D)   D(TEXT, adapter) D(TEXT, reason)
#define FAILURE_DIMENSIONS_LISTENER(D)       D(TEXT, instance_id) D(INT, attempt) D(INT, elapsed_ms)
#define FAILURE_DIMENSIONS_OUTBOUND(D)       D(INT, partition) D(INT, attempt) D(TEXT, provider_code)
#define FAILURE_DIMENSIONS_POISON(D)         D(TEXT, message_id) D(TEXT, reason) D(TEXT, disposition)
#define FAILURE_DIMENSIONS_POLICY_TIMEOUT(D) D(TEXT, policy_module) D(INT, timeout_ms) D(TEXT, fallback)
#define FAILURE_DIMENSIONS_EXHAUSTED(D)      D(INT, restart_count) D(INT, window_s) D(TEXT, domain)
#define FAILURE_DIMENSIONS_PROCESS_ENDED(D)  D(TEXT, domain) D(TEXT, reason) D(INT, uptime_ms)
#define FAILURE_DIMENSIONS_PROCESS_HUNG(D)   D(TEXT, domain) D(TEXT, loop) D(INT, silent_ms)
#define FAILURE_DIMENSIONS_ACTOR_FAILED(D)                                                                   \
    D(TEXT, domain) D(INT, partition) D(INT, restart_count) D(TEXT, reason)

#define X(id, wire) FAILURE_##id,
enum failure_class { FAILURE_CLASSES(X) FAILURE_CLASS_COUNT };
#undef X

#define X(id, wire) FAILURE_ACTION_##id,
enum failure_action { FAILURE_ACTIONS(X) FAILURE_ACTION_COUNT };
#undef X

#define X(id, function, class, action, handling) FAILURE_MODE_##id,
enum failure_mode { FAILURE_MODES(X) FAILURE_MODE_COUNT };
#undef X

/* Texts: NULL and "" are written as "none", so that no dimension is ever left out. */
#define FAILURE_PARAMETER_TEXT const char *
#define FAILURE_PARAMETER_INT  int64_t
#define D(kind, name)          , FAILURE_PARAMETER_##kind name
#define X(id, function, class, action, handling)                                                             \
    void failure_##function(const char *component FAILURE_DIMENSIONS_##id(D));
FAILURE_MODES(X)
#undef X
#undef D

struct failure_mode_info {
    const char *name; /* wire */
    enum failure_class failure_class;
    enum failure_action action;
    const char *handling;
    const char *dimensions; /* "component failure_class reason boot_stage" */
};

extern const struct failure_mode_info failure_modes[FAILURE_MODE_COUNT];
const char *failure_class_name(enum failure_class failure_class);
const char *failure_action_name(enum failure_action action);
uint64_t failure_count(enum failure_mode mode);     /* in this process since it began */
uint64_t failure_count_all(enum failure_mode mode); /* in all processes of this root since it began */

#endif
