/* Workers: every id that claimed or beat lately. */
#include <stdlib.h>

#include "base/must.h"
#include "store/live_internal.h"

#include "base/banned.h"

struct worker_seen *live_worker(struct live *l, struct str id, int64_t steady_ms)
{
    uint64_t hash = live_text_hash(id);
    for (struct map_node *n = map_first(&l->workers, hash); n; n = map_next(n)) {
        struct worker_seen *w = CONTAINER_OF(n, struct worker_seen, node);
        if (str_equal(w->id, id)) {
            if (steady_ms > w->last_seen_ms)
                w->last_seen_ms = steady_ms;
            return w;
        }
    }
    struct worker_seen *w = must_alloc(sizeof *w);
    w->id = live_copy_str(id);
    w->last_seen_ms = steady_ms;
    map_put(&l->workers, &w->node, hash);
    return w;
}

struct worker_count {
    int64_t after;
    uint32_t count;
};

static void count_worker(struct map_node *n, void *arg)
{
    struct worker_count *c = arg;
    const struct worker_seen *w = CONTAINER_OF(n, struct worker_seen, node);
    c->count += !w->is_domain && w->last_seen_ms >= c->after;
}

uint32_t live_worker_count(const struct live *l, int64_t seen_after_steady_ms)
{
    struct worker_count c = {seen_after_steady_ms, 0};
    map_each(&l->workers, count_worker, &c);
    return c.count;
}

static void free_worker(struct map_node *n, void *arg)
{
    (void)arg;
    struct worker_seen *w = CONTAINER_OF(n, struct worker_seen, node);
    live_free_str(w->id);
    free(w);
}

void live_forget_workers(struct live *l, int64_t seen_before_steady_ms)
{
    for (size_t i = 0; i < l->workers.slot_count; i++)
        for (struct map_node *n = l->workers.slots[i], *next; n; n = next) {
            next = n->next;
            struct worker_seen *w = CONTAINER_OF(n, struct worker_seen, node);
            if (w->tasks || w->last_seen_ms >= seen_before_steady_ms)
                continue;
            map_remove(&l->workers, n);
            free_worker(n, NULL);
        }
}

void live_workers_free(struct live *l)
{
    map_drain(&l->workers, free_worker, NULL);
    map_free(&l->workers);
}
