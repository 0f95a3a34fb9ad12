#include "base/heap.h"

#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

void heap_free(struct heap *h)
{
    free(h->nodes);
    *h = (struct heap){0};
}

static void set(struct heap *h, uint32_t index, struct heap_node *n)
{
    h->nodes[index] = n;
    n->place = index + 1;
}

static void sift_up(struct heap *h, uint32_t i, struct heap_node *n)
{
    while (i) {
        uint32_t parent = (i - 1) / 2;
        if (h->nodes[parent]->key <= n->key)
            break;
        set(h, i, h->nodes[parent]);
        i = parent;
    }
    set(h, i, n);
}

static void sift_down(struct heap *h, uint32_t i, struct heap_node *n)
{
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= h->count)
            break;
        if (child + 1 < h->count && h->nodes[child + 1]->key < h->nodes[child]->key)
            child++;
        if (h->nodes[child]->key >= n->key)
            break;
        set(h, i, h->nodes[child]);
        i = child;
    }
    set(h, i, n);
}

void heap_put(struct heap *h, struct heap_node *n, uint64_t key)
{
    if (n->place) {
        bool smaller = key < n->key;
        n->key = key;
        if (smaller)
            sift_up(h, n->place - 1, n);
        else
            sift_down(h, n->place - 1, n);
        return;
    }
    if (h->count == h->capacity) {
        h->capacity = h->capacity ? h->capacity * 2 : 64;
        h->nodes = must_realloc(h->nodes, h->capacity * sizeof *h->nodes);
    }
    n->key = key;
    sift_up(h, h->count++, n);
}

void heap_remove(struct heap *h, struct heap_node *n)
{
    if (!n->place)
        return;
    uint32_t i = n->place - 1;
    struct heap_node *last = h->nodes[--h->count];
    n->place = 0;
    if (last == n)
        return;
    if (i && h->nodes[(i - 1) / 2]->key > last->key)
        sift_up(h, i, last);
    else
        sift_down(h, i, last);
}
