#include "kernel/task_owner.h"

#include "lifecycle/work_kinds.h"

#include "base/banned.h"

static const struct task_owner *const owners[TASK_OWNER_COUNT] = {
    [TASK_OWNER_JOB] = &job_task_owner,
    [TASK_OWNER_DELIVERY] = &delivery_task_owner,
    [TASK_OWNER_STEP] = &step_task_owner,
};

const struct task_owner *task_owner_of(const struct task *t)
{
    return owners[t->row.owner];
}

int64_t task_runtime_limit_ms(const struct settings *s, const struct task *t)
{
    bool is_own_work = t->row.owner == TASK_OWNER_JOB && t->row.kind == WORK_KIND_NONE;
    if (!str_is(t->row.queue, "default") || is_own_work)
        return t->row.max_runtime_ms;
    double scaled = (double)t->row.max_runtime_ms * s->runner_time_scale;
    return scaled < 1 ? 1 : (int64_t)scaled;
}
