#include "store/client_tasks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/must.h"
#include "store/store.h"

#include "base/banned.h"

enum {
    ENDED = 0xFF,      /* in `states`: the task is gone, its place is not used again yet */
    FIRST_PLACES = 16, /* of a client's list */
    LOOK_MAX = 65536,  /* places looked at under one hold of the lock: 50 us or so */
};

/* One queue of one client, while it has live tasks. `states` counts by enum job_state. */
struct task_queue {
    struct map_node node;
    uint32_t number; /* its place in the list's `queues` */
    uint32_t tasks;
    uint32_t states[JOB_STATE_COUNT];
    size_t name_len;
    char name[];
};

/* One client's tasks in ascending order of id. Ids only grow, so a new task is appended; work is mostly
 * first in, first out, so ended ones gather at the start, which moves up. */
struct task_list {
    struct map_node node;
    int64_t client;
    int64_t *ids;
    uint8_t *states;
    uint32_t *in_queue; /* number of its queue */
    uint32_t *since_s;  /* since when it is in its state */
    size_t start, end, capacity;
    struct map by_name;         /* queues */
    struct task_queue **queues; /* by number; NULL: the number is free */
    uint32_t *freed;            /* numbers that are free */
    uint32_t queue_count, freed_count, queue_capacity;
    struct task_queue *last_queue; /* asked for last: most changes are of one queue */
    size_t hint;                   /* where the last change was: the next one is often right behind it */
    size_t ended;                  /* places in [start, end) whose task is gone */
};

struct client_tasks {
    pthread_mutex_t lock;
    struct map lists;
};

struct client_tasks *client_tasks_new(void)
{
    struct client_tasks *c = must_alloc(sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

static void free_list(struct map_node *n, void *arg)
{
    (void)arg;
    struct task_list *l = CONTAINER_OF(n, struct task_list, node);
    for (uint32_t i = 0; i < l->queue_count; i++)
        free(l->queues[i]);
    free(l->queues);
    free(l->freed);
    map_free(&l->by_name);
    free(l->ids);
    free(l->states);
    free(l->in_queue);
    free(l->since_s);
    free(l);
}

struct client_tasks *client_tasks_free(struct client_tasks *c)
{
    if (!c)
        return NULL;
    map_drain(&c->lists, free_list, NULL);
    map_free(&c->lists);
    pthread_mutex_destroy(&c->lock);
    free(c);
    return NULL;
}

static struct task_list *find_list(const struct client_tasks *c, int64_t client)
{
    for (struct map_node *n = map_first(&c->lists, hash_mix((uint64_t)client)); n; n = map_next(n)) {
        struct task_list *l = CONTAINER_OF(n, struct task_list, node);
        if (l->client == client)
            return l;
    }
    return NULL;
}

static struct task_list *need_list(struct client_tasks *c, int64_t client)
{
    struct task_list *l = find_list(c, client);
    if (l)
        return l;
    l = must_alloc(sizeof *l);
    l->client = client;
    map_put(&c->lists, &l->node, hash_mix((uint64_t)client));
    return l;
}

/* --- queues -------------------------------------------------------------------------------------- */

static bool queue_is(const struct task_queue *q, struct str name)
{
    return q->name_len == name.len && memcmp(q->name, name.ptr, name.len) == 0;
}

static struct task_queue *find_queue(const struct task_list *l, struct str name)
{
    if (l->last_queue && queue_is(l->last_queue, name))
        return l->last_queue;
    for (struct map_node *n = map_first(&l->by_name, hash_secret(name.ptr, name.len)); n; n = map_next(n)) {
        struct task_queue *q = CONTAINER_OF(n, struct task_queue, node);
        if (queue_is(q, name))
            return q;
    }
    return NULL;
}

static uint32_t free_number(struct task_list *l)
{
    if (l->freed_count)
        return l->freed[--l->freed_count];
    if (l->queue_count == l->queue_capacity) {
        l->queue_capacity = l->queue_capacity ? l->queue_capacity * 2 : 4;
        l->queues = must_realloc(l->queues, l->queue_capacity * sizeof *l->queues);
        l->freed = must_realloc(l->freed, l->queue_capacity * sizeof *l->freed);
    }
    return l->queue_count++;
}

static struct task_queue *need_queue(struct task_list *l, struct str name)
{
    struct task_queue *q = find_queue(l, name);
    if (!q) {
        q = must_alloc(sizeof *q + name.len + 1);
        q->number = free_number(l);
        q->name_len = name.len;
        memcpy(q->name, name.ptr, name.len);
        l->queues[q->number] = q;
        map_put(&l->by_name, &q->node, hash_secret(name.ptr, name.len));
    }
    l->last_queue = q;
    return q;
}

/* A queue without live tasks costs nothing. */
static void leave_queue(struct task_list *l, size_t at)
{
    struct task_queue *q = l->queues[l->in_queue[at]];
    q->states[l->states[at]]--;
    if (--q->tasks)
        return;
    if (l->last_queue == q)
        l->last_queue = NULL;
    map_remove(&l->by_name, &q->node);
    l->queues[q->number] = NULL;
    l->freed[l->freed_count++] = q->number;
    free(q);
}

/* --- places -------------------------------------------------------------------------------------- */

/* First place whose id is at least this one; `end` when there is none. */
static size_t place_of(const struct task_list *l, int64_t id)
{
    size_t low = l->start, high = l->end;
    if (high > low && l->ids[high - 1] < id)
        return high;
    if (l->hint >= low && l->hint < high && l->ids[l->hint] == id)
        return l->hint;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Closes the gaps and moves everything to the front. */
static void pack(struct task_list *l)
{
    size_t n = 0;
    for (size_t i = l->start; i < l->end; i++)
        if (l->states[i] != ENDED) {
            l->ids[n] = l->ids[i];
            l->in_queue[n] = l->in_queue[i];
            l->since_s[n] = l->since_s[i];
            l->states[n++] = l->states[i];
        }
    l->start = l->ended = 0;
    l->end = n;
}

static void make_room(struct task_list *l)
{
    if (l->end < l->capacity)
        return;
    if (l->start + l->ended > l->capacity / 2) {
        pack(l);
        return;
    }
    l->capacity = l->capacity ? l->capacity * 2 : FIRST_PLACES;
    l->ids = must_realloc(l->ids, l->capacity * sizeof *l->ids);
    l->states = must_realloc(l->states, l->capacity);
    l->in_queue = must_realloc(l->in_queue, l->capacity * sizeof *l->in_queue);
    l->since_s = must_realloc(l->since_s, l->capacity * sizeof *l->since_s);
}

static void enter(struct task_list *l, size_t at, const struct task_row *row)
{
    struct task_queue *q = need_queue(l, row->queue);
    l->states[at] = (uint8_t)row->job_state;
    l->in_queue[at] = q->number;
    l->since_s[at] = (uint32_t)(row->last_us / 1000000);
    q->states[row->job_state]++;
    q->tasks++;
}

/* The queue of a task is the same for ever. */
static void change(struct task_list *l, size_t at, const struct task_row *row)
{
    struct task_queue *q = l->queues[l->in_queue[at]];
    q->states[l->states[at]]--;
    q->states[row->job_state]++;
    l->states[at] = (uint8_t)row->job_state;
    l->since_s[at] = (uint32_t)(row->last_us / 1000000);
}

static void put(struct client_tasks *c, const struct task_row *row)
{
    struct task_list *l = need_list(c, row->client);
    size_t at = place_of(l, row->id);
    if (at < l->end && l->ids[at] == row->id) {
        bool was_ended = l->states[at] == ENDED; /* and was taken up again */
        l->ended -= was_ended;
        if (was_ended)
            enter(l, at, row);
        else
            change(l, at, row);
        l->hint = at + 1;
        return;
    }
    if (l->end == l->capacity) {
        make_room(l);
        at = place_of(l, row->id);
    }
    size_t behind = l->end - at; /* 0 unless an old job was taken up again */
    memmove(l->ids + at + 1, l->ids + at, behind * sizeof *l->ids);
    memmove(l->states + at + 1, l->states + at, behind);
    memmove(l->in_queue + at + 1, l->in_queue + at, behind * sizeof *l->in_queue);
    memmove(l->since_s + at + 1, l->since_s + at, behind * sizeof *l->since_s);
    l->ids[at] = row->id;
    enter(l, at, row);
    l->end++;
}

static void take(struct client_tasks *c, const struct task_row *row)
{
    struct task_list *l = find_list(c, row->client);
    size_t at = l ? place_of(l, row->id) : 0;
    if (!l || at == l->end || l->ids[at] != row->id || l->states[at] == ENDED)
        return;
    leave_queue(l, at);
    l->states[at] = ENDED;
    l->ended++;
    l->hint = at + 1;
    for (; l->start < l->end && l->states[l->start] == ENDED; l->start++)
        l->ended--;
    if (l->start == l->end) { /* a client without live tasks costs nothing */
        map_remove(&c->lists, &l->node);
        free_list(&l->node, NULL);
    } else if (l->ended > FIRST_PLACES && l->ended > (l->end - l->start) / 2) {
        pack(l);
    }
}

void client_tasks_put(struct client_tasks *c, const struct task_row *row)
{
    pthread_mutex_lock(&c->lock);
    put(c, row);
    pthread_mutex_unlock(&c->lock);
}

void client_tasks_apply(struct client_tasks *c, const struct row_change *rows, size_t row_count)
{
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < row_count; i++) {
        if (rows[i].table != &table_task_row || !task_is_job(rows[i].row))
            continue;
        if (rows[i].op == ROW_DELETE)
            take(c, rows[i].row);
        else
            put(c, rows[i].row);
    }
    pthread_mutex_unlock(&c->lock);
}

struct walk {
    const struct list_query *query;
    int64_t state;
    int64_t *ids;
    size_t count;
    int64_t below; /* how many tasks are still to be looked at */
};

/* Looks at LOOK_MAX places at most. True when there may be more. */
static bool walk_some(struct client_tasks *c, struct walk *w)
{
    const struct task_list *l = find_list(c, w->query->owner_key);
    const struct task_queue *queue = l && w->query->queue.ptr ? find_queue(l, w->query->queue) : NULL;
    if (w->query->queue.ptr && !queue)
        return false;
    size_t at = l ? place_of(l, w->below) : 0, first = l ? l->start : 0;
    for (size_t looked = 0; at > first && w->count < w->query->limit; looked++) {
        if (looked == LOOK_MAX)
            return true;
        w->below = l->ids[--at];
        if (w->below < w->query->from_id)
            return false;
        if (l->states[at] != ENDED && (w->state < 0 || l->states[at] == (uint8_t)w->state) &&
            (!queue || l->in_queue[at] == queue->number))
            w->ids[w->count++] = w->below;
    }
    return false;
}

size_t client_tasks_list(struct client_tasks *c, const struct list_query *q, int64_t state, int64_t *ret_ids)
{
    struct walk w = {q, state, ret_ids, 0, q->below_id};
    bool more = true;
    while (more) {
        pthread_mutex_lock(&c->lock);
        more = walk_some(c, &w);
        pthread_mutex_unlock(&c->lock);
    }
    return w.count;
}

/* --- counting ------------------------------------------------------------------------------------ */

struct count {
    size_t queues, bytes, filled;
    struct queue_sum *sums;
    char *names;
};

static void measure(struct map_node *n, void *arg)
{
    const struct task_list *l = CONTAINER_OF(n, struct task_list, node);
    struct count *x = arg;
    for (uint32_t i = 0; i < l->queue_count; i++)
        if (l->queues[i]) {
            x->queues++;
            x->bytes += l->queues[i]->name_len;
        }
}

/* By number of the queue: since when the oldest of its QUEUED tasks is; 0: it has none. */
static void find_oldest(const struct task_list *l, uint32_t *oldest_s)
{
    for (size_t at = l->start; at < l->end; at++) {
        uint32_t *oldest = &oldest_s[l->in_queue[at]];
        if (l->states[at] == JOB_QUEUED && (!*oldest || l->since_s[at] < *oldest))
            *oldest = l->since_s[at];
    }
}

static void add_sums(struct map_node *n, void *arg)
{
    const struct task_list *l = CONTAINER_OF(n, struct task_list, node);
    struct count *x = arg;
    uint32_t *oldest_s = must_alloc((l->queue_count + 1) * sizeof *oldest_s);
    find_oldest(l, oldest_s);
    for (uint32_t i = 0; i < l->queue_count; i++) {
        const struct task_queue *q = l->queues[i];
        if (!q)
            continue;
        memcpy(x->names, q->name, q->name_len);
        x->sums[x->filled++] = (struct queue_sum){.client = l->client,
                                                  .queue = {x->names, q->name_len},
                                                  .queued = q->states[JOB_QUEUED],
                                                  .running = q->states[JOB_ASSIGNED] + q->states[JOB_RUNNING],
                                                  .scheduled = q->states[JOB_CREATED],
                                                  .oldest_us = (int64_t)oldest_s[i] * 1000000};
        x->names += q->name_len;
    }
    free(oldest_s);
}

size_t client_tasks_queues(struct client_tasks *c, int64_t client, struct queue_sum **ret_sums)
{
    struct count x = {0};
    pthread_mutex_lock(&c->lock);
    struct task_list *own = client ? find_list(c, client) : NULL;
    if (own)
        measure(&own->node, &x);
    else if (!client)
        map_each(&c->lists, measure, &x);
    x.sums = must_alloc(x.queues * sizeof *x.sums + x.bytes + 1);
    x.names = (char *)(x.sums + x.queues);
    if (own)
        add_sums(&own->node, &x);
    else if (!client)
        map_each(&c->lists, add_sums, &x);
    pthread_mutex_unlock(&c->lock);
    *ret_sums = x.sums;
    return x.queues;
}
