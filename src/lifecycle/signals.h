/* lifecycle/signals.h - every signal an operator can send to a run, who may, and what becomes of a decision
 * about one. The table of roles is data: nothing else says who may do what (seed 003 sections 1.1 and 4.2).
 *
 *   a decision:  ACCEPTED   REJECTED   REVISION_REQUIRED ─approve─► ACCEPTED
 *                                                        └─reject──► REJECTED */
#ifndef WEIR_LIFECYCLE_SIGNALS_H
#define WEIR_LIFECYCLE_SIGNALS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* X(name, least role that may, destructive, schema under contracts/schemas/signal) */
#define SIGNAL_TYPES(X)                                                                                      \
    X(PAUSE, OPERATOR, false, "Pause")                                                                       \
    X(RESUME, OPERATOR, false, "Resume")                                                                     \
    X(CANCEL, OPERATOR, false, "Cancel")                                                                     \
    X(RETRY_STEP, ENGINEER, false, "RetryStep")                                                              \
    X(RETRY_RUN, ENGINEER, false, "RetryRun")                                                                \
    X(UPDATE_PARAMS, ADMIN, true, "UpdateParams")                                                            \
    X(INJECT_OVERRIDE, ADMIN, true, "InjectOverride")                                                        \
    X(ESCALATE_ALERT, SYSTEM, false, "EscalateAlert")                                                        \
    X(SKIP_STEP, ENGINEER, false, "SkipStep")                                                                \
    X(UPDATE_TARGET, ADMIN, true, "UpdateTarget")                                                            \
    X(EMERGENCY_STOP, ADMIN, true, "EmergencyStop")

#define X(name, role, destructive, schema) SIGNAL_##name,
enum signal_type { SIGNAL_TYPES(X) SIGNAL_TYPE_COUNT };
#undef X

/* From the least permissive to the most; SYSTEM stands apart: it alone may escalate. */
#define SIGNAL_ROLES(X)                                                                                      \
    X(SYSTEM, "System")                                                                                      \
    X(OPERATOR, "Operator")                                                                                  \
    X(ENGINEER, "Engineer")                                                                                  \
    X(ADMIN, "Admin")

#define X(id, name) SIGNAL_ROLE_##id,
enum signal_role { SIGNAL_ROLES(X) SIGNAL_ROLE_COUNT };
#undef X

#define SIGNAL_DECISIONS(X) X(ACCEPTED) X(REJECTED) X(REVISION_REQUIRED)
#define X(name)             DECISION_##name,
enum signal_decision { SIGNAL_DECISIONS(X) SIGNAL_DECISION_COUNT };
#undef X

const char *signal_type_text(enum signal_type t);
bool signal_type_of(struct str name, enum signal_type *ret_type);
bool signal_is_destructive(enum signal_type t);
const char *signal_schema(enum signal_type t); /* "Pause": contracts/schemas/signal/Pause.v1.json */

const char *signal_role_text(enum signal_role r);
bool signal_role_of(struct str name, enum signal_role *ret_role); /* false: none that matters for signals */
bool signal_role_may(enum signal_role r, enum signal_type t);

const char *signal_decision_text(enum signal_decision d);
/* The one way a decision changes: a person approves or rejects it. False: it was settled before. */
bool signal_decision_settle(enum signal_decision *d, bool approve);

#endif
