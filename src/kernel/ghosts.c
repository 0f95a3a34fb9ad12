#include "kernel/ghosts.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

enum { GHOSTS_MAX = 100000 }; /* beyond it the oldest are forgotten early: their workers hear lease_lost */

static void forget_first(struct ghosts *g)
{
    struct ghost *first = CONTAINER_OF(heap_first(&g->by_end), struct ghost, end);
    heap_remove(&g->by_end, &first->end);
    map_remove(&g->by_task, &first->node);
    free(first);
}

void ghosts_add(struct ghosts *g, int64_t task, int64_t token, int64_t client, int64_t until_steady_ms)
{
    if (g->by_end.count >= GHOSTS_MAX)
        forget_first(g);
    struct ghost *x = must_alloc(sizeof *x);
    x->task = task;
    x->token = token;
    x->client = client;
    map_put(&g->by_task, &x->node, hash_mix((uint64_t)task));
    heap_put(&g->by_end, &x->end, (uint64_t)until_steady_ms);
}

const struct ghost *ghosts_find(const struct ghosts *g, int64_t task, int64_t token)
{
    for (struct map_node *n = map_first(&g->by_task, hash_mix((uint64_t)task)); n; n = map_next(n)) {
        const struct ghost *x = CONTAINER_OF(n, struct ghost, node);
        if (x->task == task && x->token == token)
            return x;
    }
    return NULL;
}

void ghosts_forget(struct ghosts *g, int64_t now_steady_ms)
{
    while (g->by_end.count && heap_first(&g->by_end)->key <= (uint64_t)now_steady_ms)
        forget_first(g);
}

void ghosts_free(struct ghosts *g)
{
    while (g->by_end.count)
        forget_first(g);
    map_free(&g->by_task);
    heap_free(&g->by_end);
}
