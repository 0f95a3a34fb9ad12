#include "tokens/expiring_table.h"

#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

void expiring_table_init(struct expiring_table *t, size_t max)
{
    *t = (struct expiring_table){.max = max};
}

static void free_entry(struct map_node *n, void *context)
{
    (void)context;
    free(CONTAINER_OF(n, struct expiring_entry, by_key));
}

void expiring_table_free(struct expiring_table *t)
{
    heap_free(&t->heap);
    map_drain(&t->map, free_entry, NULL);
    map_free(&t->map);
}

static uint64_t place_of(const uint8_t key[TOKEN_DIGEST_BYTES])
{
    uint64_t place; /* of a SHA-256: spread as well as any hash of it */
    memcpy(&place, key, sizeof place);
    return place;
}

struct expiring_entry *expiring_find(const struct expiring_table *t, const uint8_t key[TOKEN_DIGEST_BYTES])
{
    for (struct map_node *n = map_first(&t->map, place_of(key)); n; n = map_next(n)) {
        struct expiring_entry *e = CONTAINER_OF(n, struct expiring_entry, by_key);
        if (memcmp(e->key, key, TOKEN_DIGEST_BYTES) == 0)
            return e;
    }
    return NULL;
}

static void drop_expired(struct expiring_table *t, int64_t now)
{
    for (struct heap_node *n = heap_first(&t->heap); n && (int64_t)n->key <= now; n = heap_first(&t->heap)) {
        struct expiring_entry *e = CONTAINER_OF(n, struct expiring_entry, by_time);
        heap_remove(&t->heap, n);
        map_remove(&t->map, &e->by_key);
        free(e);
    }
}

struct expiring_entry *expiring_add(struct expiring_table *t, const uint8_t key[TOKEN_DIGEST_BYTES],
                                    int64_t expires_at, int64_t now)
{
    drop_expired(t, now);
    if (t->heap.count >= t->max)
        return NULL;
    struct expiring_entry *e = must_alloc(sizeof *e);
    memcpy(e->key, key, TOKEN_DIGEST_BYTES);
    map_put(&t->map, &e->by_key, place_of(key));
    heap_put(&t->heap, &e->by_time, expires_at > 0 ? (uint64_t)expires_at : 0);
    return e;
}

void expiring_extend(struct expiring_table *t, struct expiring_entry *e, int64_t expires_at)
{
    if (expires_at > (int64_t)e->by_time.key)
        heap_put(&t->heap, &e->by_time, (uint64_t)expires_at);
}
