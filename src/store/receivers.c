#include "store/receivers.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

enum { FIRST_SLOTS = 1 };

struct receiver *receivers_find(const struct receivers *t, int64_t id)
{
    for (struct map_node *n = map_first(&t->by_id, hash_mix((uint64_t)id)); n; n = map_next(n)) {
        struct receiver *x = CONTAINER_OF(n, struct receiver, node);
        if (x->id == id)
            return x;
    }
    return NULL;
}

struct receiver *receivers_join(struct receivers *t, int64_t id)
{
    struct receiver *x = receivers_find(t, id);
    if (!x) {
        x = must_alloc(sizeof *x);
        x->id = id;
        x->slots = FIRST_SLOTS;
        x->unknown = t->loaded;
        map_put(&t->by_id, &x->node, hash_mix((uint64_t)id));
    }
    x->members++;
    return x;
}

static void free_receiver(struct map_node *n, void *arg)
{
    (void)arg;
    struct receiver *x = CONTAINER_OF(n, struct receiver, node);
    heap_free(&x->waiting);
    free(x);
}

void receivers_leave(struct receivers *t, struct receiver *x)
{
    if (--x->members || t->loaded)
        return;
    map_remove(&t->by_id, &x->node);
    free_receiver(&x->node, NULL);
}

void receivers_clear(struct receivers *t)
{
    map_drain(&t->by_id, free_receiver, NULL);
}

void receivers_free(struct receivers *t)
{
    receivers_clear(t);
    map_free(&t->by_id);
}
