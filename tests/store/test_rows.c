/* Rows of every table: written, changed, deleted, read back whole; all of a commit or nothing. On every
 * store. */
#include "store/bench_store.h"

#include "base/banned.h"

enum { ROWS = 60 };

BENCH_TEST(test_every_column_of_every_table_survives_insert_update_and_delete, b)
{
    for (unsigned i = 0; i < table_count; i++) {
        const struct table *t = tables[i];
        assert_int_equal(t->number, i);
        if (!bench_keeps_rows(b, t))
            continue;
        for (uint64_t n = 1; n <= ROWS; n++) {
            void *row = bench_row(b, t, n, 0);
            assert_null(bench_fetch(b, t, row));
            assert_int_equal(bench_change(b, t, ROW_INSERT, row), ERR_OK);
            bench_expect_equal(t, bench_fetch(b, t, row), row);
        }
        for (uint64_t n = 1; n <= ROWS && t->fixed_count < t->column_count; n++) {
            void *row = bench_row(b, t, n, n);
            assert_int_equal(bench_change(b, t, ROW_UPDATE, row), ERR_OK);
            bench_expect_equal(t, bench_fetch(b, t, row), row);
        }
        for (uint64_t n = 1; n <= ROWS; n += 2) {
            void *row = bench_row(b, t, n, 0);
            assert_int_equal(bench_change(b, t, ROW_DELETE, row), ERR_OK);
            assert_null(bench_fetch(b, t, row));
            assert_non_null(bench_fetch(b, t, bench_row(b, t, n + 1, 0)));
        }
    }
}

/* An UPDATE writes what may change and leaves the rest alone, whatever the caller passed there. */
BENCH_TEST(test_an_update_never_touches_fixed_columns, b)
{
    for (unsigned i = 0; i < table_count; i++) {
        const struct table *t = tables[i];
        if (t->fixed_count == t->column_count || t->fixed_count == t->key_count || !bench_keeps_rows(b, t))
            continue;
        void *stored = bench_row(b, t, 1, 0), *other = bench_row(b, t, 2, 7), *want = bench_row(b, t, 1, 0);
        assert_int_equal(bench_change(b, t, ROW_INSERT, stored), ERR_OK);
        for (unsigned k = 0; k < t->column_count; k++) {
            const struct column *c = &t->columns[k];
            size_t size = c->type == COLUMN_INT ? sizeof(int64_t) : sizeof(struct str);
            if (k < t->key_count)
                memcpy((char *)other + c->offset, (char *)stored + c->offset, size);
            else if (k >= t->fixed_count)
                memcpy((char *)want + c->offset, (char *)other + c->offset, size);
        }
        assert_int_equal(bench_change(b, t, ROW_UPDATE, other), ERR_OK);
        bench_expect_equal(t, bench_fetch(b, t, stored), want);
    }
}

BENCH_TEST(test_absent_and_empty_texts_are_different_things, b)
{
    struct job_row absent = {.id = 1, .queue = STR("q")}, empty = {.id = 2, .queue = STR("q")};
    empty.payload = empty.idem_key = empty.idem_fingerprint = (struct str){"", 0};
    assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &absent), ERR_OK);
    assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &empty), ERR_OK);
    const struct job_row *x = bench_fetch(b, &table_job_row, &absent),
                         *y = bench_fetch(b, &table_job_row, &empty);
    assert_null(x->payload.ptr);
    assert_null(x->idem_fingerprint.ptr);
    assert_non_null(y->payload.ptr);
    assert_non_null(y->idem_fingerprint.ptr);
    assert_int_equal(y->payload.len, 0);
}

BENCH_TEST(test_large_texts_and_blobs_come_back_whole, b)
{
    static const size_t sizes[] = {4095, 4096, 4097, 262144, 5000000};
    for (size_t i = 0; i < LENGTH_OF(sizes); i++) {
        char *bytes = arena_alloc(b->arena, sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (char)hash_mix(k);
        struct kept_row kept = {.job = (int64_t)i, .seq = 1, .event = {bytes, sizes[i]}};
        assert_int_equal(bench_change(b, &table_kept_row, ROW_INSERT, &kept), ERR_OK);
        bench_expect_equal(&table_kept_row, bench_fetch(b, &table_kept_row, &kept), &kept);
        memset(bytes, 'x', sizes[i]);
        struct job_row job = {.id = (int64_t)i, .queue = STR("q"), .payload = {bytes, sizes[i]}};
        assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &job), ERR_OK);
        bench_expect_equal(&table_job_row, bench_fetch(b, &table_job_row, &job), &job);
    }
}

static struct job_row job(int64_t id)
{
    return (struct job_row){.id = id, .queue = STR("q")};
}

/* What fails comes last, so everything before it was written already when it does. */
static void expect_nothing_left(struct bench *b, struct row_change bad, struct str chunk)
{
    struct job_row fresh = job(100);
    struct client_secret_row secret = {.client = 1, .secret = STR("changed")};
    const struct row_change rows[] = {
        {&table_job_row, ROW_INSERT, &fresh}, {&table_client_secret_row, ROW_UPDATE, &secret}, bad};
    struct list_entry listed = {.owner_key = 1, .id = 100};
    struct idem_entry idem = {.hash = 77, .job = 100};
    struct change_set c = {.rows = rows,
                           .row_count = 3,
                           .chunks = &chunk,
                           .chunk_count = 1,
                           .first_chunk = b->store->next_chunk,
                           .list = &listed,
                           .list_count = 1,
                           .idem_add = &idem,
                           .idem_add_count = 1};
    int64_t next = b->store->next_chunk, ids[4];
    size_t count;
    struct err err;
    assert_int_not_equal(bench_commit(b, &c), ERR_OK);
    assert_int_equal(b->store->next_chunk, next);
    assert_null(bench_fetch(b, &table_job_row, &fresh));
    const struct client_secret_row *now = bench_fetch(b, &table_client_secret_row, &secret);
    assert_true(str_is(now->secret, "first"));
    struct list_query q = {.owner_key = 1, .below_id = INT64_MAX, .limit = 4};
    struct str found;
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_list(b->reader, &q, ids, &count, &err), ERR_OK);
    assert_int_equal(b->reader->ops->reader_chunk(b->reader, next, b->arena, &found, &err), ERR_OK);
    bench_end(b);
    assert_int_equal(count, 0);
    assert_null(found.ptr);
    c.row_count = 2; /* without the bad one it works */
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    assert_int_equal(b->store->next_chunk, next + 1);
    assert_non_null(bench_fetch(b, &table_job_row, &fresh));
    c = (struct change_set){
        .first_chunk = next + 1, .drop_chunks_below = next + 1, .idem_drop = &idem, .idem_drop_count = 1};
    const struct row_change undo[] = {{&table_job_row, ROW_DELETE, &fresh}};
    c.rows = undo;
    c.row_count = 1;
    listed.removed = true;
    c.list = &listed;
    c.list_count = 1;
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    secret.secret = STR("first");
    assert_int_equal(bench_change(b, &table_client_secret_row, ROW_UPDATE, &secret), ERR_OK);
}

BENCH_TEST(test_a_commit_that_fails_half_way_leaves_nothing, b)
{
    struct client_secret_row secret = {.client = 1, .secret = STR("first")};
    struct job_row there = job(1), missing = job(999);
    struct key_head_row nobody = {.client = 5};
    assert_int_equal(bench_change(b, &table_client_secret_row, ROW_INSERT, &secret), ERR_OK);
    assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &there), ERR_OK);
    struct str chunk = STR("bytes of a chunk");
    expect_nothing_left(b, (struct row_change){&table_job_row, ROW_INSERT, &there}, chunk);
    expect_nothing_left(b, (struct row_change){&table_job_row, ROW_DELETE, &missing}, chunk);
    expect_nothing_left(b, (struct row_change){&table_key_head_row, ROW_UPDATE, &nobody}, chunk);
}

BENCH_TEST(test_a_key_inserted_twice_in_one_commit_is_refused_and_replacing_a_row_is_not, b)
{
    struct job_row one = job(1), two = job(1);
    two.queue = STR("other");
    const struct row_change twice[] = {{&table_job_row, ROW_INSERT, &one},
                                       {&table_job_row, ROW_INSERT, &two}};
    struct change_set c = {.rows = twice, .row_count = 2, .first_chunk = b->store->next_chunk};
    assert_int_equal(bench_commit(b, &c), ERR_STORAGE_DB_ERROR);
    assert_null(bench_fetch(b, &table_job_row, &one));
    assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &one), ERR_OK);
    const struct row_change replace[] = {{&table_job_row, ROW_DELETE, &one},
                                         {&table_job_row, ROW_INSERT, &two}};
    c.rows = replace;
    c.row_count = 2;
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    assert_true(str_is(((struct job_row *)bench_fetch(b, &table_job_row, &one))->queue, "other"));
}

/* [JOB-149]: a second row of the same id cannot be stored. */
/* Many rows of every table in one commit, mixed: backends have a quicker way in for those. */
BENCH_TEST(test_a_commit_of_many_rows_stores_every_column_of_each, b)
{
    enum { EACH = 40 };
    static struct row_change rows[EACH * TABLES_MAX + 1];
    size_t n = 0;
    for (uint64_t i = 0; i < EACH; i++)
        for (size_t t = 0; t < table_count; t++)
            if (bench_keeps_rows(b, tables[t]))
                rows[n++] = (struct row_change){tables[t], ROW_INSERT, bench_row(b, tables[t], i, 0)};
    rows[n] = rows[0]; /* a key that is there already: nothing of the commit stays */
    struct change_set c = {.rows = rows, .row_count = n + 1, .first_chunk = b->store->next_chunk};
    assert_int_equal(bench_commit(b, &c), ERR_STORAGE_DB_ERROR);
    for (size_t i = 0; i < n; i++)
        assert_null(bench_fetch(b, rows[i].table, rows[i].row));
    c.row_count = n;
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    for (size_t i = 0; i < n; i++)
        bench_expect_equal(rows[i].table, bench_fetch(b, rows[i].table, rows[i].row), rows[i].row);
}

/* Each time the largest number is in another table; none of them may be given again. Of tasks a step's
 * counts; a hash does not. */
BENCH_TEST(test_the_last_id_is_the_largest_of_all_tables, b)
{
    static const struct {
        const struct table *table;
        const char *column;
    } ids[] = {{&table_job_row, "id"},      {&table_api_key_row, "id"}, {&table_webhook_row, "id"},
               {&table_delivery_row, "id"}, {&table_plan_row, "num"},   {&table_run_row, "num"},
               {&table_alert_row, "id"},    {&table_decision_row, "id"}};
    if (!b->on_disk && !b->shared)
        return; /* nothing is opened again */
    for (size_t i = 0; i < LENGTH_OF(ids); i++) {
        const struct table *t = ids[i].table;
        char *row = bench_row(b, t, i, 0);
        int64_t id = (INT64_C(1) << 50) + (int64_t)i * 1000000;
        size_t column = 0;
        while (strcmp(t->columns[column].name, ids[i].column) != 0)
            column++;
        memcpy(row + t->columns[column].offset, &id, sizeof id);
        assert_int_equal(bench_change(b, t, ROW_INSERT, row), ERR_OK);
        bench_reopen(b);
        assert_int_equal(b->store->last_id, id);
    }
    int64_t last = INT64_C(1) << 51;
    struct task_row step = {.id = (int64_t)TASK_ID_OF_OTHERS | last,
                            .owner = 2,
                            .client = 1,
                            .queue = STR("q"),
                            .state = TASK_READY,
                            .job_state = JOB_NO_STATE,
                            .attempt = 1,
                            .subject = 7,
                            .refs = STR("")};
    struct task_row hash = step;
    hash.owner = 1;
    hash.id = (int64_t)(TASK_ID_OF_OTHERS - 1 + TASK_ID_OF_OTHERS);
    hash.target = 1;
    hash.refs = STR("one ref.");
    assert_int_equal(bench_change(b, &table_task_row, ROW_INSERT, &hash), ERR_OK);
    assert_int_equal(bench_change(b, &table_task_row, ROW_INSERT, &step), ERR_OK);
    bench_reopen(b);
    assert_int_equal(b->store->last_id, last);
}

BENCH_TEST(test_a_job_id_is_stored_once, b)
{
    struct job_row first = job(1), second = job(1);
    second.client = 2;
    assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &first), ERR_OK);
    assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &second), ERR_STORAGE_DB_ERROR);
    assert_int_equal(((struct job_row *)bench_fetch(b, &table_job_row, &first))->client, 0);
}

/* --- scans ------------------------------------------------------------------------------------- */

struct scan {
    const struct table *table;
    char last[TABLE_ROW_BYTES_MAX] __attribute__((aligned(16)));
    size_t count, stop_after;
    int64_t client;
    struct arena *arena;
};

static int compare_keys(const struct table *t, const void *a, const void *b)
{
    for (unsigned i = 0; i < t->key_count; i++) {
        const struct column *c = &t->columns[i];
        if (c->type == COLUMN_INT && row_int(a, c) != row_int(b, c))
            return row_int(a, c) < row_int(b, c) ? -1 : 1;
        if (c->type == COLUMN_INT)
            continue;
        struct str x = row_str(a, c), y = row_str(b, c);
        int order = memcmp(x.ptr, y.ptr, x.len < y.len ? x.len : y.len);
        if (order || x.len != y.len)
            return order ? order : x.len < y.len ? -1 : 1;
    }
    return 0;
}

static bool see_row(const void *row, void *arg)
{
    struct scan *s = arg;
    if (s->count)
        assert_true(compare_keys(s->table, s->last, row) < 0);
    memcpy(s->last, row, s->table->row_size);
    for (unsigned i = 0; i < s->table->key_count; i++)
        if (s->table->columns[i].type != COLUMN_INT) {
            struct str *text = (struct str *)(void *)(s->last + s->table->columns[i].offset);
            *text = arena_str(s->arena, *text);
        }
    for (unsigned i = 0; s->client && i < s->table->column_count; i++)
        if (str_is(str_of(s->table->columns[i].name), "client"))
            assert_int_equal(row_int(row, &s->table->columns[i]), s->client);
    return ++s->count != s->stop_after;
}

static size_t scan(struct bench *b, const struct table *t, size_t stop_after)
{
    struct scan s = {.table = t, .stop_after = stop_after, .arena = b->arena};
    struct err err;
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_scan(b->reader, t, see_row, &s, &err), ERR_OK);
    bench_end(b);
    return s.count;
}

BENCH_TEST(test_a_scan_gives_every_row_in_key_order_and_can_be_stopped, b)
{
    for (unsigned i = 0; i < table_count; i++) {
        const struct table *t = tables[i];
        if (!bench_keeps_rows(b, t))
            continue;
        assert_int_equal(scan(b, t, 0), 0);
        for (uint64_t n = 0; n < ROWS; n++) /* not in order */
            assert_int_equal(bench_change(b, t, ROW_INSERT, bench_row(b, t, n * 37 % ROWS + 1, 0)), ERR_OK);
        assert_int_equal(scan(b, t, 0), ROWS);
        assert_int_equal(scan(b, t, 7), 7);
        assert_int_equal(scan(b, t, 0), ROWS); /* a stopped one leaves no trace */
    }
}

BENCH_TEST(test_rows_of_a_client_are_its_own_in_key_order, b)
{
    for (int64_t n = 1; n <= 60; n++) {
        struct webhook_row hook = {
            .id = n * 37 % 61, .client = n % 3 + 1, .url = STR("u"), .events = STR("e"), .secret = STR("s")};
        struct api_key_row key = {
            .id = n * 41 % 61, .client = n % 4 + 1, .client_uuid = STR("u"), .hash = STR("h")};
        assert_int_equal(bench_change(b, &table_webhook_row, ROW_INSERT, &hook), ERR_OK);
        assert_int_equal(bench_change(b, &table_api_key_row, ROW_INSERT, &key), ERR_OK);
    }
    const struct {
        const struct table *table;
        int64_t client;
        size_t count;
    } want[] = {{&table_webhook_row, 2, 20}, {&table_api_key_row, 4, 15}, {&table_webhook_row, 9, 0}};
    for (size_t i = 0; i < LENGTH_OF(want); i++) {
        struct scan s = {.table = want[i].table, .client = want[i].client, .arena = b->arena};
        struct err err;
        bench_begin(b);
        assert_int_equal(b->reader->ops->reader_of_client(b->reader, s.table, s.client, see_row, &s, &err),
                         ERR_OK);
        bench_end(b);
        assert_int_equal(s.count, want[i].count);
    }
}

int main(void)
{
    return bench_run_all();
}
