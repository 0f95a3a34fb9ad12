/* What a batch on a shared store needs besides: its part of the store in memory before it is decided, another
 * try when others were faster, and word of what it made to those who wait for it elsewhere. */
#include <time.h>

#include "base/random.h"
#include "kernel/kernel_internal.h"
#include "kernel/task_owner.h"

#include "base/banned.h"

enum { PAUSE_FIRST_US = 200, PAUSE_DOUBLINGS = 7, PAUSE_MAX_US = PAUSE_FIRST_US << PAUSE_DOUBLINGS };

/* When the first of them is due, as it was seen once a second (duties.c): not with every batch. */
static bool looks_for_timers(const struct lane *l)
{
    int64_t now = l->unit.steady_ms;
    return lane_has_timers(l) && (now >= l->next_due_ms || now >= l->next_lapse_ms);
}

static void want_run(struct task *t, void *arg)
{
    if (t->row.owner == TASK_OWNER_STEP)
        unit_want(arg, &table_run_row, &(struct run_row){.num = t->row.subject});
}

static void want_step(struct task *t, void *arg)
{
    if (t->row.owner == TASK_OWNER_STEP)
        task_owner_of(t)->load(arg, t);
}

static void want_named(const void *id, void *arg)
{
    unit_want(arg, &table_run_row, &(struct run_row){.num = ((const struct run_id_row *)id)->run});
}

/* Runs that commands name, and those whose steps were brought along: their rows come together, not one by
 * one, and are locked in the order of their keys. A step that is claimed is started while that is decided. */
static void load_runs(struct unit *u)
{
    bool has_steps = live_step_count(u->store->live) != 0;
    unit_each_stored(u, &table_run_id_row, want_named, u);
    if (has_steps)
        live_each(u->store->live, want_run, u);
    unit_load_wanted(u);
    if (!has_steps)
        return;
    live_each(u->store->live, want_step, u);
    unit_load_wanted(u);
}

void shared_load(struct lane *l, struct command_list *batch)
{
    bool timers = looks_for_timers(l);
    for (const struct command *c = batch->first; c; c = c->next)
        if (c->type->ask)
            c->type->ask(&l->unit, c);
    unit_load_asked(&l->unit, timers ? BATCH_TIMERS_MAX : 0);
    load_runs(&l->unit);
    if (timers) {
        l->next_due_ms = l->unit.asked.next_due_ms;
        l->next_lapse_ms = INT64_MAX;
    }
}

void shared_undecide(struct command_list *decided, struct command_list *batch)
{
    for (struct command *c = decided->first; c; c = c->next) {
        c->parked = false;
        if (c->type->reset)
            c->type->reset(c);
    }
    list_prepend(batch, decided);
}

/* Both who collided would collide again if they came back at the same time. */
void shared_pause(struct lane *l, int tries)
{
    (void)l;
    int64_t most = tries < PAUSE_DOUBLINGS ? (int64_t)PAUSE_FIRST_US << tries : PAUSE_MAX_US;
    struct timespec pause = {0, (long)(random_u64() % (uint64_t)most) * 1000};
    nanosleep(&pause, NULL);
}

/* Who has to look now: the first lane for timers and for what is its own, any other for the rest. */
static void wake_lanes(struct kernel *k, const struct lane *self, unsigned hints, uint64_t queues)
{
    struct lane *first = NULL, *other = NULL;
    pthread_mutex_lock(&k->lock);
    if (hints & HINT_READY)
        parked_look(k, queues);
    k->timer_moved |= (hints & HINT_TIMER) != 0;
    k->inbox_filled |= (hints & HINT_INBOX) != 0;
    if (self != &k->lanes[0] && (k->timer_moved || k->inbox_filled || k->look_for_parked[FOR_FIRST]))
        first = kernel_wake_one(k, true);
    if (k->look_for_parked[FOR_ANY] && !first)
        other = kernel_wake_one(k, false);
    pthread_mutex_unlock(&k->lock);
    if (first)
        pthread_cond_signal(&first->wake);
    if (other)
        pthread_cond_signal(&other->wake);
}

void shared_tell(struct lane *l)
{
    struct unit *u = &l->unit;
    unsigned hints = u->notice_count || u->run_notice_count || u->progressed_count ? HINT_EVENTS : 0;
    uint64_t ready = u->wrote && u->store->look_again ? ALL_QUEUES : u->made_ready;
    if (ready)
        hints |= HINT_READY;
    if (u->keys_changed)
        hints |= HINT_KEYS;
    if (u->nearest_timer_ms < INT64_MAX)
        hints |= HINT_TIMER;
    if (hints & (HINT_READY | HINT_TIMER))
        wake_lanes(l->kernel, l, hints, ready);
    if (hints && u->wrote)
        u->store->ops->hint(u->store, hints);
    store_forget(u->store);
}

void kernel_hint(struct kernel *k, unsigned what)
{
    if (what & (HINT_READY | HINT_TIMER | HINT_INBOX))
        wake_lanes(k, NULL, what, ALL_QUEUES);
}
