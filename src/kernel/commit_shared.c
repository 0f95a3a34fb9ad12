/* The additional steps of a batch on a shared store: its part of the store is loaded before it is decided, it
 * is tried again when others were faster, and other lanes and nodes are told of work that it made for them.
 * */
#include <time.h>

#include "base/random.h"
#include "kernel/kernel_internal.h"
#include "kernel/task_owner.h"
#include "kernel/unit_internal.h"

#include "base/banned.h"

enum { PAUSE_FIRST_US = 200, PAUSE_DOUBLINGS = 7, PAUSE_MAX_US = PAUSE_FIRST_US << PAUSE_DOUBLINGS };

/* When the first of them is due, as it was seen once a second (duties.c): not with every batch. */
static bool looks_for_timers(const struct lane *l)
{
    int64_t now = l->unit.steady_ms;
    return lane_has_timers(l) && (now >= l->next_due_ms || now >= l->next_lapse_ms);
}

static void load_claimable(struct task *t, void *arg)
{
    if (unit_owner(arg, t)->loads_claims)
        unit_owner(arg, t)->load(arg, t);
}

/* Each round brings, in one round trip, what the steps of the round before wanted: rows of one kind come
 * together and are locked in the order of their keys. */
void shared_load(struct lane *l, const struct command_list *loaded)
{
    struct unit *u = &l->unit;
    bool timers = looks_for_timers(l);
    heart_waits(l->heart, true);
    if (timers)
        unit_load_all(u, BATCH_TIMERS_MAX);
    for (bool loaded_due = timers; loaded_due || unit_load(u); loaded_due = false) {
        for (struct command *c = loaded->first; c; c = c->next)
            if (c->type->load)
                c->type->load(u, c);
        live_each(u->store->live, load_claimable, u);
    }
    heart_waits(l->heart, false);
    if (timers) {
        l->next_due_ms = u->wanted.next_due_ms;
        l->next_lapse_ms = INT64_MAX;
    }
}

/* There was no room for all that the batch wanted: of the commands it gets to, the rest comes one by one. */
void shared_load_rest(struct lane *l, struct command *c)
{
    struct unit *u = &l->unit;
    if (!u->wanted.row_count || !c->type->load)
        return;
    u->wanted.at_once = true;
    c->type->load(u, c);
    u->wanted.at_once = false;
}

void shared_undecide(struct command_list *decided, struct command_list *batch)
{
    for (struct command *c = decided->first; c; c = c->next)
        c->parked = false;
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

/* Wakes the lanes that have to look now: the first lane for timers and duties, any other one for the rest. */
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
    unsigned hints = u->notices.hints;
    uint64_t ready = u->wrote && u->store->look_again ? ALL_QUEUES : u->made_ready;
    if (ready)
        hints |= HINT_READY;
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
