/* Timers: a due schedule or backoff (wall clock), an ended lease, runtime limit or time in the queue (steady
 * clock). Never early: a task fires only once its column lies in the past of the clock that column belongs
 * to. */
#include "base/must.h"
#include "kernel/kernel_internal.h"
#include "kernel/task_owner.h"

#include "base/banned.h"

static void ended_time(struct unit *u, struct task *t)
{
    const struct task_owner *owner = unit_owner(u, t);
    do {
        if (owner->load)
            owner->load(u, t);
    } while (unit_load(u));
    if (u->load_err.code !=
        ERR_OK) /* the owner has not what it decides by; the batch fails and is made again */
        return;
    unit_task_touch(u, t);
    if (t->phase == TASK_READY) {
        owner->lost(u, t, TASK_UNCLAIMED);
    } else if (t->phase == TASK_LEASED) {
        unit_task_return(u, t, &(struct task_return){.reason = "lease expired"});
    } else if (u->steady_ms >= t->run_until_ms) {
        owner->lost(u, t, TASK_TIMED_OUT);
    } else {
        owner->lost(u, t, TASK_WORKER_LOST);
    }
}

/* Under pressure: a little later. Not written to disk: after a restart it is due when it was. */
static void put_off(struct unit *u, struct task *t)
{
    unit_task_touch_times(u, t);
    t->row.due_ms = u->now_ms + UNIT_DEFER_MS;
    unit_task_place(u, t);
}

size_t timers_decide(struct unit *u, size_t max)
{
    size_t n = 0;
    struct task *t;
    for (; n < max && (t = live_due_steady(u->store->live, u->steady_ms)); n++) {
        ended_time(u, t);
        if (u->load_err.code != ERR_OK)
            return n;
    }
    for (; n < max && (t = live_due_wall(u->store->live, u->now_ms)); n++) {
        if (u->defers_retries && unit_owner(u, t)->can_wait && t->phase == TASK_READY) {
            put_off(u, t);
            continue;
        }
        if (t->phase == TASK_READY) { /* a backoff is over: claimable now, no event */
            if (unit_owner(u, t)->again)
                unit_owner(u, t)->again(u, t);
            unit_task_touch_times(u, t); /* where others claim, too, they see by its row that they can */
            unit_task_place(u, t);
            continue;
        }
        int64_t due_before = t->row.due_ms;
        unit_task_touch(u, t);
        unit_owner(u, t)->due(u, t);
        unit_task_place(u, t);
        MUST(t->phase != TASK_WAITING || t->row.due_ms > due_before); /* a tick must move on */
    }
    return n;
}
