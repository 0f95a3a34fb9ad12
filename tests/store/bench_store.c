#include "store/bench_store.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/banned.h"

enum { TIMEOUT_MS = 10000 };

static bool use_disk, use_postgres;

int bench_group_memory(void **state)
{
    (void)state;
    use_disk = use_postgres = false;
    return 0;
}

int bench_group_disk(void **state)
{
    (void)state;
    use_disk = true;
    use_postgres = false;
    return 0;
}

int bench_group_postgres(void **state)
{
    (void)state;
    use_disk = use_postgres = true;
    return 0;
}

/* A batch that asks for nothing: afterwards the handle has numbers for the chunks to come. */
static void take_numbers(struct store *s, struct arena *a)
{
    struct load_set nothing = {.now_ms = 1000};
    struct err err;
    assert_int_equal(s->ops->load(s, &nothing, a, &err), ERR_OK);
    s->ops->abandon(s);
    store_forget(s);
}

static struct store *open_postgres(struct bench *b, enum err_code *ret_code, struct err *err)
{
    struct postgres_options o = {.url = b->schema.url, .timeout_ms = TIMEOUT_MS};
    struct store *s = NULL;
    *ret_code = store_open_postgres(&o, &s, err);
    if (*ret_code == ERR_OK)
        take_numbers(s, b->arena);
    return s;
}

struct store *bench_open_again(struct bench *b, enum err_code *ret_code, struct err *err)
{
    if (b->shared)
        return open_postgres(b, ret_code, err);
    struct sqlite_options o = {.path = b->path, .timeout_ms = 2000, .synchronous = "OFF", .wall_ms = 1000};
    o.index_group = BENCH_INDEX_GROUP;
    o.event_group = BENCH_EVENT_GROUP;
    struct store *s = NULL;
    *ret_code = store_open_sqlite(&o, &s, err);
    return s;
}

static void open_store(struct bench *b)
{
    struct err err;
    enum err_code code = ERR_OK;
    b->store = b->on_disk ? bench_open_again(b, &code, &err) : store_open_memory();
    assert_int_equal(code, ERR_OK);
    assert_int_equal(b->store->ops->reader_open(b->store, &b->reader, &err), ERR_OK);
}

int bench_up(void **state)
{
    struct bench *b = must_alloc(sizeof *b);
    b->on_disk = use_disk;
    b->shared = use_postgres;
    b->arena = arena_new(1 << 16);
    b->random = 42;
    if (b->shared) {
        bench_schema_make(&b->schema);
    } else if (b->on_disk) {
        snprintf(b->path, sizeof b->path, "/tmp/weir-store-XXXXXX");
        int fd = mkstemp(b->path);
        assert_true(fd >= 0);
        close(fd);
    }
    open_store(b);
    b->first_chunk = b->store->next_chunk;
    *state = b;
    return 0;
}

static void close_store(struct bench *b)
{
    if (b->reader)
        b->reader->ops->reader_close(b->reader);
    b->reader = NULL;
    b->store = store_close(b->store);
}

int bench_down(void **state)
{
    struct bench *b = *state;
    close_store(b);
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; *b->path && i < LENGTH_OF(ends); i++) {
        char name[80];
        snprintf(name, sizeof name, "%s%s", b->path, ends[i]);
        unlink(name);
    }
    if (b->shared)
        bench_schema_drop(&b->schema);
    arena_free(b->arena);
    free(b);
    return 0;
}

void bench_reopen(struct bench *b)
{
    assert_true(b->on_disk);
    close_store(b);
    open_store(b);
}

uint64_t bench_draw(struct bench *b, uint64_t below)
{
    b->random = hash_mix(b->random + UINT64_C(0x9E3779B97F4A7C15));
    return b->random % below;
}

bool bench_keeps_rows(const struct bench *b, const struct table *t)
{
    (void)b;
    return t != &table_stats_row;
}

/* --- rows -------------------------------------------------------------------------------------- */

/* Absent, empty, short, and now and then longer than a page: but not what applications insert, which the
 * schema keeps small. */
static struct str made_text(struct bench *b, const struct table *t, const struct column *c, uint64_t h,
                            bool is_key)
{
    size_t len = h % 5 == 0 ? 0 : h % 97 == 1 && t != &table_inbox_row ? 70000 : h % 60;
    if (is_key)
        return arena_printf(b->arena, "key %llu of %s", (unsigned long long)h, c->name);
    if (c->may_be_null && h % 3 == 0)
        return STR_ABSENT;
    if (str_is(str_of(c->name), "idem_key")) /* no two of a client are the same */
        return arena_printf(b->arena, "idem %llu", (unsigned long long)h);
    if (str_is(str_of(c->name), "queue")) /* an index holds it: no longer than clients may send */
        len %= 60;
    char *p = arena_alloc(b->arena, len + 1);
    for (size_t i = 0; i < len; i++) {
        uint64_t x = hash_mix(h + i);
        p[i] = (char)(c->type == COLUMN_BLOB ? x % 256 : 32 + x % 95);
    }
    return (struct str){p, len};
}

static int64_t made_int(const struct column *c, uint64_t h)
{
    static const int64_t edges[] = {0, -1, INT64_MAX, INT64_MIN, 1, INT64_C(1) << 53};
    if (str_is(str_of(c->name), "target")) /* of a stream: its refs are no places in the log */
        return 1 + (int64_t)(h % 1000);
    if (str_is(str_of(c->name), "job_state")) /* of a live job, as its id says */
        return (int64_t)(h % JOB_SUCCEEDED);
    if (c->has_range)
        return c->least + (int64_t)(h % (uint64_t)(c->most - c->least + 1));
    if (str_is(str_of(c->name), "num")) /* no two clients have the same */
        return (int64_t)(h >> 1);
    return h % 4 == 0 ? edges[h / 4 % LENGTH_OF(edges)] : (int64_t)h;
}

void *bench_row(struct bench *b, const struct table *t, uint64_t n, uint64_t version)
{
    assert_true(t->row_size <= TABLE_ROW_BYTES_MAX);
    char *row = arena_alloc(b->arena, t->row_size);
    for (unsigned i = 0; i < t->column_count; i++) {
        const struct column *c = &t->columns[i];
        bool is_key = i < t->key_count;
        uint64_t h =
            is_key ? n * 31 + i : hash_mix(hash_mix(n + 1) + i + (i < t->fixed_count ? 0 : version * 1000));
        if (c->type == COLUMN_INT)
            *(int64_t *)(void *)(row + c->offset) = is_key ? (int64_t)(n / (i + 1)) : made_int(c, h);
        else
            *(struct str *)(void *)(row + c->offset) = made_text(b, t, c, h, is_key);
    }
    return row;
}

void bench_expect_equal(const struct table *t, const void *a, const void *b)
{
    for (unsigned i = 0; i < t->column_count; i++) {
        const struct column *c = &t->columns[i];
        if (c->type == COLUMN_INT) {
            assert_int_equal(row_int(a, c), row_int(b, c));
            continue;
        }
        struct str x = row_str(a, c), y = row_str(b, c);
        assert_int_equal(x.ptr == NULL, y.ptr == NULL);
        assert_int_equal(x.len, y.len);
        assert_true(str_equal(x, y));
    }
}

/* --- doing ------------------------------------------------------------------------------------- */

enum err_code bench_commit(struct bench *b, const struct change_set *c)
{
    struct err err = {.code = ERR_OK};
    enum err_code code = b->store->ops->commit(b->store, c, &err);
    if (b->shared)
        store_forget(b->store);
    return code;
}

enum err_code bench_change(struct bench *b, const struct table *t, enum row_op op, const void *row)
{
    struct row_change change = {t, op, row};
    struct change_set c = {.rows = &change, .row_count = 1, .first_chunk = b->store->next_chunk};
    return bench_commit(b, &c);
}

void bench_begin(struct bench *b)
{
    struct err err;
    assert_int_equal(b->reader->ops->reader_begin(b->reader, &err), ERR_OK);
}

void bench_end(struct bench *b)
{
    b->reader->ops->reader_end(b->reader);
}

void *bench_fetch(struct bench *b, const struct table *t, const void *key)
{
    struct err err;
    bool found = false, seen = false;
    void *row = arena_alloc(b->arena, t->row_size), *again = arena_alloc(b->arena, t->row_size);
    memcpy(row, key, t->row_size);
    memcpy(again, key, t->row_size);
    assert_int_equal(b->store->ops->fetch(b->store, t, row, b->arena, &found, &err), ERR_OK);
    if (b->store->ops->abandon)
        b->store->ops->abandon(b->store); /* the row is free again */
    if (b->shared)
        store_forget(b->store);
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_row(b->reader, t, again, b->arena, &seen, &err), ERR_OK);
    bench_end(b);
    assert_int_equal(found, seen);
    if (found)
        bench_expect_equal(t, row, again);
    return found ? row : NULL;
}

/* --- a SQLite file, beside the store --- */

static sqlite3 *open_raw(struct bench *b)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(b->path, &db), SQLITE_OK);
    return db;
}

int64_t bench_file_number(struct bench *b, const char *sql)
{
    sqlite3 *db = open_raw(b);
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return n;
}

void bench_file_run(struct bench *b, const char *sql)
{
    sqlite3 *db = open_raw(b);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

void bench_close(struct bench *b)
{
    b->reader->ops->reader_close(b->reader);
    b->reader = NULL;
    b->store = store_close(b->store);
}

void bench_open(struct bench *b)
{
    struct err err;
    enum err_code code;
    b->store = bench_open_again(b, &code, &err);
    assert_int_equal(code, ERR_OK);
    assert_int_equal(b->store->ops->reader_open(b->store, &b->reader, &err), ERR_OK);
}

int bench_run_all(void)
{
    return store_run("memory", bench_group_memory) + store_run("sqlite", bench_group_disk) +
           store_run("postgres", bench_group_postgres);
}
