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

/* One client's tasks in ascending order of id. Ids only grow, so a new task is appended; work is mostly
 * first in, first out, so ended ones gather at the start, which moves up. */
struct task_list {
    struct map_node node;
    int64_t client;
    int64_t *ids;
    uint8_t *states;
    size_t start, end, capacity;
    size_t hint;  /* where the last change was: the next one is often right behind it */
    size_t ended; /* places in [start, end) whose task is gone */
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
    free(l->ids);
    free(l->states);
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
}

static void put(struct client_tasks *c, const struct task_row *row)
{
    struct task_list *l = need_list(c, row->client);
    size_t at = place_of(l, row->id);
    if (at < l->end && l->ids[at] == row->id) {
        l->ended -= l->states[at] == ENDED;
        l->states[at] = (uint8_t)row->state;
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
    l->ids[at] = row->id;
    l->states[at] = (uint8_t)row->state;
    l->end++;
}

static void take(struct client_tasks *c, const struct task_row *row)
{
    struct task_list *l = find_list(c, row->client);
    size_t at = l ? place_of(l, row->id) : 0;
    if (!l || at == l->end || l->ids[at] != row->id || l->states[at] == ENDED)
        return;
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
        if (rows[i].table != &table_task_row ||
            ((const struct task_row *)rows[i].row)->owner != TASK_OWNER_JOB)
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
    int64_t below; /* what is left to look at */
};

/* Looks at LOOK_MAX places at most. True when there may be more. */
static bool walk_some(struct client_tasks *c, struct walk *w)
{
    const struct task_list *l = find_list(c, w->query->client);
    size_t at = l ? place_of(l, w->below) : 0, first = l ? l->start : 0;
    for (size_t looked = 0; at > first && w->count < w->query->limit; looked++) {
        if (looked == LOOK_MAX)
            return true;
        w->below = l->ids[--at];
        if (w->below < w->query->from_id)
            return false;
        if (l->states[at] != ENDED && (w->state < 0 || l->states[at] == (uint8_t)w->state))
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
