/* The run index: entries found by the writer and by readers whatever way they have gone, over restarts,
 * failing commits, deletes. On every store; on SQLite also where they lie, and what damage of theirs does. */
#include "store/bench_former.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/banned.h"

enum { RUNS = 7, ENTRIES_MAX = 12000, COMMIT_ENTRIES = 90, COMMITS = 160, LONG_ENTRIES = 9500 };

struct model {
    struct run_index_row entries[ENTRIES_MAX];
    size_t count;
};

static int by_key(const void *a, const void *b)
{
    const struct run_index_row *x = a, *y = b;
    if (x->run != y->run)
        return x->run < y->run ? -1 : 1;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static struct run_index_row entry_number(uint64_t n)
{
    return (struct run_index_row){
        .run = 1 + (int64_t)(hash_mix(n) % RUNS), .hash = (int64_t)hash_mix(n * 31 + 7), .place = (int64_t)n};
}

/* The next `count` entries in one commit. A failing one leaves nothing. */
static void add_entries(struct bench *b, struct model *m, size_t count, bool fails)
{
    struct row_change *rows = ARENA_ARRAY(b->arena, struct row_change, count + 1);
    struct job_row absent = {.id = 5};
    assert_true(m->count + count <= ENTRIES_MAX);
    for (size_t i = 0; i < count; i++) {
        m->entries[m->count + i] = entry_number(m->count + i);
        rows[i] = (struct row_change){&table_run_index_row, ROW_INSERT, &m->entries[m->count + i]};
    }
    rows[count] = (struct row_change){&table_job_row, ROW_DELETE, &absent};
    struct change_set c = {.rows = rows, .row_count = count + fails, .first_chunk = b->store->next_chunk};
    assert_int_equal(bench_commit(b, &c) == ERR_OK, !fails);
    m->count += fails ? 0 : count;
}

static void expect_some(struct bench *b, const struct model *m, size_t tries)
{
    for (size_t i = 0; i < tries; i++) {
        const struct run_index_row *want = &m->entries[bench_draw(b, m->count)];
        struct run_index_row other = entry_number(ENTRIES_MAX + bench_draw(b, 1 << 20));
        bench_expect_equal(&table_run_index_row, bench_fetch(b, &table_run_index_row, want), want);
        assert_null(bench_fetch(b, &table_run_index_row, &other));
    }
}

struct told {
    const struct run_index_row *want;
    size_t count, max;
};

static bool expect_next(const void *row, void *arg)
{
    struct told *t = arg;
    assert_true(t->count < t->max);
    bench_expect_equal(&table_run_index_row, row, &t->want[t->count++]);
    return true;
}

/* Every entry once, in order; and those of one run from somewhere on, by both sides. */
static void expect_all(struct bench *b, const struct model *m)
{
    struct err err;
    struct run_index_row *sorted = ARENA_ARRAY(b->arena, struct run_index_row, m->count);
    memcpy(sorted, m->entries, m->count * sizeof *sorted);
    qsort(sorted, m->count, sizeof *sorted, by_key);
    struct told all = {sorted, 0, m->count};
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_scan(b->reader, &table_run_index_row, expect_next, &all, &err),
                     ERR_OK);
    assert_int_equal(all.count, m->count);
    size_t first = bench_draw(b, m->count), end = first;
    while (end < m->count && end - first < 100 && sorted[end].run == sorted[first].run)
        end++;
    struct told some = {sorted + first, 0, end - first};
    assert_int_equal(b->reader->ops->reader_range(b->reader, &table_run_index_row, &sorted[first], 100,
                                                  expect_next, &some, &err),
                     ERR_OK);
    assert_int_equal(some.count, end - first);
    bench_end(b);
    some.count = 0;
    assert_int_equal(
        b->store->ops->range(b->store, &table_run_index_row, &sorted[first], 100, expect_next, &some, &err),
        ERR_OK);
    assert_int_equal(some.count, end - first);
    if (b->store->ops->abandon)
        b->store->ops->abandon(b->store);
}

BENCH_TEST(test_every_entry_is_found_whatever_way_it_has_gone, b)
{
    struct model *m = must_alloc(sizeof *m);
    struct err err;
    for (int i = 0; i < (b->shared ? COMMITS / 4 : COMMITS); i++) {
        add_entries(b, m, 1 + bench_draw(b, COMMIT_ENTRIES), false);
        if (bench_draw(b, 6) == 0)
            add_entries(b, m, 1 + bench_draw(b, COMMIT_ENTRIES), true);
        expect_some(b, m, 3);
        if (i % 10 == 0)
            expect_all(b, m);
        if (bench_draw(b, 12) == 0)
            assert_int_equal(b->store->ops->tend(b->store, true, &err), ERR_OK);
        if (b->on_disk && bench_draw(b, 25) == 0)
            bench_reopen(b);
    }
    expect_all(b, m);
    free(m);
}

BENCH_TEST(test_a_deleted_entry_does_not_come_back, b)
{
    struct model *m = must_alloc(sizeof *m);
    for (int i = 0; i < 30; i++) {
        add_entries(b, m, COMMIT_ENTRIES, false);
        struct run_index_row last = m->entries[--m->count]; /* and added again by the next round */
        assert_int_equal(bench_change(b, &table_run_index_row, ROW_DELETE, &last), ERR_OK);
        assert_null(bench_fetch(b, &table_run_index_row, &last));
        if (b->on_disk && i % 7 == 0)
            bench_reopen(b);
        assert_null(bench_fetch(b, &table_run_index_row, &last));
        for (int k = 0; k < i % 4; k++)
            add_entries(b, m, COMMIT_ENTRIES, false);
    }
    expect_all(b, m);
    free(m);
}

/* --- SQLite alone ---------------------------------------------------------------------------------- */

/* A merge that was begun and not ended, because the process was: the blocks are still there. */
BENCH_TEST_ON("sqlite", test_a_merge_that_was_interrupted_is_made_good, b)
{
    struct model *m = must_alloc(sizeof *m);
    for (int round = 0; round < 4; round++) {
        int64_t before = bench_file_number(b, "SELECT count(*) FROM run_index"), blocks;
        while (bench_file_number(b, "SELECT count(*) FROM run_index") == before)
            add_entries(b, m, 20, false);
        blocks = bench_file_number(b, "SELECT count(*) FROM deferred_run_index");
        assert_true(blocks * 20 >= BENCH_INDEX_GROUP); /* nothing of the group was dropped yet */
        bench_reopen(b);
        expect_all(b, m);
        expect_some(b, m, 40);
        while (bench_file_number(b, "SELECT count(*) FROM deferred_run_index") >= blocks / 2)
            add_entries(b, m, 20, false);
        expect_all(b, m);
        assert_true(bench_file_number(b, "SELECT count(*) FROM run_index") >= BENCH_INDEX_GROUP);
    }
    free(m);
}

/* What the table held before is not known at once; nothing is taken to be absent meanwhile. */
BENCH_TEST_ON("sqlite", test_a_large_table_is_learned_bit_by_bit, b)
{
    struct model *m = must_alloc(sizeof *m);
    struct err err;
    while (m->count < LONG_ENTRIES)
        add_entries(b, m, 95, false);
    assert_true(bench_file_number(b, "SELECT count(*) FROM run_index") > 2 * 4096);
    bench_reopen(b);
    for (int i = 0; i < 6; i++) {
        expect_some(b, m, 50);
        add_entries(b, m, 95, false);
        assert_int_equal(b->store->ops->tend(b->store, false, &err), ERR_OK);
    }
    expect_some(b, m, 300);
    expect_all(b, m);
    free(m);
}

/* As the eighth schema had it: every entry in its place. */
BENCH_TEST_ON("sqlite", test_entries_of_the_eighth_schema_are_found, b)
{
    struct model *m = must_alloc(sizeof *m);
    add_entries(b, m, 300, false);
    struct run_index_row gone = m->entries[--m->count];
    assert_int_equal(bench_change(b, &table_run_index_row, ROW_DELETE, &gone), ERR_OK);
    assert_int_equal(bench_file_number(b, "SELECT count(*) FROM run_index"), m->count);
    bench_from_version(b, 8, "INSERT INTO run_marks SELECT * FROM now.run_index");
    expect_all(b, m);
    expect_some(b, m, 100);
    add_entries(b, m, 50, false);
    expect_all(b, m);
    free(m);
}

/* As programs up to the twenty-first schema wrote it: two entries of run 3, with the former checksum. */
BENCH_TEST_ON("sqlite", test_a_block_of_a_former_program_is_taken, b)
{
    static const char content[] = "\x03\x02\x02"
                                  "hash one"
                                  "hash two"
                                  "\x0c\x04"; /* places 6 and 6 + 2 */
    uint64_t sum = hash_fnv1a(HASH_FNV_START, content, sizeof content - 1);
    char sql[300];
    int len = snprintf(sql, sizeof sql, "INSERT INTO mark_packs VALUES(1,x'");
    for (size_t i = 0; i < sizeof sum; i++)
        len += snprintf(sql + len, sizeof sql - (size_t)len, "%02x", ((unsigned char *)&sum)[i]);
    for (size_t i = 0; i + 1 < sizeof content; i++)
        len += snprintf(sql + len, sizeof sql - (size_t)len, "%02x", (unsigned char)content[i]);
    snprintf(sql + len, sizeof sql - (size_t)len, "')");
    bench_from_version(b, 21, sql);
    for (int i = 0; i < 2; i++) {
        struct run_index_row want = {.run = 3, .place = 6 + 2 * i};
        memcpy(&want.hash, content + 3 + sizeof want.hash * (size_t)i, sizeof want.hash);
        bench_expect_equal(&table_run_index_row, bench_fetch(b, &table_run_index_row, &want), &want);
    }
}

/* One byte of a block is another: it is told, and nothing is taken from it. */
BENCH_TEST_ON("sqlite", test_a_damaged_block_is_told, b)
{
    struct model *m = must_alloc(sizeof *m);
    add_entries(b, m, 40, false);
    add_entries(b, m, 40, false);
    int64_t size = bench_file_number(b, "SELECT length(block) FROM deferred_run_index ORDER BY n LIMIT 1");
    bench_file_run(b, "CREATE TABLE sound AS SELECT n,block FROM deferred_run_index");
    for (int64_t at = 1; at <= size; at += size / 25) {
        char sql[300];
        struct err err = {.code = ERR_OK};
        struct told all = {m->entries, 0, 0};
        snprintf(
            sql, sizeof sql,
            "UPDATE deferred_run_index SET block=CAST(substr(block,1,%lld-1)||"
            "CASE substr(block,%lld,1) WHEN x'21' THEN x'22' ELSE x'21' END||substr(block,%lld+1) AS BLOB)"
            " WHERE n=(SELECT min(n) FROM deferred_run_index)",
            (long long)at, (long long)at, (long long)at);
        bench_file_run(b, sql);
        bench_begin(b);
        assert_int_equal(
            b->reader->ops->reader_scan(b->reader, &table_run_index_row, expect_next, &all, &err),
            ERR_STORE_CORRUPT);
        assert_non_null(strstr(err.detail, "deferred_run_index"));
        bench_end(b);
        bench_close(b);
        enum err_code code;
        assert_null(bench_open_again(b, &code, &err));
        assert_int_equal(code, ERR_STORE_CORRUPT);
        bench_file_run(
            b, "DELETE FROM deferred_run_index; INSERT INTO deferred_run_index SELECT n,block FROM sound");
        bench_open(b); /* the control */
        expect_all(b, m);
    }
    free(m);
}

int main(void)
{
    return bench_run_all();
}
