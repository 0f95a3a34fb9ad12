/* engine/run_timers.h - the timers of runs (kernel/timer_kind.h). */
#ifndef WEIR_ENGINE_RUN_TIMERS_H
#define WEIR_ENGINE_RUN_TIMERS_H

#include "kernel/timer_kind.h"

/* The time of grace of a run that is being stopped is over: what still runs is closed. */
extern const struct timer_kind run_grace_timer;

#endif
