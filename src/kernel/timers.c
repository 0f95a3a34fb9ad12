/* Timers (timer_kind.h), and the times of tasks: a due schedule or backoff (wall clock), an ended lease,
 * runtime limit or time in the queue (steady clock). Never early: a time has come only once it lies in the
 * past of the clock that it belongs to. */
#include "base/must.h"
#include "kernel/kernel_internal.h"
#include "kernel/task_owner.h"
#include "kernel/timer_kind.h"

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

/* What was decided before it in this batch may have cancelled or moved it. */
static void fire(struct unit *u, const struct timer_row *due)
{
    const struct timer_kind *kind = u->timer_kinds[due->kind];
    MUST(kind); /* as for owners (task_owner.h) */
    do {
        unit_prefetch(u, &table_timer_row, due);
        if (kind->load)
            kind->load(u, due->owner);
    } while (unit_load(u));
    if (u->load_err.code != ERR_OK || unit_timer_due_ms(u, kind, due->owner) > u->now_ms)
        return;
    unit_timer_cancel(u, kind, due->owner);
    kind->fire(u, due->owner);
}

static size_t fire_due(struct unit *u, size_t max)
{
    if (timers_next_ms(&u->store->timers) > u->now_ms)
        return 0;
    struct timer_row *due = ARENA_ARRAY(u->arena, struct timer_row, max);
    size_t n = timers_due(&u->store->timers, u->now_ms, due, max);
    for (size_t i = 0; i < n && u->load_err.code == ERR_OK; i++)
        fire(u, &due[i]);
    return n;
}

size_t timers_decide(struct unit *u, size_t max)
{
    size_t n = fire_due(u, max);
    struct task *t;
    if (u->load_err.code != ERR_OK)
        return n;
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
        MUST(unit_owner(u, t)->due);
        unit_owner(u, t)->due(u, t);
        unit_task_place(u, t);
        MUST(t->phase != TASK_WAITING || t->row.due_ms > due_before); /* a tick must move on */
    }
    return n;
}
