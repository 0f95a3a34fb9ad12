/* kernel/kernel_internal.h - what the kernel's own files share. */
#ifndef WEIR_KERNEL_INTERNAL_H
#define WEIR_KERNEL_INTERNAL_H

#include "kernel/ghosts.h"
#include "kernel/unit.h"

/* The ghosts of the kernel this unit belongs to. */
struct ghosts *unit_ghosts(struct unit *u);

/* Decides every timer that has passed, at most `max`. Gives how many. */
size_t timers_decide(struct unit *u, size_t max);

#endif
