#include "store/targets.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

enum { FIRST_SLOTS = 1 };

struct target *targets_find(const struct targets *t, int64_t id)
{
    for (struct map_node *n = map_first(&t->by_id, hash_mix((uint64_t)id)); n; n = map_next(n)) {
        struct target *x = CONTAINER_OF(n, struct target, node);
        if (x->id == id)
            return x;
    }
    return NULL;
}

struct target *targets_join(struct targets *t, int64_t id)
{
    struct target *x = targets_find(t, id);
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

static void free_target(struct map_node *n, void *arg)
{
    (void)arg;
    struct target *x = CONTAINER_OF(n, struct target, node);
    heap_free(&x->waiting);
    free(x);
}

void targets_leave(struct targets *t, struct target *x)
{
    if (--x->members || t->loaded)
        return;
    map_remove(&t->by_id, &x->node);
    free_target(&x->node, NULL);
}

void targets_clear(struct targets *t)
{
    map_drain(&t->by_id, free_target, NULL);
}

void targets_free(struct targets *t)
{
    targets_clear(t);
    map_free(&t->by_id);
}
