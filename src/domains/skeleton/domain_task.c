#include "base/must.h"
#include "domains/skeleton/domain_internal.h"

#include "base/banned.h"

static bool phase_has_list(enum domain_phase phase)
{
    return phase == TASK_ASSIGNED || phase == TASK_RUNNING || phase == TASK_ENDED || phase == TASK_BACK;
}

void domain_task_put(struct domain *d, struct domain_task *t, enum domain_phase phase)
{
    if (phase_has_list(t->phase))
        TAILQ_REMOVE(&d->phases[t->phase], t, link);
    t->phase = phase;
    if (phase_has_list(phase))
        TAILQ_INSERT_TAIL(&d->phases[phase], t, link);
}

void domain_task_new(struct domain *d, struct domain_room *room, const struct worker_task *claimed)
{
    struct domain_task *t = d->ops->take(d->self, room, claimed);
    t->room = room;
    t->phase = TASK_GONE;
    room->taken++;
    d->task_count++;
    if (d->ops->starts_with_claim && !d->draining)
        domain_task_started(d, t, domain_now_ms());
    else
        domain_task_unstarted(d, t);
}

void domain_task_started(struct domain *d, struct domain_task *t, int64_t now_ms)
{
    if (TAILQ_EMPTY(&d->phases[TASK_RUNNING])) /* no rounds while nothing ran */
        d->beat_at_ms = now_ms + d->process->settings->queue_heartbeat_ms;
    t->beat_round = d->beat_round; /* starting was a sign of life */
    t->beaten_ms = now_ms;
    domain_task_put(d, t, TASK_RUNNING);
    d->ops->begin(d->self, t, now_ms);
}

void domain_task_unstarted(struct domain *d, struct domain_task *t)
{
    domain_task_put(d, t, d->draining ? TASK_BACK : TASK_ASSIGNED);
}

void domain_task_ended(struct domain *d, struct domain_task *t)
{
    MUST(t->phase == TASK_RUNNING);
    domain_task_put(d, t, TASK_ENDED);
}

void domain_task_back(struct domain *d, struct domain_task *t)
{
    MUST(t->phase == TASK_RUNNING);
    domain_task_put(d, t, TASK_BACK);
}

void domain_task_gone(struct domain *d, struct domain_task *t)
{
    MUST(t->phase != TASK_GONE);
    domain_task_put(d, t, TASK_GONE);
    t->room->taken--;
    d->task_count--;
    domain_room_has_place(d, t->room);
    if (!t->beating)
        d->ops->drop(d->self, t);
}

void domain_task_unbeat(struct domain *d, struct domain_task *t)
{
    t->beating = false;
    if (t->phase == TASK_GONE)
        d->ops->drop(d->self, t);
}

static void drop_batch(struct domain *d, struct domain_batch *b)
{
    for (size_t i = 0; b->call && i < b->count; i++)
        d->ops->drop(d->self, b->tasks[i]);
}

void domain_tasks_forget(struct domain *d)
{
    /* Heartbeats first: a task that is gone stands nowhere else; the others do. */
    for (size_t i = 0; d->heartbeat.call && i < d->heartbeat.count; i++)
        domain_task_unbeat(d, d->heartbeat.tasks[i]);
    for (enum domain_phase phase = 0; phase < TASK_PHASE_COUNT; phase++)
        for (struct domain_task *t; (t = TAILQ_FIRST(&d->phases[phase]));) {
            if (phase == TASK_RUNNING && d->ops->abandon)
                d->ops->abandon(d->self, t);
            domain_task_put(d, t, TASK_GONE);
            d->ops->drop(d->self, t);
        }
    drop_batch(d, &d->start);
    drop_batch(d, &d->release);
    drop_batch(d, &d->finish);
}
