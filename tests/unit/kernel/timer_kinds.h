/* unit/kernel/timer_kinds.h - the kinds of timers, as core has them from its contracts. */
#ifndef WEIR_TESTS_TIMER_KINDS_H
#define WEIR_TESTS_TIMER_KINDS_H

#include "engine/run_timers.h"

static const struct timer_kind *const timer_kinds[] = {
    &run_grace_timer,
};

#endif
