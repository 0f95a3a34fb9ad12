/* base/heap.h - a heap of nodes that live inside other structs; the smallest key is first.
 *
 * Each node knows its place, so any node leaves in O(log n). A node is in at most one heap.
 * The array holds the keys beside the pointers and each place has four children: finding the smallest
 * child reads one cache line of the array, not four nodes somewhere in memory. */
#ifndef WEIR_BASE_HEAP_H
#define WEIR_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
    uint64_t key;
    uint32_t place; /* 1-based index; 0 = not in a heap */
};

struct heap_entry {
    uint64_t key;
    struct heap_node *node;
};

struct heap {
    struct heap_entry *entries;
    uint32_t count, capacity;
};

void heap_free(struct heap *h);                                   /* forgets the nodes, frees the array */
void heap_put(struct heap *h, struct heap_node *n, uint64_t key); /* inserts, or moves if it is in */
void heap_remove(struct heap *h, struct heap_node *n);            /* no-op when it is not in */
static inline struct heap_node *heap_first(const struct heap *h)
{
    return h->count ? h->entries[0].node : NULL;
}
static inline bool heap_holds(const struct heap_node *n)
{
    return n->place != 0;
}
/* Is it in this heap, and not in another one? */
static inline bool heap_has(const struct heap *h, const struct heap_node *n)
{
    return n->place && n->place <= h->count && h->entries[n->place - 1].node == n;
}

#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
