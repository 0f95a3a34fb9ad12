/* runtime/partition.h - the partition of a key, and the number of partitions of each kind.
 *
 * Rule:      FNV-1a 64 over the UTF-8 of "a:b" (or of a key that has one part), modulo the count (AT-07). The
 *            same key is in the same partition as long as the count is; after every restart, on every
 *            machine. contracts/vectors/partitions.fnv1a64.json holds examples, made by another program.
 * Counts:    fixed per start, from online CPUs and runtime.partitions.*; too few is refused. Nothing stored
 *            depends on a count: outbound work is stored with its slot, the hash modulo PARTITION_SLOTS.
 *            Outbound and replay counts divide that (powers of two), so slot modulo count is hash modulo
 *            count, a changed count needs no drained queue, and nodes with different counts share one store.
 * Callers:   any; pure but for partition_cpus(), which asks the system. */
#ifndef WEIR_RUNTIME_PARTITION_H
#define WEIR_RUNTIME_PARTITION_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "config/settings.h"

enum { PARTITION_SLOTS = 128 };

/* Least number of partitions. */
enum partition_minimum {
    PARTITION_TWICE_CPUS,
    PARTITION_CPUS,
    PARTITION_AS_OUTBOUND, /* always the same number */
    PARTITION_ONE,
    PARTITION_PER_KEY, /* not hashed: one child for each key that is alive */
};

/* X(id, name, its key, minimum). Replay's partitions are its own: none is shared with live work. */
#define PARTITION_LIST(X)                                                                                    \
    X(OUTBOUND, "outbound", "instance_id:external_room_id", TWICE_CPUS)                                      \
    X(INGEST, "ingest", "instance_id:room_id", CPUS)                                                         \
    X(SESSION, "session", "session_key", AS_OUTBOUND)                                                        \
    X(REPLAY, "replay", "dead_letter_id", ONE)                                                               \
    X(ROOM, "room", "room_id", PER_KEY)                                                                      \
    X(INSTANCE, "instance", "instance_id", PER_KEY)                                                          \
    X(ONBOARDING, "onboarding", "onboarding_id", PER_KEY)

#define X(id, name, key, minimum) PARTITION_OF_##id,
enum partition_domain { PARTITION_LIST(X) PARTITION_DOMAIN_COUNT };
#undef X

struct partition_rule {
    const char *name, *key;
    enum partition_minimum minimum;
};

extern const struct partition_rule partition_rules[PARTITION_DOMAIN_COUNT];

struct partition_counts {
    uint32_t of[PARTITION_DOMAIN_COUNT]; /* 0: one child per key */
};

uint64_t partition_hash(struct str a, struct str b); /* of "a:b"; of "a" when b is absent */
uint32_t partition_of(uint64_t hash, uint32_t count);
static inline uint32_t partition_slot(uint64_t hash)
{
    return partition_of(hash, PARTITION_SLOTS);
}

int64_t partition_cpus(const struct settings *s); /* runtime.cpus, or as many as are online */
/* ERR_CONFIG_INVALID with one line that names the key, what it has and what it needs. */
MUST_CHECK enum err_code partition_count_all(const struct settings *s, int64_t cpus,
                                             struct partition_counts *ret, struct err *err);

#endif
