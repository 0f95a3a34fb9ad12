/* lifecycle/task_lifecycle.h - every state and move of a task: work in the live queue, whoever owns it.
 *
 *   WAITING ─due─► READY ─claim─► LEASED ─start─► RUNNING
 *   READY ◄─return─ LEASED     READY ◄─retry─ RUNNING     WAITING ◄─drain─ RUNNING
 *
 * A task that is READY and not due yet backs off. A task that has ended has no row. The numbers are stored,
 * and the unfinished states of a job have the same ones. */
#ifndef WEIR_LIFECYCLE_TASK_LIFECYCLE_H
#define WEIR_LIFECYCLE_TASK_LIFECYCLE_H

#include <stdbool.h>

enum task_phase { TASK_WAITING, TASK_READY, TASK_LEASED, TASK_RUNNING, TASK_ENDED };

enum task_trigger {
    TASK_ON_DUE,   /* its time has come, or there is something to do */
    TASK_ON_CLAIM, /* by a worker */
    TASK_ON_START,
    TASK_ON_RETURN, /* given back, or its lease ended before it was started */
    TASK_ON_RETRY,  /* an attempt is over, and another one follows */
    TASK_ON_DRAIN,  /* nothing left to do, and there may be more later */
    TASK_TRIGGER_COUNT
};

/* False: the lifecycle has no such move. */
bool task_move(enum task_phase from, enum task_trigger on, enum task_phase *ret_to);

#endif
