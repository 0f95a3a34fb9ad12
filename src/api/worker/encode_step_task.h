/* api/worker/encode_step_task.h - a claimed step as a worker gets it: its part of the plan, the present
 * params of the run, the input of operators, and the results of the steps it depends on. */
#ifndef WEIR_API_WORKER_ENCODE_STEP_TASK_H
#define WEIR_API_WORKER_ENCODE_STEP_TASK_H

#include "api/api.h"
#include "kernel/worker_commands.h"

/* Writes one task object; none for a run that is gone. False with err set when the store cannot be read. */
bool encode_step_task(struct call *c, struct json_writer *w, struct reader *r, const struct claimed_task *t,
                      struct err *err);

#endif
