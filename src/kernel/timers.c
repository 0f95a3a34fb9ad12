/* Timers: a due schedule or backoff (wall clock), an ended lease, runtime limit or time in the queue (steady
 * clock). Never early: a task fires only once its column lies in the past of the clock that column belongs
 * to. */
#include "base/must.h"
#include "kernel/kernel_internal.h"
#include "kernel/task_owner.h"

#include "base/banned.h"

static void ended_time(struct unit *u, struct task *t)
{
    if (task_owner_of(t)->load)
        task_owner_of(t)->load(u, t);
    if (u->load_err.code !=
        ERR_OK) /* the owner has not what it decides by; the batch fails and is made again */
        return;
    unit_task_touch(u, t);
    if (t->phase == TASK_READY) {
        task_owner_of(t)->expired(u, t);
    } else if (t->phase == TASK_LEASED) {
        task_owner_of(t)->lease_expired(u, t, &(struct task_return){.reason = "lease expired"});
        unit_task_place(u, t);
    } else if (u->steady_ms >= t->run_until_ms) {
        task_owner_of(t)->timed_out(u, t);
    } else {
        task_owner_of(t)->worker_lost(u, t);
    }
}

/* A delivery whose time comes by the clock was tried before, or its receiver was: a retry, a redelivery that
 * waits already, the end of a closed receiver's pause. What is new is sent at once and never met here. */
static bool can_wait(const struct task *t)
{
    return t->row.owner == TASK_OWNER_DELIVERY && t->phase == TASK_READY;
}

/* Under pressure: a little later. Not written to disk: after a restart it is due when it was. */
static void put_off(struct unit *u, struct task *t)
{
    if (u->store->shared)
        unit_task_touch(u, t);
    t->row.due_ms = u->now_ms + UNIT_PUT_OFF_MS;
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
        if (u->puts_off && can_wait(t)) {
            put_off(u, t);
            continue;
        }
        if (t->phase == TASK_READY) { /* a backoff is over: claimable now, no event */
            if (task_owner_of(t)->again)
                task_owner_of(t)->again(u, t);
            if (u->store->shared) /* others see by its row that it can be claimed */
                unit_task_touch(u, t);
            unit_task_place(u, t);
            continue;
        }
        int64_t due_before = t->row.due_ms;
        unit_task_touch(u, t);
        task_owner_of(t)->due(u, t);
        unit_task_place(u, t);
        MUST(t->phase != TASK_WAITING || t->row.due_ms > due_before); /* a tick must move on */
    }
    return n;
}
