/* store/idem_index.h - idempotency keys in memory: hash of (client, key) to job ids.
 *
 * 16 bytes a slot, at most half full (about 32 MB per million keys). A hit is only a candidate: the caller
 * compares client, key and fingerprint with the job's row. Loaded at start from the append-only `idem`
 * table; the commit thread owns it. */
#ifndef WEIR_STORE_IDEM_INDEX_H
#define WEIR_STORE_IDEM_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct idem_slot {
    uint64_t hash; /* 0: free, 1: removed */
    int64_t job;
};

struct idem_index {
    struct idem_slot *slots;
    size_t slot_count, used, filled; /* filled counts removed ones too */
};

uint64_t idem_hash(int64_t client, struct str key); /* stable on disk, never 0 or 1 */
void idem_put(struct idem_index *x, uint64_t hash, int64_t job);
void idem_remove(struct idem_index *x, uint64_t hash, int64_t job);
/* Candidates of that hash: call with *cursor = 0 first; 0 when there is none left. */
int64_t idem_find(const struct idem_index *x, uint64_t hash, size_t *cursor);
void idem_clear(struct idem_index *x); /* empty again; keeps the memory while it is little */
void idem_free(struct idem_index *x);

#endif
