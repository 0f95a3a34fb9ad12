#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/must.h"

#include "base/banned.h"

void map_free(struct map *m)
{
    free(m->slots);
    *m = (struct map){0};
}

enum { KEPT_SLOTS_MAX = 4096, USED_SHARE = 8 };

void map_clear(struct map *m)
{
    if (!m->count)
        return;
    if (m->slot_count > KEPT_SLOTS_MAX && m->count < m->slot_count / USED_SHARE) {
        map_free(m);
        return;
    }
    memset(m->slots, 0, m->slot_count * sizeof *m->slots);
    m->count = 0;
}

static void grow(struct map *m)
{
    size_t slot_count = m->slot_count ? m->slot_count * 2 : 64;
    struct map_node **slots = must_alloc(slot_count * sizeof *slots);
    for (size_t i = 0; i < m->slot_count; i++)
        for (struct map_node *n = m->slots[i], *next; n; n = next) {
            next = n->next;
            struct map_node **slot = &slots[n->hash & (slot_count - 1)];
            n->next = *slot;
            *slot = n;
        }
    free(m->slots);
    m->slots = slots;
    m->slot_count = slot_count;
}

void map_put(struct map *m, struct map_node *n, uint64_t hash)
{
    if (m->count >= m->slot_count)
        grow(m);
    struct map_node **slot = &m->slots[hash & (m->slot_count - 1)];
    n->hash = hash;
    n->next = *slot;
    *slot = n;
    m->count++;
}

void map_remove(struct map *m, struct map_node *n)
{
    struct map_node **at = &m->slots[n->hash & (m->slot_count - 1)];
    while (*at != n) {
        MUST(*at);
        at = &(*at)->next;
    }
    *at = n->next;
    m->count--;
}

static struct map_node *skip_to(struct map_node *n, uint64_t hash)
{
    while (n && n->hash != hash)
        n = n->next;
    return n;
}

struct map_node *map_first(const struct map *m, uint64_t hash)
{
    return m->slot_count ? skip_to(m->slots[hash & (m->slot_count - 1)], hash) : NULL;
}

struct map_node *map_next(const struct map_node *n)
{
    return skip_to(n->next, n->hash);
}

void map_drain(struct map *m, void (*fn)(struct map_node *n, void *arg), void *arg)
{
    for (size_t i = 0; i < m->slot_count; i++) {
        struct map_node *n = m->slots[i];
        m->slots[i] = NULL;
        while (n) {
            struct map_node *next = n->next;
            fn(n, arg);
            n = next;
        }
    }
    m->count = 0;
}

void map_each(const struct map *m, void (*fn)(struct map_node *n, void *arg), void *arg)
{
    for (size_t i = 0; i < m->slot_count; i++)
        for (struct map_node *n = m->slots[i], *next; n; n = next) {
            next = n->next;
            fn(n, arg);
        }
}
