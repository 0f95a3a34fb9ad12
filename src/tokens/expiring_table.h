/* tokens/expiring_table.h - digests that are remembered until a time, a bounded number of them.
 *
 * Nothing is forgotten before its time to make room: a full table says so, and its caller refuses. A table
 * that dropped what it should know would let a revoked or forged token pass in silence.
 * Threads: none of its own; the owner locks. */
#ifndef WEIR_TOKENS_EXPIRING_TABLE_H
#define WEIR_TOKENS_EXPIRING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/map.h"
#include "tokens/token_digest.h"

struct expiring_entry {
    struct map_node by_key;
    struct heap_node by_time;
    uint8_t key[TOKEN_DIGEST_BYTES], value[TOKEN_DIGEST_BYTES];
    int64_t number;
};

struct expiring_table {
    struct map map;
    struct heap heap;
    size_t max;
};

void expiring_table_init(struct expiring_table *t, size_t max);
void expiring_table_free(struct expiring_table *t);
struct expiring_entry *expiring_find(const struct expiring_table *t, const uint8_t key[TOKEN_DIGEST_BYTES]);
/* A new entry, until `expires_at`; NULL when the table is full of entries that are still needed. */
struct expiring_entry *expiring_add(struct expiring_table *t, const uint8_t key[TOKEN_DIGEST_BYTES],
                                    int64_t expires_at, int64_t now);
/* Later, never earlier. */
void expiring_extend(struct expiring_table *t, struct expiring_entry *e, int64_t expires_at);

#endif
