/* kernel/timer_kind.h - a kind of timer: something is to happen to a subject at a time of the wall clock.
 *
 * A timer is a row of `timers`: subject, kind, due time. It is set and cancelled through the unit
 * (unit_timer_set), so with the change that it belongs to, or not at all, and survives restarts. It fires
 * once its time has passed on the clock that batches have (kernel/wall_guard.h), never earlier: the kernel
 * deletes the row and calls `fire`, a decider, which may set the timer again. Of one kind a subject has
 * one timer at most. On a shared store the lane with the duties fires the timers of all nodes.
 *
 * The schedule or backoff of a task is a timer, too, and the task's own: its due_ms. It stands in the row
 * that is written anyway and has an index of its own in memory (store/live.h): a job costs no row more.
 *
 * To add a kind: a descriptor where the subject is decided on, and a line in the list that the kernel is
 * given (kernel.h). */
#ifndef WEIR_KERNEL_TIMER_KIND_H
#define WEIR_KERNEL_TIMER_KIND_H

#include "kernel/unit.h"

struct timer_kind {
    int64_t number; /* in timers.kind; below TIMER_KINDS_MAX, for ever its own */
    const char *name;
    enum timer_owner owner_kind;
    /* Says what rows `fire` needs; called until nothing new is wanted (unit.h). May be NULL. */
    void (*load)(struct unit *u, int64_t owner);
    void (*fire)(struct unit *u, int64_t owner);
};

/* Sets it, or moves it. */
void unit_timer_set(struct unit *u, const struct timer_kind *kind, int64_t owner, int64_t due_ms);
void unit_timer_cancel(struct unit *u, const struct timer_kind *kind, int64_t owner);
/* When it is due; INT64_MAX: it is not set. */
int64_t unit_timer_due_ms(struct unit *u, const struct timer_kind *kind, int64_t owner);

#endif
