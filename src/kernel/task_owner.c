#include "kernel/task_owner.h"

#include "lifecycle/work_kinds.h"

#include "base/banned.h"

int64_t task_runtime_limit_ms(const struct settings *s, const struct task *t)
{
    bool is_own_work = t->row.kind == WORK_KIND_NONE;
    if (!str_is(t->row.queue, "default") || is_own_work)
        return t->row.max_runtime_ms;
    double scaled = (double)t->row.max_runtime_ms * s->runner_time_scale;
    return scaled < 1 ? 1 : (int64_t)scaled;
}
