/* engine/step_task.h - the task of a step: the same queue, lease, token and worker protocol as a job's
 * (kernel/task_owner.h). A task is one attempt; it is gone when the
 * attempt is over. `step` is the step's index, `subject` the run's number. */
#ifndef WEIR_ENGINE_STEP_TASK_H
#define WEIR_ENGINE_STEP_TASK_H

#include "kernel/task_owner.h"

extern const struct task_owner step_task_owner;

/* How long one attempt of the step may run. */
int64_t step_timeout_ms(const struct settings *s, const struct plan_step_row *plan);
/* Gives the task's id. due_ms 0: at once. */
int64_t step_task_add(struct unit *u, const struct run_row *run, const struct run_step_row *step,
                      const struct plan_step_row *plan, int64_t due_ms);

/* All of these: 0, and a task that is not there any more, are fine. */
bool step_task_is_leased(struct unit *u, int64_t id); /* claimed, not started */
void step_task_end(struct unit *u, int64_t id);       /* its worker gets `cancel` */
void step_task_hurry(struct unit *u, int64_t id);     /* its pause is over */
void step_task_cancel(struct unit *u, int64_t id);    /* its worker hears so with the next heartbeat */

#endif
