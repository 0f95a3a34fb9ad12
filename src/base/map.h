/* base/map.h - a chained hash table of nodes that live inside other structs; it owns no entry.
 *
 * The caller brings the hash and compares the keys: walk map_first()/map_next() over equal hashes. */
#ifndef WEIR_BASE_MAP_H
#define WEIR_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_node {
    struct map_node *next;
    uint64_t hash;
};

struct map {
    struct map_node **slots;
    size_t count, slot_count; /* slot_count is a power of two or 0 */
};

void map_free(struct map *m);                                   /* frees the table, not the entries */
void map_put(struct map *m, struct map_node *n, uint64_t hash); /* equal hashes may stand together */
void map_remove(struct map *m, struct map_node *n);             /* must be in */
struct map_node *map_first(const struct map *m, uint64_t hash); /* an entry of that hash, or NULL */
struct map_node *map_next(const struct map_node *n);            /* the next one of the same hash */
void map_clear(struct map *m); /* forgets the entries; keeps the table, a large one while it is well used */
/* Calls fn for every entry; fn may free it. The map is empty afterwards. */
void map_drain(struct map *m, void (*fn)(struct map_node *n, void *arg), void *arg);
/* Calls fn for every entry; fn must not change the map. */
void map_each(const struct map *m, void (*fn)(struct map_node *n, void *arg), void *arg);

#endif
