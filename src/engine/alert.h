/* engine/alert.h - alerts: rows that are written with what they are about, and never again. */
#ifndef WEIR_ENGINE_ALERT_H
#define WEIR_ENGINE_ALERT_H

#include "kernel/unit.h"

/* X(name on the wire) */
#define ALERT_SEVERITIES(X) X(INFO) X(WARNING) X(CRITICAL) X(P1)
/* X(id, name on the wire) */
#define ALERT_CATEGORIES(X)                                                                                  \
    X(TRANSITION, "transition")                                                                              \
    X(DESTRUCTIVE_SIGNAL, "destructive_signal")                                                              \
    X(SECURITY, "security")                                                                                  \
    X(ESCALATION, "escalation")

#define X(name) SEVERITY_##name,
enum alert_severity { ALERT_SEVERITIES(X) SEVERITY_COUNT };
#undef X
#define X(id, name) ALERT_##id,
enum alert_category { ALERT_CATEGORIES(X) ALERT_CATEGORY_COUNT };
#undef X

const char *alert_severity_text(enum alert_severity s);
bool alert_severity_of(struct str name, enum alert_severity *ret);
const char *alert_category_text(enum alert_category c);

/* A copy of `what` with id, tenant, run and time of its own, listed for the tenant and for the run. */
void alert_raise(struct unit *u, const struct run_row *run, const struct alert_row *what);

#endif
