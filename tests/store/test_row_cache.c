/* Rows that the writer has at hand: they are what the store has committed, whatever happened to the commits,
 * and they are bounded. bench_fetch() compares each with what a reader sees in the file. */
#include "store/bench_store.h"

#include <sqlite3.h>

#include "store/row_cache.h"

#include "base/banned.h"

enum { ROOM = 1 << 20, ROWS = 40 };

static const struct table *const kept[] = {&table_tenant_row, &table_run_id_row, &table_run_row,
                                           &table_run_step_row};
enum { PLACES = LENGTH_OF(kept) * ROWS };

/* --- the cache alone ----------------------------------------------------------------------------- */

/* By its key columns: what else `like` says does not count. */
static void *find(struct row_cache *c, struct bench *b, const struct table *t, const void *like)
{
    char *row = arena_alloc(b->arena, t->row_size);
    for (unsigned i = 0; i < t->key_count; i++)
        memcpy(row + t->columns[i].offset, (const char *)like + t->columns[i].offset,
               t->columns[i].type == COLUMN_INT ? sizeof(int64_t) : sizeof(struct str));
    return row_cache_find(c, t, row, b->arena) ? row : NULL;
}

static bool is_large(const struct table *t, const void *row)
{
    for (unsigned i = 0; i < t->column_count; i++)
        if (t->columns[i].type != COLUMN_INT && row_str(row, &t->columns[i]).len > 1000)
            return true;
    return false;
}

static void apply(struct row_cache *c, const struct table *t, enum row_op op, const void *row)
{
    struct row_change change = {t, op, row};
    row_cache_apply(c, &change, 1);
}

BENCH_TEST_ON("memory", test_every_column_comes_back_as_it_was_committed, b)
{
    struct row_cache *c = row_cache_new(ROOM);
    for (size_t k = 0; k < LENGTH_OF(kept); k++) {
        const struct table *t = kept[k];
        for (uint64_t n = 1; n <= ROWS; n++) {
            void *row = bench_row(b, t, n, 0), *next = bench_row(b, t, n, n);
            assert_null(find(c, b, t, row)); /* that there is none is never kept */
            apply(c, t, ROW_UPDATE, row);    /* nor what was not here before */
            assert_null(find(c, b, t, row));
            n % 2 ? apply(c, t, ROW_INSERT, row) : row_cache_keep(c, t, row);
            assert_int_equal(find(c, b, t, row) == NULL, is_large(t, row));
            if (is_large(t, row))
                continue;
            bench_expect_equal(t, find(c, b, t, row), row);
            apply(c, t, ROW_UPDATE, next);
            assert_int_equal(find(c, b, t, row) == NULL, is_large(t, next));
            if (!is_large(t, next))
                bench_expect_equal(t, find(c, b, t, row), next);
        }
        for (uint64_t n = 1; n <= ROWS; n++) {
            apply(c, t, ROW_DELETE, bench_row(b, t, n, 0));
            assert_null(find(c, b, t, bench_row(b, t, n, 0)));
        }
    }
    assert_int_equal(row_cache_rows(c), 0);
    assert_int_equal(row_cache_bytes(c), 0);
    row_cache_free(c);
}

BENCH_TEST_ON("memory", test_an_update_leaves_fixed_columns_alone, b)
{
    struct row_cache *c = row_cache_new(ROOM);
    struct run_row run = {.num = 7, .id = STR("r"), .tenant = 3, .plan = STR("p"), .state = 1};
    struct run_row other = {.num = 7, .id = STR("other"), .tenant = 4, .state = 2, .params = STR("{}")};
    row_cache_keep(c, &table_run_row, &run);
    apply(c, &table_run_row, ROW_UPDATE, &other);
    const struct run_row *now = find(c, b, &table_run_row, &run);
    assert_true(str_is(now->id, "r") && str_is(now->plan, "p") && now->tenant == 3);
    assert_true(now->state == 2 && str_is(now->params, "{}"));
    row_cache_free(c);
}

BENCH_TEST_ON("memory", test_other_tables_are_passed_over, b)
{
    struct row_cache *c = row_cache_new(ROOM);
    for (size_t i = 0; i < table_count; i++) {
        bool is_kept = false;
        for (size_t k = 0; k < LENGTH_OF(kept); k++)
            is_kept |= tables[i] == kept[k];
        size_t before = row_cache_rows(c);
        const void *row = bench_row(b, tables[i], 3, 0);
        apply(c, tables[i], ROW_INSERT, row);
        row_cache_keep(c, tables[i], row);
        assert_int_equal(row_cache_rows(c) - before, is_kept && !is_large(tables[i], row));
    }
    row_cache_free(c);
}

/* Never more bytes than it was given; what is used stays, what was not used for longest goes. */
BENCH_TEST_ON("memory", test_it_is_bounded_and_lets_go_what_was_not_used_for_longest, b)
{
    enum { BYTES = 64 << 10, MANY = 5000 };
    struct row_cache *c = row_cache_new(BYTES);
    struct run_row used = {.num = 1, .id = STR("used")}, unused = {.num = 2, .id = STR("unused")};
    row_cache_keep(c, &table_run_row, &used);
    row_cache_keep(c, &table_run_row, &unused);
    char text[1500];
    memset(text, 'x', sizeof text);
    for (int64_t n = 3; n < MANY; n++) {
        struct run_row run = {.num = n, .id = STR("another")};
        apply(c, &table_run_row, ROW_INSERT, &run);
        run.params = (struct str){text, (size_t)n % sizeof text}; /* rows grow, too */
        apply(c, &table_run_row, ROW_UPDATE, &run);
        assert_true(row_cache_bytes(c) <= BYTES);
        assert_non_null(find(c, b, &table_run_row, &run));
        assert_non_null(find(c, b, &table_run_row, &used));
    }
    assert_null(find(c, b, &table_run_row, &unused));
    assert_true(row_cache_rows(c) > 10 && row_cache_rows(c) < BYTES / 100);
    row_cache_clear(c);
    assert_null(find(c, b, &table_run_row, &used));
    assert_int_equal(row_cache_bytes(c), 0);
    row_cache_free(c);
}

/* --- in the store ---------------------------------------------------------------------------------- */

static void run_raw(struct bench *b, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(b->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static int64_t state_by_writer(struct bench *b, int64_t num)
{
    struct run_row run = {.num = num};
    struct err err;
    bool found = false;
    assert_int_equal(b->store->ops->fetch(b->store, &table_run_row, &run, b->arena, &found, &err), ERR_OK);
    b->store->ops->abandon(b->store);
    assert_true(found);
    return run.state;
}

static int64_t state_by_reader(struct bench *b, int64_t num)
{
    struct run_row run = {.num = num};
    struct err err;
    bool found = false;
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_row(b->reader, &table_run_row, &run, b->arena, &found, &err),
                     ERR_OK);
    bench_end(b);
    assert_true(found);
    return run.state;
}

/* The negative control of what follows: rows do come from memory, and one that is not what the file has is
 * told from it. A failed commit and a restart let go of it. */
BENCH_TEST_ON("sqlite", test_the_writer_reads_from_memory_until_a_commit_fails_or_it_starts_anew, b)
{
    struct run_row run = {.num = 5, .id = STR("r"), .state = 1};
    assert_int_equal(bench_change(b, &table_run_row, ROW_INSERT, &run), ERR_OK);
    run_raw(b, "UPDATE runs SET state=3 WHERE num=5");
    assert_int_equal(state_by_writer(b, 5), 1);
    assert_int_equal(state_by_reader(b, 5), 3);
    assert_int_not_equal(bench_change(b, &table_run_row, ROW_INSERT, &run), ERR_OK); /* it is there */
    assert_int_equal(state_by_writer(b, 5), 3);
    run_raw(b, "UPDATE runs SET state=2 WHERE num=5");
    assert_int_equal(state_by_writer(b, 5), 3); /* what was read is at hand as well */
    bench_reopen(b);
    assert_int_equal(state_by_writer(b, 5), 2);
}

/* A change that can be made to a row that is there or not; the flag goes along. */
static struct row_change draw_change(struct bench *b, size_t place, bool *there)
{
    const struct table *t = kept[place / ROWS];
    uint64_t version = bench_draw(b, 1000);
    enum row_op op = !*there ? ROW_INSERT : bench_draw(b, 4) ? ROW_UPDATE : ROW_DELETE;
    if (op == ROW_UPDATE && t->fixed_count == t->column_count)
        op = ROW_DELETE;
    *there = op != ROW_DELETE;
    return (struct row_change){t, op, bench_row(b, t, place % ROWS * 2 + 2, version)};
}

/* Up to a dozen changes, no row twice; every third commit fails after all else of it was written. */
static void commit_some(struct bench *b, bool *exists)
{
    struct row_change rows[14];
    bool after[PLACES], named[PLACES] = {false};
    size_t count = 0;
    memcpy(after, exists, sizeof after);
    for (uint64_t left = bench_draw(b, 12) + 1; left; left--) {
        size_t place = bench_draw(b, PLACES);
        if (!named[place])
            rows[count++] = draw_change(b, place, &after[place]);
        named[place] = true;
    }
    bool fails = bench_draw(b, 3) == 0;
    struct key_head_row nobody = {.client = 5};
    if (fails)
        rows[count++] = (struct row_change){&table_key_head_row, ROW_UPDATE, &nobody};
    struct change_set c = {.rows = rows, .row_count = count, .first_chunk = b->store->next_chunk};
    assert_int_equal(bench_commit(b, &c) != ERR_OK, fails);
    if (!fails)
        memcpy(exists, after, sizeof after);
}

BENCH_TEST_ON("sqlite", test_random_commits_failures_and_restarts_never_leave_a_stale_row, b)
{
    enum { ROUNDS = 300 };
    bool exists[PLACES] = {false};
    for (int round = 0; round < ROUNDS; round++) {
        commit_some(b, exists);
        for (size_t place = bench_draw(b, 4); place < PLACES; place += 4) {
            const struct table *t = kept[place / ROWS];
            const void *key = bench_row(b, t, place % ROWS * 2 + 2, 0);
            assert_int_equal(bench_fetch(b, t, key) != NULL, exists[place]);
        }
        if (bench_draw(b, 50) == 0)
            bench_reopen(b);
        arena_reset(b->arena);
    }
}

int main(void)
{
    return store_run("memory", bench_group_memory) + store_run("sqlite", bench_group_disk);
}
