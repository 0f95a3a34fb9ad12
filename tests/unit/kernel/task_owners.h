/* unit/kernel/task_owners.h - the owners of tasks, as core has them from its contracts: tests have no API. */
#ifndef WEIR_TESTS_TASK_OWNERS_H
#define WEIR_TESTS_TASK_OWNERS_H

#include "engine/step_task.h"
#include "jobs/deliver.h"
#include "jobs/job_move.h"

static const struct task_owner *const task_owners[] = {
    &job_task_owner,
    &delivery_task_owner,
    &step_task_owner,
};

#endif
