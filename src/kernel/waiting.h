/* kernel/waiting.h - commands that wait for a batch: in the order they came, or, once they are more than a
 * batch holds, in turn by who sent them.
 *
 * Turns:   every client that has something waiting gets WAITING_QUANTUM of work, then the next one does
 *          (deficit round robin; work is what a command's `weight` says: the items of a bulk call). So a
 *          flood by one client delays its own commands, and the others' by one batch at most. Commands of
 *          one client stay in order.
 * Cost:    while a batch takes all that waits, none: one list. Otherwise each command is sorted in once, in
 *          constant time, without memory of its own.
 * Bounded: by the code that adds. Of more than 8 clients that fall into one set, those that find no place of
 *          their own share one.
 * Owner:   the kernel, under its lock. */
#ifndef WEIR_KERNEL_WAITING_H
#define WEIR_KERNEL_WAITING_H

#include "kernel/kernel.h"

struct command_list {
    struct command *first, **tail;
    size_t count;
};

enum {
    WAITING_SETS = 64,
    WAITING_WAYS = 8,
    WAITING_FLOWS = WAITING_SETS * WAITING_WAYS,
    WAITING_QUANTUM = 128,
};

/* One client's. In the ring while it has commands. */
struct waiting_flow {
    int64_t client;
    struct command_list commands;
    int64_t deficit;
    struct waiting_flow *next;
};

struct waiting {
    struct command_list front; /* that a batch did not get to */
    struct command_list fresh; /* came since the last batch */
    struct waiting_flow flows[WAITING_FLOWS];
    struct waiting_flow *ring_first, *ring_last;
    size_t sorted;     /* commands in flows */
    size_t count;      /* all */
    int64_t bytes;     /* of all */
    int64_t new_bytes; /* of fresh */
    int64_t new_weight;
};

/* The room left in a batch. The batch is full when one of them is used up; the last command may go beyond.
 * Every command has a weight, so the weight bounds their number, too. */
struct batch_room {
    int64_t bytes, weight;
};

void waiting_init(struct waiting *w);
void waiting_add(struct waiting *w, struct command *c);
/* Those that a batch did not get to: in front of all others, in this order. `list` is empty afterwards. */
void waiting_put_back(struct waiting *w, struct command_list *list);
/* Moves all of both, in the order they came (their `number`), if the room is large enough for all. */
bool waiting_take_both(struct waiting *a, struct waiting *b, struct batch_room *room,
                       struct command_list *batch);
/* Moves whose turn it is to `batch`, until the room is used up. */
void waiting_take(struct waiting *w, struct batch_room *room, struct command_list *batch);

static inline int64_t command_weight(const struct command *c)
{
    return c->weight ? c->weight : 1;
}

static inline void list_init(struct command_list *l)
{
    *l = (struct command_list){.tail = &l->first};
}

static inline void list_add(struct command_list *l, struct command *c)
{
    c->next = NULL;
    *l->tail = c;
    l->tail = &c->next;
    l->count++;
}

static inline struct command *list_take(struct command_list *l)
{
    struct command *c = l->first;
    if (!c)
        return NULL;
    l->first = c->next;
    if (!l->first)
        l->tail = &l->first;
    l->count--;
    return c;
}

/* `front` goes before everything in `l` and is empty afterwards. */
static inline void list_prepend(struct command_list *l, struct command_list *front)
{
    if (!front->first)
        return;
    *front->tail = l->first;
    if (!l->first)
        l->tail = front->tail;
    l->first = front->first;
    l->count += front->count;
    list_init(front);
}

/* Everything in `from` goes behind what is in `l`; `from` is empty afterwards. */
static inline void list_append(struct command_list *l, struct command_list *from)
{
    if (!from->first)
        return;
    *l->tail = from->first;
    l->tail = from->tail;
    l->count += from->count;
    list_init(from);
}

#endif
