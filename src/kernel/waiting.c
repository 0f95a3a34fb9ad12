#include "kernel/waiting.h"

#include "base/hash.h"

#include "base/banned.h"

void waiting_init(struct waiting *w)
{
    list_init(&w->front);
    list_init(&w->fresh);
    for (size_t i = 0; i < WAITING_FLOWS; i++)
        list_init(&w->flows[i].commands);
}

static void count(struct waiting *w, const struct command *c, int sign)
{
    w->count += (size_t)sign;
    w->bytes += sign * (int64_t)c->bytes;
}

void waiting_add(struct waiting *w, struct command *c)
{
    count(w, c, 1);
    w->new_bytes += (int64_t)c->bytes;
    w->new_weight += command_weight(c);
    list_add(&w->fresh, c);
}

/* --- in turn ------------------------------------------------------------------------------------------- */

static void ring_add(struct waiting *w, struct waiting_flow *f)
{
    f->next = NULL;
    if (w->ring_last)
        w->ring_last->next = f;
    else
        w->ring_first = f;
    w->ring_last = f;
}

static void ring_drop_first(struct waiting *w)
{
    w->ring_first = w->ring_first->next;
    if (!w->ring_first)
        w->ring_last = NULL;
}

/* The client's flow, or an idle one; all eight taken by others: the first is shared. */
static struct waiting_flow *flow_of(struct waiting *w, int64_t client)
{
    struct waiting_flow *set = &w->flows[hash_mix((uint64_t)client) % WAITING_SETS * WAITING_WAYS],
                        *idle = NULL;
    for (size_t i = 0; i < WAITING_WAYS; i++) {
        if (set[i].commands.first && set[i].client == client)
            return &set[i];
        if (!set[i].commands.first && !idle)
            idle = &set[i];
    }
    return idle ? idle : &set[0];
}

static void sort_in(struct waiting *w)
{
    struct command *c;
    while ((c = list_take(&w->fresh))) {
        struct waiting_flow *f = flow_of(w, c->client);
        if (!f->commands.first) {
            f->client = c->client;
            f->deficit = WAITING_QUANTUM;
            ring_add(w, f);
        }
        list_add(&f->commands, c);
        w->sorted++;
    }
    w->new_bytes = w->new_weight = 0;
}

/* A sender that has used up its share goes behind the others, with a larger share for the next time. */
static struct command *take_in_turn(struct waiting *w)
{
    struct waiting_flow *f;
    while ((f = w->ring_first) && command_weight(f->commands.first) > f->deficit) {
        f->deficit += WAITING_QUANTUM;
        ring_drop_first(w);
        ring_add(w, f);
    }
    if (!f)
        return NULL;
    struct command *c = list_take(&f->commands);
    f->deficit -= command_weight(c);
    if (!f->commands.first)
        ring_drop_first(w);
    w->sorted--;
    return c;
}

static bool is_full(const struct batch_room *room)
{
    return room->bytes <= 0 || room->weight <= 0;
}

static bool is_plain(const struct waiting *w)
{
    return !w->sorted && !w->front.first;
}

/* All that waits fits, as one list. */
static bool takes_all(const struct waiting *w, const struct batch_room *room)
{
    return is_plain(w) && w->new_bytes <= room->bytes && w->new_weight <= room->weight;
}

static void move(struct waiting *w, struct command *c, struct batch_room *room, struct command_list *batch)
{
    count(w, c, -1);
    room->bytes -= (int64_t)c->bytes;
    room->weight -= command_weight(c);
    list_add(batch, c);
}

void waiting_take(struct waiting *w, struct batch_room *room, struct command_list *batch)
{
    struct command *c;
    while (!is_full(room) && (c = list_take(&w->front)))
        move(w, c, room, batch);
    if (is_full(room) || !w->count)
        return;
    bool all = takes_all(w, room); /* front is empty by now */
    if (!all)
        sort_in(w);
    while (!is_full(room) && (c = all ? list_take(&w->fresh) : take_in_turn(w)))
        move(w, c, room, batch);
    if (all)
        w->new_bytes = w->new_weight = 0;
}

bool waiting_take_both(struct waiting *a, struct waiting *b, struct batch_room *room,
                       struct command_list *batch)
{
    if (!is_plain(a) || !is_plain(b) || a->new_bytes + b->new_bytes > room->bytes ||
        a->new_weight + b->new_weight > room->weight)
        return false;
    while (a->fresh.first || b->fresh.first) {
        bool from_b = b->fresh.first && (!a->fresh.first || b->fresh.first->number < a->fresh.first->number);
        struct waiting *w = from_b ? b : a;
        move(w, list_take(&w->fresh), room, batch);
    }
    a->new_bytes = a->new_weight = b->new_bytes = b->new_weight = 0;
    return true;
}

void waiting_put_back(struct waiting *w, struct command_list *list)
{
    for (const struct command *c = list->first; c; c = c->next)
        count(w, c, 1);
    list_prepend(&w->front, list);
}
