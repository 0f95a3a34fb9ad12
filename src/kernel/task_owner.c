#include "kernel/task_owner.h"

#include "lifecycle/work_kinds.h"

#include "base/banned.h"

/* Its former worker can neither start nor finish it any more: the token is another one. */
void unit_task_return(struct unit *u, struct task *t, const struct task_return *r)
{
    unit_task_touch(u, t);
    unit_task_move(u, t, TASK_ON_RETURN);
    unit_owner(u, t)->released(u, t, r);
    t->row.token++;
    t->row.lease_ms = 0;
    t->row.started_ms = 0;
    live_set_worker(u->store->live, t, STR_ABSENT, 0);
    unit_task_place(u, t);
}

int64_t task_runtime_limit_ms(const struct settings *s, const struct task *t)
{
    bool is_own_work = t->row.kind == WORK_KIND_NONE;
    if (!str_is(t->row.queue, "default") || is_own_work)
        return t->row.max_runtime_ms;
    double scaled = (double)t->row.max_runtime_ms * s->runner_time_scale;
    return scaled < 1 ? 1 : (int64_t)scaled;
}
