/* engine/signal_apply.h - what an accepted signal does to a run, and when the run's state forbids it
 * (seed 003 section 1.2, AS-07, AS-08, AS-14, AS-17, AS-25). */
#ifndef WEIR_ENGINE_SIGNAL_APPLY_H
#define WEIR_ENGINE_SIGNAL_APPLY_H

#include "engine/append.h"
#include "lifecycle/signals.h"

struct applied_signal {
    enum signal_type type;
    const struct json *payload;
    struct str new_run_id; /* of RETRY_RUN */
};

/* SIGNAL_INVALID_PAYLOAD: it names a step that the run does not have. *ret_step NULL: it names none. */
MUST_CHECK enum err_code signal_step(struct unit *u, const struct run_row *run,
                                     const struct applied_signal *s, struct run_step_row **ret_step,
                                     struct err *err);
/* The state's word on it. */
MUST_CHECK enum err_code signal_is_possible(const struct run_row *run, const struct run_step_row *step,
                                            const struct applied_signal *s, struct err *err);
/* Does it, in a run of ours. RETRY_RUN may fail (PLAN_NOT_FOUND cannot be). */
MUST_CHECK enum err_code signal_apply(struct unit *u, struct run_row *run, struct run_step_row *step,
                                      const struct applied_signal *s, struct err *err);
/* The part of it that is Weir's also in a run of an engine outside: the escalation. True: that was all. */
bool signal_apply_outside(struct unit *u, struct run_row *run, const struct applied_signal *s);

#endif
