/* Keys to partitions: against vectors that another program made; how many there are, and when too few. */
#include <stdio.h>
#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "runtime/partition.h"
#include "vectors.h"

#include "base/banned.h"

enum { VECTORS_MIN = 10, KEYS = 20000 };

/* [TOP-081] [TOP-087] [TOP-089] [TOP-091] The hash is of "a:b", and the partition its remainder. */
ARENA_TEST(keys_map_as_another_implementation_says, a)
{
    size_t count = 0;
    for (const struct json *j = vectors_read(a, "partitions.fnv1a64.json")->child; j; j = j->next, count++) {
        char hex[17];
        uint64_t hash = partition_hash(vectors_text(j, "a"), vectors_text(j, "b"));
        snprintf(hex, sizeof hex, "%016llx", (unsigned long long)hash);
        assert_true(str_is(vectors_text(j, "fnv1a64Hex"), hex));
        int64_t slot;
        assert_true(json_to_int(json_get(j, "slot"), &slot));
        assert_int_equal(partition_slot(hash), slot);
        for (const struct json *p = json_get(j, "partition")->child; p; p = p->next) {
            int64_t of, wanted;
            assert_true(str_to_int(p->key, 1, 128, &of) && json_to_int(p, &wanted));
            assert_int_equal(partition_of(hash, (uint32_t)of), wanted);
        }
    }
    assert_true(count >= VECTORS_MIN);
}

/* What is stored is the slot; whatever the count is, it says the partition. [TOP-081] [TOP-089] */
TEST(a_slot_tells_the_partition_for_every_outbound_count)
{
    for (uint32_t count = 1; count <= PARTITION_SLOTS; count *= 2)
        for (int i = 0; i < KEYS; i += 7) {
            char a[24], b[24];
            snprintf(a, sizeof a, "%d", i);
            snprintf(b, sizeof b, "%d", i * 31);
            uint64_t hash = partition_hash(str_of(a), str_of(b));
            assert_int_equal(partition_slot(hash) % count, partition_of(hash, count));
        }
}

/* No partition gets much more than its share. [TOP-082] */
TEST(keys_spread_over_all_partitions)
{
    for (uint32_t count = 2; count <= 64; count *= 2) {
        uint32_t of[64] = {0};
        for (int i = 0; i < KEYS; i++) {
            char job[24];
            snprintf(job, sizeof job, "%lld", 1763328000000000 + i * 977LL);
            of[partition_of(partition_hash(STR("1763328000000123"), str_of(job)), count)]++;
        }
        for (uint32_t p = 0; p < count; p++) {
            assert_true(of[p] * count > KEYS / 2);
            assert_true(of[p] * count < KEYS * 2);
        }
    }
}

static struct settings with(int64_t outbound, int64_t ingest)
{
    struct settings s;
    settings_init(&s);
    s.runtime_partitions_outbound = outbound;
    s.runtime_partitions_ingest = ingest;
    return s;
}

/* [TOP-087] [TOP-089] [TOP-091] */
TEST(counts_follow_the_cpus)
{
    static const struct {
        int64_t cpus;
        uint32_t outbound, ingest;
    } cases[] = {{1, 2, 1}, {2, 4, 2}, {3, 8, 3}, {8, 16, 8}, {33, 128, 33}, {64, 128, 64}, {96, 128, 96}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct settings s = with(0, 0);
        struct partition_counts counts;
        struct err err;
        assert_int_equal(partition_count_all(&s, cases[i].cpus, &counts, &err), ERR_OK);
        assert_int_equal(counts.of[PARTITION_OF_OUTBOUND], cases[i].outbound);
        assert_int_equal(counts.of[PARTITION_OF_INGEST], cases[i].ingest);
        assert_int_equal(counts.of[PARTITION_OF_SESSION], cases[i].outbound);
        assert_int_equal(counts.of[PARTITION_OF_REPLAY], 2);
        assert_int_equal(counts.of[PARTITION_OF_ROOM], 0);
        settings_free(&s);
    }
}

static void expect_counts(int64_t outbound, int64_t ingest, int64_t cpus, const char *refusal)
{
    struct settings s = with(outbound, ingest);
    struct partition_counts counts;
    struct err err = {.detail = ""};
    enum err_code code = partition_count_all(&s, cpus, &counts, &err);
    assert_int_equal(code, refusal ? ERR_CONFIG_INVALID : ERR_OK);
    assert_string_equal(err.detail, refusal ? refusal : "");
    if (!refusal) {
        assert_int_equal(counts.of[PARTITION_OF_OUTBOUND], outbound);
        assert_int_equal(counts.of[PARTITION_OF_SESSION], outbound);
        assert_int_equal(counts.of[PARTITION_OF_INGEST], ingest);
    }
    settings_free(&s);
}

/* Below the minimum is refused, at it is not. [TOP-087] [TOP-089] */
TEST(too_few_partitions_are_refused)
{
    expect_counts(8, 4, 4, NULL);
    expect_counts(128, 4, 4, NULL);
    expect_counts(4, 4, 4, "runtime.partitions.outbound (4) must be at least twice the CPUs (8)");
    expect_counts(8, 3, 4, "runtime.partitions.ingest (3) must be at least the CPUs (4)");
    expect_counts(12, 4, 4, "runtime.partitions.outbound (12) must be a power of two, such as 8");
    expect_counts(64, 100, 100, "runtime.partitions.outbound (64) must be at least twice the CPUs (128)");
}

TEST(cpus_can_be_set)
{
    struct settings s;
    settings_init(&s);
    assert_true(partition_cpus(&s) >= 1);
    s.runtime_cpus = 7;
    assert_int_equal(partition_cpus(&s), 7);
    settings_free(&s);
}
