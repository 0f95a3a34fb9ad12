/* core/core.h - the core process: HTTP API, commit loop, timers. The only process that touches the store. */
#ifndef WEIR_CORE_CORE_H
#define WEIR_CORE_CORE_H

#include "runtime/process_signals.h"

int core_main(const struct process_start *start);

#endif
