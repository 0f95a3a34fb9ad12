/* api/engine/signal_limits.h - how many signals a run and a tenant get in a minute (seed 003 section 6.5): a
 * storm of one neither fills the record nor holds up others. A refused one leaves no record and is counted.
 *
 * A run's count is of the sender's tenant: who sends to runs of others takes nothing from their owners.
 * Minutes begin with the first signal of a run or tenant. Bounded: SIGNAL_LIMITS_MAX names; one more, and all
 * begin anew. Each node counts for itself. Threads: any; one lock. */
#ifndef WEIR_API_ENGINE_SIGNAL_LIMITS_H
#define WEIR_API_ENGINE_SIGNAL_LIMITS_H

#include "base/err.h"
#include "base/str.h"
#include "config/settings.h"

enum { SIGNAL_LIMITS_MAX = 100000 };

struct signal_limits;

struct signal_limits *signal_limits_new(const struct settings *s);
struct signal_limits *signal_limits_free(struct signal_limits *l); /* NULL is fine; always returns NULL */
/* One signal. REQUEST_RATE_LIMITED with the seconds to wait; then it counts for neither. */
MUST_CHECK enum err_code signal_limits_take(struct signal_limits *l, struct str tenant, struct str run,
                                            int64_t now_ms, struct err *err);

#endif
