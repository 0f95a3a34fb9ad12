/* lifecycle/task_lifecycle.h - every state and move of a task: work in the live queue, whoever owns it.
 *
 *   WAITING ─due─► READY ─claim─► LEASED ─start─► RUNNING
 *   READY ◄─return─ LEASED, RUNNING     READY ◄─retry─ RUNNING     WAITING ◄─drain─ RUNNING
 *
 * A new task is WAITING. A task that is READY and not due yet backs off. A task may end in any state, and
 * then has no row. The kernel moves tasks (kernel/unit.h); owners hear of it, and have lifecycles of
 * their own for what their tasks are about. The numbers are stored. */
#ifndef WEIR_LIFECYCLE_TASK_LIFECYCLE_H
#define WEIR_LIFECYCLE_TASK_LIFECYCLE_H

#include <stdbool.h>

enum task_phase { TASK_WAITING, TASK_READY, TASK_LEASED, TASK_RUNNING, TASK_ENDED };

enum task_trigger {
    TASK_ON_DUE,   /* its time has come, or there is something to do */
    TASK_ON_CLAIM, /* by a worker */
    TASK_ON_START,
    TASK_ON_RETURN, /* given back by its worker, or its lease ended before it was started */
    TASK_ON_RETRY,  /* an attempt is over, and another one follows */
    TASK_ON_DRAIN,  /* nothing left to do, and there may be more later */
    TASK_TRIGGER_COUNT
};

/* False: the lifecycle has no such move. */
bool task_move(enum task_phase from, enum task_trigger on, enum task_phase *ret_to);

#endif
