#include "base/heap.h"

#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

enum { CHILDREN = 4 };

void heap_free(struct heap *h)
{
    free(h->entries);
    *h = (struct heap){0};
}

static void set(struct heap *h, uint32_t index, struct heap_entry e)
{
    h->entries[index] = e;
    e.node->place = index + 1;
}

static void sift_up(struct heap *h, uint32_t i, struct heap_entry e)
{
    while (i) {
        uint32_t parent = (i - 1) / CHILDREN;
        if (h->entries[parent].key <= e.key)
            break;
        set(h, i, h->entries[parent]);
        i = parent;
    }
    set(h, i, e);
}

/* The place of the smallest child of i; i itself when it has none. */
static uint32_t smallest_child(const struct heap *h, uint32_t i)
{
    uint32_t first = CHILDREN * i + 1;
    if (first >= h->count)
        return i;
    uint32_t end = h->count - first < CHILDREN ? h->count : first + CHILDREN, best = first;
    for (uint32_t c = first + 1; c < end; c++)
        if (h->entries[c].key < h->entries[best].key)
            best = c;
    return best;
}

static void sift_down(struct heap *h, uint32_t i, struct heap_entry e)
{
    for (uint32_t child; (child = smallest_child(h, i)) != i; i = child) {
        if (h->entries[child].key >= e.key)
            break;
        set(h, i, h->entries[child]);
    }
    set(h, i, e);
}

void heap_put(struct heap *h, struct heap_node *n, uint64_t key)
{
    struct heap_entry e = {key, n};
    if (n->place) {
        bool smaller = key < n->key;
        n->key = key;
        if (smaller)
            sift_up(h, n->place - 1, e);
        else
            sift_down(h, n->place - 1, e);
        return;
    }
    if (h->count == h->capacity) {
        h->capacity = h->capacity ? h->capacity * 2 : 64;
        h->entries = must_realloc(h->entries, h->capacity * sizeof *h->entries);
    }
    n->key = key;
    sift_up(h, h->count++, e);
}

void heap_remove(struct heap *h, struct heap_node *n)
{
    if (!n->place)
        return;
    uint32_t i = n->place - 1;
    struct heap_entry last = h->entries[--h->count];
    n->place = 0;
    if (last.node == n)
        return;
    if (i && h->entries[(i - 1) / CHILDREN].key > last.key)
        sift_up(h, i, last);
    else
        sift_down(h, i, last);
}
