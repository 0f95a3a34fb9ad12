/* core/timer_kinds.h - the kinds of timers, given to the kernel when it is made. A new kind is one line. */
#ifndef WEIR_CORE_TIMER_KINDS_H
#define WEIR_CORE_TIMER_KINDS_H

#include "engine/run_timers.h"

static const struct timer_kind *const timer_kinds[] = {
    &run_grace_timer,
};

#endif
