/* api/engine/signal_limits.h - how many signals a minute takes (seed 003 section 6.5): a storm neither fills
 * the records nor holds up others.
 *
 * Two kinds of room. Signals that policy allows take from the run's and the tenant's; CANCEL and
 * EMERGENCY_STOP have room of their own there, so that a storm of other signals never keeps a run from being
 * stopped. Signals that policy refuses take from their actor's room and from what all refusals of the actor's
 * tenant share; so a refused actor, also one of another tenant, uses up nothing of the run's, and its records
 * are bounded.
 *
 * Only the decision tells which kind a signal is. Until then the table of roles is the guess: an expected
 * signal holds room of the run and the tenant, and a place among the actor's refusals if there is one; any
 * other holds a place among the refusals. A signal without room is REQUEST_RATE_LIMITED, leaves no record and
 * is counted: here, when the guess has none left; in the decider, when the decision is not as guessed.
 *
 * A run's room is of the sender's tenant. Minutes begin with the first signal. Bounded: SIGNAL_LIMITS_MAX
 * counters; beyond, those of past minutes go, and if that is not enough all begin anew. Each node counts for
 * itself. Threads: any; one lock. */
#ifndef WEIR_API_ENGINE_SIGNAL_LIMITS_H
#define WEIR_API_ENGINE_SIGNAL_LIMITS_H

#include "base/err.h"
#include "base/str.h"
#include "config/settings.h"
#include "engine/signal_commands.h"

enum { SIGNAL_LIMITS_MAX = 100000 };

struct signal_limits;

struct signal_sender {
    struct str tenant, actor, run;
    enum signal_type type;
    bool expected; /* the table of roles allows it */
};

struct signal_limits *signal_limits_new(const struct settings *s);
struct signal_limits *signal_limits_free(struct signal_limits *l); /* NULL is fine; always returns NULL */
/* Room for one signal, until it is settled. REQUEST_RATE_LIMITED: none, with the seconds to wait. */
MUST_CHECK enum err_code signal_limits_take(struct signal_limits *l, const struct signal_sender *s,
                                            int64_t now_ms, struct signal_room *ret, struct err *err);
/* The decision is made: gives back the room that it does not need. A signal that is never settled (its caller
 * went away) counts as if it were both. */
void signal_limits_settle(struct signal_limits *l, const struct signal_sender *s,
                          const struct signal_room *room, bool refused);
size_t signal_limits_count(struct signal_limits *l); /* counters in memory */

#endif
