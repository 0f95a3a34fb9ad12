#include "kernel/ended_leases.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

enum { LEASES_MAX = 100000 }; /* beyond it the oldest are forgotten early: their workers hear lease_lost */

static void forget_first(struct ended_leases *e)
{
    struct ended_lease *first = CONTAINER_OF(heap_first(&e->by_end), struct ended_lease, until);
    heap_remove(&e->by_end, &first->until);
    map_remove(&e->by_task, &first->node);
    free(first);
}

void ended_leases_add(struct ended_leases *e, const struct ended_lease *lease, int64_t until_steady_ms)
{
    if (e->by_end.count >= LEASES_MAX)
        forget_first(e);
    struct ended_lease *x = must_alloc(sizeof *x);
    x->task = lease->task;
    x->token = lease->token;
    x->client = lease->client;
    x->how = lease->how;
    map_put(&e->by_task, &x->node, hash_mix((uint64_t)x->task));
    heap_put(&e->by_end, &x->until, (uint64_t)until_steady_ms);
}

const struct ended_lease *ended_leases_find(const struct ended_leases *e, int64_t task, int64_t token,
                                            enum lease_end how)
{
    for (struct map_node *n = map_first(&e->by_task, hash_mix((uint64_t)task)); n; n = map_next(n)) {
        const struct ended_lease *x = CONTAINER_OF(n, struct ended_lease, node);
        if (x->task == task && x->token == token && x->how == how)
            return x;
    }
    return NULL;
}

void ended_leases_forget(struct ended_leases *e, int64_t now_steady_ms)
{
    while (e->by_end.count && heap_first(&e->by_end)->key <= (uint64_t)now_steady_ms)
        forget_first(e);
}

void ended_leases_free(struct ended_leases *e)
{
    while (e->by_end.count)
        forget_first(e);
    map_free(&e->by_task);
    heap_free(&e->by_end);
}
