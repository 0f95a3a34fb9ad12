/* Ready tasks in the order in which they are claimed, by queue and client, and the turns of the tasks of one
 * receiver. */
#include <stdlib.h>

#include "base/must.h"
#include "store/live_internal.h"
#include "store/log.h"

#include "base/banned.h"

struct ready_queue *ready_find_queue(const struct live *l, struct str name)
{
    for (struct map_node *n = map_first(&l->queues, live_text_hash(name)); n; n = map_next(n)) {
        struct ready_queue *q = CONTAINER_OF(n, struct ready_queue, node);
        if (str_is(name, q->name))
            return q;
    }
    return NULL;
}

struct ready_list *ready_find_list(const struct ready_queue *q, int64_t client)
{
    for (struct map_node *n = map_first(&q->by_client, live_id_hash(client)); n; n = map_next(n)) {
        struct ready_list *list = CONTAINER_OF(n, struct ready_list, node);
        if (list->client == client)
            return list;
    }
    return NULL;
}

static struct ready_list *need_list(struct live *l, const struct task_row *row)
{
    struct str queue = row->queue;
    struct ready_queue *q = ready_find_queue(l, queue);
    if (!q) {
        q = must_alloc(sizeof *q);
        q->name = (char *)(uintptr_t)live_copy_str(queue).ptr;
        map_put(&l->queues, &q->node, live_text_hash(queue));
    }
    struct ready_list *list = ready_find_list(q, row->client);
    if (!list) {
        list = must_alloc(sizeof *list);
        list->queue = q;
        list->client = row->client;
        list->delivers = task_is_stream(row);
        list->suspended = !list->delivers && live_is_held(l, row->client, queue);
        map_put(&q->by_client, &list->node, live_id_hash(row->client));
    }
    return list;
}

/* The list's place among its queue's lists follows its first task; an empty list and an empty queue go
 * away, so names invented by clients cost nothing once their jobs are gone. */
void ready_list_changed(struct live *l, struct ready_list *list)
{
    struct ready_queue *q = list->queue;
    struct heap_node *first = heap_first(&list->tasks);
    if (first && !list->suspended)
        heap_put(&q->lists, &list->place, first->key);
    else
        heap_remove(&q->lists, &list->place);
    if (first)
        return;
    map_remove(&q->by_client, &list->node);
    heap_free(&list->tasks);
    free(list);
    if (q->by_client.count)
        return;
    map_remove(&l->queues, &q->node);
    map_free(&q->by_client);
    heap_free(&q->lists);
    free(q->name);
    free(q);
}

/* Streams come in the order of what they have to send, not of their own ids, which are no times. One that has
 * nothing to send stands nowhere. Ids of jobs and steps are times, but for the bit that tells them apart:
 * with it a queue that always has jobs would never come to its steps. */
int64_t task_row_order(const struct task_row *row)
{
    bool sends = task_is_stream(row) && row->done >= 0 && (uint64_t)row->done < log_ref_count(row->refs);
    return sends ? (int64_t)log_ref_at(row->refs, (size_t)row->done) : row->id & ~(int64_t)TASK_ID_OF_OTHERS;
}

static uint64_t ready_key(const struct task *t)
{
    return (uint64_t)(9 - t->row.priority) << 60 | (uint64_t)task_row_order(&t->row);
}

static void enter_list(struct live *l, struct task *t)
{
    t->list = need_list(l, &t->row);
    l->replays_ready += task_is_replay(&t->row);
    heap_put(&t->list->tasks, &t->ready, ready_key(t));
    ready_list_changed(l, t->list);
}

/* --- receivers: their tasks take turns ------------------------------------------------------------- */

static void hold_slot(struct task *t)
{
    t->holds_slot = true;
    t->receiver->active++;
}

static bool has_slot(const struct receiver *x)
{
    return !x->unknown && x->active + x->elsewhere < x->slots;
}

void ready_put(struct live *l, struct task *t)
{
    if (t->receiver && !has_slot(t->receiver)) {
        heap_put(&t->receiver->waiting, &t->ready, ready_key(t));
        t->waits_for_slot = true;
        return;
    }
    if (t->receiver)
        hold_slot(t);
    enter_list(l, t);
}

void ready_claimed(struct live *l, struct task *t)
{
    (void)l;
    if (t->receiver)
        hold_slot(t);
}

void ready_remove(struct live *l, struct task *t)
{
    if (t->waits_for_slot)
        heap_remove(&t->receiver->waiting, &t->ready);
    t->waits_for_slot = false;
    if (t->holds_slot)
        t->receiver->active--;
    t->holds_slot = false;
    if (!t->list)
        return;
    l->replays_ready -= task_is_replay(&t->row);
    heap_remove(&t->list->tasks, &t->ready);
    ready_list_changed(l, t->list);
    t->list = NULL;
}

void ready_admit(struct live *l, struct receiver *x)
{
    struct heap_node *n;
    while (has_slot(x) && (n = heap_first(&x->waiting))) {
        struct task *t = CONTAINER_OF(n, struct task, ready);
        heap_remove(&x->waiting, n);
        t->waits_for_slot = false;
        hold_slot(t);
        enter_list(l, t);
    }
}

uint32_t live_replays_ready(const struct live *l)
{
    return l->replays_ready;
}

void live_receiver_slots(struct live *l, uint32_t slots)
{
    l->receivers.slots = slots;
}

struct receiver *live_receiver(const struct live *l, int64_t receiver)
{
    return receivers_find(&l->receivers, receiver);
}

void live_receiver_limit(struct live *l, struct receiver *x, uint32_t slots)
{
    x->slots = slots;
    ready_admit(l, x);
}

uint32_t live_receiver_usual(const struct live *l)
{
    return l->receivers.slots;
}

struct task *live_receiver_waiting(const struct receiver *x)
{
    struct heap_node *n = heap_first(&x->waiting);
    return n ? CONTAINER_OF(n, struct task, ready) : NULL;
}

/* --- of a shared store --------------------------------------------------------------------------- */

void live_load_receivers(struct live *l)
{
    l->receivers.loaded = true;
}

void live_receiver_known(struct live *l, struct receiver *x, const struct receiver_state *state,
                         uint32_t elsewhere, int64_t wall_ms)
{
    bool tries = !state->slots && state->open_again_ms <= wall_ms;
    x->stored = *state;
    x->slots = tries ? 1 : state->slots;
    x->failures = state->failures;
    x->open_again_ms = state->open_again_ms;
    x->elsewhere = elsewhere;
    x->unknown = false;
    ready_admit(l, x);
}

size_t live_receiver_count(const struct live *l)
{
    return l->receivers.by_id.count;
}

struct each_receiver {
    void (*fn)(struct receiver *x, void *arg);
    void *arg;
};

static void one_receiver(struct map_node *n, void *arg)
{
    const struct each_receiver *e = arg;
    e->fn(CONTAINER_OF(n, struct receiver, node), e->arg);
}

void live_each_receiver(const struct live *l, void (*fn)(struct receiver *x, void *arg), void *arg)
{
    struct each_receiver e = {fn, arg};
    map_each(&l->receivers.by_id, one_receiver, &e);
}

bool task_waits_for_slot(const struct task *t)
{
    return t->waits_for_slot && !t->receiver->unknown && t->receiver->slots;
}

/* One whose receiver is closed waits too, but for a time. */
bool task_is_news_of_slots(const struct task *t)
{
    return t->receiver && !t->receiver->unknown && !t->touch &&
           t->stored_waits_for_slot != t->waits_for_slot && (t->waits_for_slot || t->list);
}

static void look_for_news(struct task *t, void *arg)
{
    *(bool *)arg |= task_is_news_of_slots(t);
}

bool live_has_news_of_slots(const struct live *l)
{
    bool any = false;
    if (l->receivers.by_id.count)
        live_each(l, look_for_news, &any);
    return any;
}
