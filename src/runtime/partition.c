#include "runtime/partition.h"

#include <unistd.h>

#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

#define X(id, name, key, minimum) [PARTITION_OF_##id] = {name, key, PARTITION_##minimum},
const struct partition_rule partition_rules[PARTITION_DOMAIN_COUNT] = {PARTITION_LIST(X)};
#undef X

uint64_t partition_hash(struct str a, struct str b)
{
    uint64_t hash = hash_fnv1a(HASH_FNV_START, a.ptr, a.len);
    if (!b.ptr)
        return hash;
    return hash_fnv1a(hash_fnv1a(hash, ":", 1), b.ptr, b.len);
}

uint32_t partition_of(uint64_t hash, uint32_t count)
{
    MUST(count > 0);
    return (uint32_t)(hash % count);
}

int64_t partition_cpus(const struct settings *s)
{
    if (s->runtime_cpus > 0)
        return s->runtime_cpus;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? online : 1;
}

/* A machine with more CPUs than half the slots has one partition per slot. */
static uint32_t outbound_minimum(int64_t cpus)
{
    uint32_t count = 1;
    while (count < PARTITION_SLOTS && count < 2 * cpus)
        count *= 2;
    return count;
}

static enum err_code count_outbound(int64_t set, int64_t cpus, uint32_t *ret, struct err *err)
{
    uint32_t minimum = outbound_minimum(cpus);
    int64_t twice = 2 * cpus < PARTITION_SLOTS ? 2 * cpus : PARTITION_SLOTS;
    if (set && set < twice)
        return err_set(err, ERR_CONFIG_INVALID,
                       "runtime.partitions.outbound (%lld) must be at least twice the CPUs (%lld)",
                       (long long)set, (long long)twice);
    if (set & (set - 1))
        return err_set(err, ERR_CONFIG_INVALID,
                       "runtime.partitions.outbound (%lld) must be a power of two, such as %u",
                       (long long)set, minimum);
    *ret = set ? (uint32_t)set : minimum;
    return ERR_OK;
}

static enum err_code count_ingest(int64_t set, int64_t cpus, uint32_t *ret, struct err *err)
{
    if (set && set < cpus)
        return err_set(err, ERR_CONFIG_INVALID,
                       "runtime.partitions.ingest (%lld) must be at least the CPUs (%lld)", (long long)set,
                       (long long)cpus);
    *ret = (uint32_t)(set ? set : cpus);
    return ERR_OK;
}

enum err_code partition_count_all(const struct settings *s, int64_t cpus, struct partition_counts *ret,
                                  struct err *err)
{
    struct partition_counts counts = {{0}};
    if (count_outbound(s->runtime_partitions_outbound, cpus, &counts.of[PARTITION_OF_OUTBOUND], err) !=
            ERR_OK ||
        count_ingest(s->runtime_partitions_ingest, cpus, &counts.of[PARTITION_OF_INGEST], err) != ERR_OK)
        return err->code;
    counts.of[PARTITION_OF_SESSION] = counts.of[PARTITION_OF_OUTBOUND];
    if (s->runtime_partitions_replay & (s->runtime_partitions_replay - 1))
        return err_set(err, ERR_CONFIG_INVALID,
                       "runtime.partitions.replay (%lld) must be a power of two, such as 2",
                       (long long)s->runtime_partitions_replay);
    counts.of[PARTITION_OF_REPLAY] = (uint32_t)s->runtime_partitions_replay;
    *ret = counts;
    return ERR_OK;
}
