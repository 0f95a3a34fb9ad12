#include "store/targets.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

enum { FIRST_SLOTS = 1, KEPT_MAX = 4096 };

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
    if (--x->members || t->outlive)
        return;
    map_remove(&t->by_id, &x->node);
    free_target(&x->node, NULL);
}

/* Failures are remembered while there is room for them; who only did well starts with one slot again. */
void targets_thin(struct targets *t)
{
    for (int all = 0; all < 2 && t->by_id.count > KEPT_MAX; all++)
        for (size_t i = 0; i < t->by_id.slot_count; i++)
            for (struct map_node *n = t->by_id.slots[i], *next; n; n = next) {
                next = n->next;
                struct target *x = CONTAINER_OF(n, struct target, node);
                if (x->failures && !all)
                    continue;
                map_remove(&t->by_id, n);
                free_target(n, NULL);
            }
}

void targets_free(struct targets *t)
{
    map_drain(&t->by_id, free_target, NULL);
    map_free(&t->by_id);
}
