#include "store/timers.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

struct timer {
    struct map_node node;
    struct heap_node due;
    struct timer_row row;
};

static uint64_t key_hash(const struct timer_row *key)
{
    return hash_mix(hash_mix((uint64_t)key->owner) ^ (uint64_t)key->kind);
}

static struct timer *find(const struct timers *t, const struct timer_row *key)
{
    for (struct map_node *n = map_first(&t->by_key, key_hash(key)); n; n = map_next(n)) {
        struct timer *x = CONTAINER_OF(n, struct timer, node);
        if (x->row.owner == key->owner && x->row.kind == key->kind)
            return x;
    }
    return NULL;
}

static uint64_t due_key(const struct timer *x)
{
    return x->row.due_ms < 0 ? 0 : (uint64_t)x->row.due_ms;
}

void timers_put(struct timers *t, const struct timer_row *row)
{
    struct timer *x = find(t, row);
    if (!x) {
        x = must_alloc(sizeof *x);
        map_put(&t->by_key, &x->node, key_hash(row));
    }
    x->row = *row;
    heap_put(&t->by_due, &x->due, due_key(x));
}

void timers_remove(struct timers *t, const struct timer_row *key)
{
    struct timer *x = find(t, key);
    if (!x)
        return;
    heap_remove(&t->by_due, &x->due);
    map_remove(&t->by_key, &x->node);
    free(x);
}

static void drain(struct map_node *n, void *arg)
{
    struct timers *t = arg;
    struct timer *x = CONTAINER_OF(n, struct timer, node);
    heap_remove(&t->by_due, &x->due);
    free(x);
}

void timers_clear(struct timers *t)
{
    map_drain(&t->by_key, drain, t);
}

void timers_free(struct timers *t)
{
    timers_clear(t);
    map_free(&t->by_key);
    heap_free(&t->by_due);
}

size_t timers_due(struct timers *t, int64_t wall_ms, struct timer_row *ret_rows, size_t max)
{
    struct heap_node *n;
    size_t count = 0;
    for (; count < max && (n = heap_first(&t->by_due)) && n->key <= (uint64_t)wall_ms; count++) {
        ret_rows[count] = CONTAINER_OF(n, struct timer, due)->row;
        heap_remove(&t->by_due, n);
    }
    for (size_t i = 0; i < count; i++) {
        struct timer *x = find(t, &ret_rows[i]);
        heap_put(&t->by_due, &x->due, due_key(x));
    }
    return count;
}

int64_t timers_next_ms(const struct timers *t)
{
    const struct heap_node *n = heap_first(&t->by_due);
    return n ? (int64_t)n->key : INT64_MAX;
}
