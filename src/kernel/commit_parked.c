/* Long polls: commands that wait until something can be claimed, or their time is over.
 *
 * They belong to the kernel, not to a lane: whichever lane has made something claimable asks all of them, in
 * the same batch, so that a job is stored and claimed in one commit. Meanwhile other lanes see none. */
#include "kernel/kernel_internal.h"

#include "base/banned.h"

static void take_all(struct lane *l, struct command_list *ret)
{
    list_init(ret);
    pthread_mutex_lock(&l->kernel->lock);
    for (int kind = 0; kind < kinds_of(l); kind++)
        list_append(ret, &l->kernel->parked[kind]);
    pthread_mutex_unlock(&l->kernel->lock);
}

/* While a lane decided these commands they were not in the list: changes that came meanwhile are looked for
 * now. */
void parked_add(struct lane *l, struct command_list *some)
{
    struct kernel *k = l->kernel;
    if (!some->first)
        return;
    struct command *c;
    pthread_mutex_lock(&k->lock);
    while ((c = list_take(some))) {
        k->look_for_parked[kind_of(k, c)] |= l->filled & c->waits_for;
        list_add(&k->parked[kind_of(k, c)], c);
    }
    pthread_mutex_unlock(&k->lock);
}

/* Asked again while something can be claimed; ended when their time is over. They are answered before the
 * rest of the batch: a worker can begin while the client hears that its job was taken. */
void parked_decide(struct lane *l, struct command_list *decided)
{
    struct command_list all, still, waited;
    take_all(l, &all);
    if (!all.first)
        return;
    list_init(&still);
    list_init(&waited);
    bool ready = live_has_ready(l->unit.store->live);
    struct command *c;
    while ((c = list_take(&all))) {
        bool over = l->unit.steady_ms >= c->park_until_ms || l->ending;
        bool gone = c->abandoned && c->abandoned(c);
        if (!gone && !over && ready) {
            lane_decide_one(l, c);
            ready = live_has_ready(l->unit.store->live);
        }
        bool done = gone || over || !c->park_until_ms;
        list_add(done ? &waited : &still, c);
        c->parked = !done;
    }
    parked_add(l, &still);
    list_prepend(decided, &waited);
}

/* One whose time is over, or whose client is gone, is left to parked_decide(). */
static bool waits_on(const struct command *c, int64_t now, uint64_t queues)
{
    return c->waits_for & queues && c->park_until_ms > now && !(c->abandoned && c->abandoned(c));
}

static void join(struct lane *l, enum lane_kind kind, int64_t now, struct command_list *batch)
{
    struct kernel *k = l->kernel;
    uint64_t queues = k->look_for_parked[kind];
    struct command_list still;
    struct command *c;
    list_init(&still);
    k->look_for_parked[kind] = 0;
    while ((c = list_take(&k->parked[kind])))
        list_add(waits_on(c, now, queues) && !l->ending ? batch : &still, c);
    list_append(&k->parked[kind], &still);
}

void parked_join(struct lane *l, struct command_list *batch)
{
    struct kernel *k = l->kernel;
    int64_t now = steady_now(k);
    pthread_mutex_lock(&k->lock);
    l->filled = 0;
    for (int kind = 0; kind < kinds_of(l); kind++)
        if (k->look_for_parked[kind] && is_shared(l))
            join(l, (enum lane_kind)kind, now, batch);
        else
            k->look_for_parked[kind] = 0; /* parked_decide() looks at all of them */
    pthread_mutex_unlock(&k->lock);
}

void parked_look(struct kernel *k, uint64_t queues)
{
    for (size_t i = 0; i < k->lane_count; i++)
        k->lanes[i].filled |= queues;
    for (int kind = 0; kind < LANE_KINDS; kind++)
        for (const struct command *c = k->parked[kind].first; c; c = c->next)
            k->look_for_parked[kind] |= c->waits_for & queues;
}
