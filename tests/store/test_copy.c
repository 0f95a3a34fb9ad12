/* Copying a store: every pair of backends, broken off after every commit and continued, and differences that
 * somebody made on the way are found. */
#include "store/copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "case.h"

#include "base/log.h"
#include "base/must.h"
#include "faults/kernel_load.h"
#include "store/bench_store.h"
#include "store/store_open.h"
#include "store/verify.h"

#include "base/banned.h"

enum { LOAD_STEPS = 120, MADE_ROWS = 25, TIMEOUT_MS = 10000, NOW_MS = 1000 };

/* --- places: a store of each kind, empty at first ------------------------------------------------ */

enum place_kind { PLACE_MEMORY, PLACE_SQLITE, PLACE_POSTGRES, PLACE_KIND_COUNT };
static const char *const place_names[] = {"memory", "sqlite", "postgres"};

struct place {
    enum place_kind kind;
    char path[64];
    struct bench_schema schema;
    struct strbuf url;
    struct store *store;
};

static bool has_postgres(void)
{
    return getenv("WEIR_TEST_POSTGRES") != NULL;
}

static void place_open(struct place *p)
{
    struct err err = {.detail = ""};
    struct store_options o = {.url = p->url.ptr, .timeout_ms = TIMEOUT_MS, .wall_ms = NOW_MS};
    enum err_code code = store_open_unfinished(&o, &p->store, &err);
    if (code != ERR_OK)
        print_error("%s\n", err.detail);
    assert_int_equal(code, ERR_OK);
}

static void place_make(struct place *p, enum place_kind kind)
{
    *p = (struct place){.kind = kind};
    if (kind == PLACE_MEMORY) {
        p->store = store_open_memory();
        return;
    }
    if (kind == PLACE_SQLITE) {
        snprintf(p->path, sizeof p->path, "/tmp/weir-copy-XXXXXX");
        int fd = mkstemp(p->path);
        assert_true(fd >= 0);
        close(fd);
        strbuf_addf(&p->url, "sqlite:%s", p->path);
    } else {
        bench_schema_make(&p->schema);
        strbuf_add_text(&p->url, p->schema.url);
    }
    place_open(p);
}

static void place_close(struct place *p)
{
    if (p->kind != PLACE_MEMORY)
        p->store = store_close(p->store);
}

static void place_drop(struct place *p)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    store_close(p->store);
    for (size_t i = 0; *p->path && i < LENGTH_OF(ends); i++) {
        char name[80];
        snprintf(name, sizeof name, "%s%s", p->path, ends[i]);
        unlink(name);
    }
    if (p->kind == PLACE_POSTGRES)
        bench_schema_drop(&p->schema);
    strbuf_free(&p->url);
}

/* --- what is copied --------------------------------------------------------------------------------- */

/* The kernel's own doing: jobs in all states, keys, webhooks, retries, and what the purge leaves. `gap`: so
 * many numbers of the log are left out behind each commit, as lanes do. */
static void fill_by_kernel(struct store *s, int64_t gap)
{
    struct err err;
    struct kernel_load *l = kernel_load_new(s, 5);
    for (int i = 0; i < LOAD_STEPS; i++) {
        assert_int_equal(kernel_load_step_blind(l, &err), ERR_OK);
        s->next_chunk += gap;
        s->open_bytes = gap ? 0 : s->open_bytes; /* lanes begin chunks of their own */
    }
    assert_true(kernel_load_stats(l)->finished > 20);
    kernel_load_free(l);
}

static void *made_row(struct bench *b, const struct table *t, unsigned n)
{
    void *row = bench_row(b, t, n, 0);
    if (t == &table_job_row)
        ((struct job_row *)row)->client = 1 + n % 3; /* listings hold numbers of clients */
    if (t == &table_end_row)
        ((struct end_row *)row)->client = 1 + n % 3;
    return row;
}

/* Rows of every table, with all the values and absent texts a row may hold. */
static void fill_made_up(struct store *s)
{
    struct bench b = {.arena = arena_new(1 << 16), .random = 42};
    static struct row_change rows[TABLES_MAX * MADE_ROWS];
    struct idem_entry idem[MADE_ROWS];
    struct list_entry list[3 * MADE_ROWS];
    const struct str chunks[] = {STR("one"), STR("two\0two"), STR("three")};
    struct change_set c = {.rows = rows,
                           .idem_add = idem,
                           .list = list,
                           .chunks = chunks,
                           .chunk_count = LENGTH_OF(chunks),
                           .first_chunk = s->next_chunk};
    for (unsigned t = 0; t < table_count; t++)
        for (unsigned n = 1; n <= MADE_ROWS; n++)
            rows[c.row_count++] = (struct row_change){tables[t], ROW_INSERT, made_row(&b, tables[t], n)};
    for (size_t i = 0; i < c.row_count; i++) { /* keys and listings of jobs are theirs, in any store */
        const struct job_row *job = rows[i].row;
        const struct end_row *end = rows[i].row;
        if (rows[i].table == &table_job_row && job->idem_key.ptr)
            idem[c.idem_add_count++] =
                (struct idem_entry){.hash = idem_hash(job->client, job->idem_key), .job = job->id};
        if (rows[i].table == &table_job_row)
            list[c.list_count++] =
                (struct list_entry){.owner_key = job->client, .id = job->id, .bucket = LIST_ALL};
        else if (rows[i].table == &table_end_row)
            list[c.list_count++] = (struct list_entry){
                .owner_key = end->client, .id = end->id, .bucket = (uint8_t)(1 + end->state)};
    }
    for (int n = 0; n < MADE_ROWS; n++)
        list[c.list_count++] = (struct list_entry){
            .owner_key = n % 3, .id = 100 + n, .bucket = (uint8_t)(LIST_DELIVERIES + n % 2)};
    struct err err = {.detail = ""};
    enum err_code code = s->ops->commit(s, &c, &err);
    if (code != ERR_OK)
        print_error("%s\n", err.detail);
    assert_int_equal(code, ERR_OK);
    arena_free(b.arena);
}

/* --- copying ---------------------------------------------------------------------------------------- */

static void ignore_progress(void *self, enum copy_step step, int part, uint64_t done, uint64_t total)
{
    (void)self;
    (void)step;
    (void)part;
    assert_true(!total || done <= total);
}

static enum err_code copy(struct store *from, struct store *to, struct copy_result *ret, struct err *err)
{
    const struct copy_watch watch = {.progress = ignore_progress};
    struct reader *r;
    *err = (struct err){.detail = ""};
    assert_int_equal(from->ops->reader_open(from, &r, err), ERR_OK);
    enum err_code code = store_copy(r, to, &watch, ret, err);
    r->ops->reader_close(r);
    return code;
}

static void expect_equal(const struct copy_result *r)
{
    for (int i = 0; i < COPY_PART_COUNT; i++) {
        if (r->source[i].rows != r->target[i].rows || r->source[i].digest != r->target[i].digest)
            print_error("%s differs: %llu rows, %llu rows\n", copy_part_name(i),
                        (unsigned long long)r->source[i].rows, (unsigned long long)r->target[i].rows);
        assert_int_equal(r->source[i].rows, r->target[i].rows);
        assert_true(r->source[i].digest == r->target[i].digest);
    }
    assert_true(r->equal);
}

static void expect_sound(struct store *s)
{
    char why[256];
    uint64_t problems = kernel_load_verify(s, why);
    if (problems)
        print_error("%s\n", why);
    assert_int_equal(problems, 0);
}

static bool is_unfinished(struct store *s)
{
    struct reader *r;
    struct err err;
    bool unfinished;
    assert_int_equal(s->ops->reader_open(s, &r, &err), ERR_OK);
    assert_int_equal(store_copy_is_unfinished(r, &unfinished, &err), ERR_OK);
    r->ops->reader_close(r);
    return unfinished;
}

static int64_t next_chunk_of(struct store *s)
{
    struct reader *r;
    struct err err;
    int64_t next;
    assert_int_equal(s->ops->reader_open(s, &r, &err), ERR_OK);
    assert_int_equal(r->ops->reader_begin(r, &err), ERR_OK);
    assert_int_equal(r->ops->reader_number(r, STORE_NUMBER_NEXT_CHUNK, &next, &err), ERR_OK);
    r->ops->reader_end(r);
    r->ops->reader_close(r);
    return next;
}

/* From one place to another; what the last copy said. */
struct pair {
    struct place from, to;
    struct copy_result result;
    struct err err;
};

static void pair_make(struct pair *p, enum place_kind to)
{
    place_make(&p->from, PLACE_MEMORY);
    place_make(&p->to, to);
}

static enum err_code pair_copy(struct pair *p)
{
    return copy(p->from.store, p->to.store, &p->result, &p->err);
}

static void pair_drop(struct pair *p)
{
    place_drop(&p->from);
    place_drop(&p->to);
}

/* --- the tests -------------------------------------------------------------------------------------- */

/* One leg of the tour. */
static void carry(struct place *from, struct place *to, bool made_up)
{
    struct copy_result result;
    struct err err;
    enum err_code code = copy(from->store, to->store, &result, &err);
    if (code != ERR_OK)
        print_error("%s to %s: %s\n", place_names[from->kind], place_names[to->kind], err.detail);
    assert_int_equal(code, ERR_OK);
    expect_equal(&result);
    assert_int_equal(result.resumed, 0);
    if (!made_up)
        expect_sound(to->store);
    if (from->kind != PLACE_POSTGRES) /* whose lanes count in blocks */
        assert_true(next_chunk_of(to->store) >= next_chunk_of(from->store));
    assert_true(is_unfinished(to->store));
    assert_int_equal(store_copy_finish(to->store, &err), ERR_OK);
    assert_false(is_unfinished(to->store));
}

/* From each kind to each other, and to another of its own kind. */
static void carry_around(bool made_up)
{
    static const enum place_kind tour[] = {PLACE_MEMORY, PLACE_SQLITE,   PLACE_SQLITE,   PLACE_MEMORY,
                                           PLACE_MEMORY, PLACE_POSTGRES, PLACE_POSTGRES, PLACE_MEMORY,
                                           PLACE_SQLITE, PLACE_POSTGRES, PLACE_SQLITE};
    struct place at[LENGTH_OF(tour)];
    size_t count = 0;
    for (size_t i = 0; i < LENGTH_OF(tour); i++) {
        if (tour[i] == PLACE_POSTGRES && !has_postgres())
            continue;
        place_make(&at[count], tour[i]);
        if (count)
            carry(&at[count - 1], &at[count], made_up);
        else if (made_up)
            fill_made_up(at[0].store);
        else
            fill_by_kernel(at[0].store, 0);
        count++;
    }
    while (count)
        place_drop(&at[--count]);
}

TEST(a_store_is_the_same_after_a_tour_through_all_backends)
{
    carry_around(false);
}

TEST(every_table_and_value_is_carried_over)
{
    carry_around(true);
}

TEST(a_copied_store_takes_on_work)
{
    struct pair p;
    pair_make(&p, PLACE_SQLITE);
    fill_by_kernel(p.from.store, 0);
    assert_int_equal(pair_copy(&p), ERR_OK);
    assert_int_equal(store_copy_finish(p.to.store, &p.err), ERR_OK);
    place_close(&p.to);
    place_open(&p.to);
    assert_int_equal(p.to.store->next_chunk, p.from.store->next_chunk);
    struct kernel_load *l = kernel_load_new(p.to.store, 6);
    for (int i = 0; i < LOAD_STEPS; i++)
        assert_int_equal(kernel_load_step_blind(l, &p.err), ERR_OK);
    kernel_load_free(l);
    expect_sound(p.to.store);
    pair_drop(&p);
}

/* New chunks must not take the numbers that purged events had: rows still refer to those. */
TEST(numbers_of_an_empty_log_go_on)
{
    for (enum place_kind kind = 0; kind < PLACE_KIND_COUNT; kind++) {
        if (kind == PLACE_POSTGRES && !has_postgres())
            continue;
        struct pair p;
        pair_make(&p, kind);
        struct change_set purged = {.first_chunk = 700, .drop_chunks_below = 700};
        assert_int_equal(p.from.store->ops->commit(p.from.store, &purged, &p.err), ERR_OK);
        assert_int_equal(pair_copy(&p), ERR_OK);
        assert_true(next_chunk_of(p.to.store) >= 700);
        pair_drop(&p);
    }
}

/* Lanes leave gaps in the log; one writer counts its chunks through. */
TEST(a_log_with_gaps_is_counted_through_by_one_writer)
{
    struct pair p;
    pair_make(&p, PLACE_SQLITE);
    fill_by_kernel(p.from.store, 9);
    assert_int_equal(pair_copy(&p), ERR_OK);
    expect_equal(&p.result);
    expect_sound(p.to.store);
    assert_int_equal(next_chunk_of(p.to.store), (int64_t)p.result.target[COPY_LOG].rows + 1);
    assert_true(next_chunk_of(p.from.store) > 2 * next_chunk_of(p.to.store));
    pair_drop(&p);
}

/* --- commits that are meddled with ------------------------------------------------------------------- */

static struct {
    struct store_ops ops;
    const struct store_ops *real;
    int left;          /* commits before the one that fails; negative: none does */
    int doctored_part; /* whose next row is changed; -1: none */
    bool was_doctored;
} meddling;

static void doctor_row(struct row_change *change, struct arena *a)
{
    const struct table *t = change->table;
    const struct column *last = &t->columns[t->column_count - 1];
    void *row = arena_alloc(a, t->row_size);
    memcpy(row, change->row, t->row_size);
    if (last->type == COLUMN_INT) {
        *(int64_t *)(void *)((char *)row + last->offset) ^= 1; /* of INT64_MAX there is no next */
    } else {
        struct str *text = (struct str *)(void *)((char *)row + last->offset);
        char *bytes = arena_copy(a, text->ptr, text->len);
        bytes[0] ^= 1; /* of an empty text: the byte behind it becomes its first */
        *text = (struct str){bytes, text->len ? text->len : 1};
    }
    change->row = row;
}

static struct change_set doctored(const struct change_set *c, struct arena *a)
{
    struct change_set d = *c;
    int part = meddling.doctored_part;
    if (part < COPY_TABLES && c->row_count && c->rows[0].table == tables[part]) {
        struct row_change *rows = ARENA_ARRAY(a, struct row_change, c->row_count);
        memcpy(rows, c->rows, c->row_count * sizeof *rows);
        doctor_row(&rows[c->row_count / 2], a);
        d.rows = rows;
    } else if (part == COPY_LOG && c->chunk_count) {
        struct str *chunks = ARENA_ARRAY(a, struct str, c->chunk_count);
        memcpy(chunks, c->chunks, c->chunk_count * sizeof *chunks);
        char *bytes = arena_copy(a, chunks[0].ptr, chunks[0].len);
        bytes[chunks[0].len - 1] ^= 1;
        chunks[0].ptr = bytes;
        d.chunks = chunks;
    } else if (part == COPY_LIST && c->list_count) {
        d.list_count--;
    } else if (part == COPY_IDEM && c->idem_add_count) {
        d.idem_add_count--;
    } else {
        return d;
    }
    meddling.was_doctored = true;
    meddling.doctored_part = -1;
    return d;
}

static enum err_code meddled_commit(struct store *s, const struct change_set *c, struct err *err)
{
    if (meddling.left >= 0 && meddling.left-- == 0)
        return err_set(err, ERR_STORAGE_DB_ERROR, "told to fail");
    if (meddling.doctored_part < 0)
        return meddling.real->commit(s, c, err);
    struct arena *a = arena_new(1 << 12);
    struct change_set d = doctored(c, a);
    enum err_code code = meddling.real->commit(s, &d, err);
    arena_free(a);
    return code;
}

static void meddle(struct store *s, int left, int doctored_part)
{
    meddling.real = s->ops;
    meddling.ops = *s->ops;
    meddling.ops.commit = meddled_commit;
    meddling.left = left;
    meddling.doctored_part = doctored_part;
    meddling.was_doctored = false;
    s->ops = &meddling.ops;
}

static void stop_meddling(struct store *s)
{
    s->ops = meddling.real;
}

static enum err_code open_to_serve(const struct place *p, struct err *err)
{
    struct store *s = NULL;
    struct store_options o = {.url = p->url.ptr, .timeout_ms = TIMEOUT_MS, .wall_ms = NOW_MS};
    enum err_code code = store_open(&o, &s, err);
    store_close(s);
    return code;
}

/* After every commit it breaks off once; the next try goes on behind it. */
static void break_off_everywhere(enum place_kind kind)
{
    struct pair p;
    uint64_t before = 0;
    int tries = 0;
    pair_make(&p, kind);
    fill_by_kernel(p.from.store, 0);
    for (;; tries++) {
        meddle(p.to.store, 1, -1);
        enum err_code code = pair_copy(&p);
        stop_meddling(p.to.store);
        assert_true(p.result.resumed >= before);
        before = p.result.resumed;
        if (code == ERR_OK)
            break;
        assert_int_equal(code, ERR_STORAGE_DB_ERROR);
        assert_string_equal(p.err.detail, "told to fail");
        assert_true(tries < 1000);
        if (kind == PLACE_SQLITE && tries > 0) { /* half a store is not served */
            assert_int_equal(open_to_serve(&p.to, &p.err), ERR_CONFIG_INVALID);
            assert_non_null(strstr(p.err.detail, "not finished"));
        }
        place_close(&p.to);
        if (kind != PLACE_MEMORY)
            place_open(&p.to);
    }
    assert_true(tries >= COPY_PART_COUNT - 1);
    expect_equal(&p.result);
    expect_sound(p.to.store);
    assert_int_equal(store_copy_finish(p.to.store, &p.err), ERR_OK);
    place_close(&p.to);
    if (kind != PLACE_MEMORY)
        assert_int_equal(open_to_serve(&p.to, &p.err), ERR_OK);
    pair_drop(&p);
}

TEST(a_copy_that_broke_off_goes_on)
{
    break_off_everywhere(PLACE_MEMORY);
    break_off_everywhere(PLACE_SQLITE);
    if (has_postgres())
        break_off_everywhere(PLACE_POSTGRES);
}

TEST(another_source_or_a_filled_target_is_refused)
{
    struct pair p;
    pair_make(&p, PLACE_SQLITE);
    fill_by_kernel(p.from.store, 0);
    meddle(p.to.store, 4, -1);
    assert_int_equal(pair_copy(&p), ERR_STORAGE_DB_ERROR);
    stop_meddling(p.to.store);
    struct request_day_row row = {.client = 1, .day = 77};
    struct row_change change = {&table_request_day_row, ROW_INSERT, &row};
    struct change_set more = {.rows = &change, .row_count = 1, .first_chunk = p.from.store->next_chunk};
    assert_int_equal(p.from.store->ops->commit(p.from.store, &more, &p.err), ERR_OK);
    assert_int_equal(pair_copy(&p), ERR_JOB_CONFLICT);
    assert_non_null(strstr(p.err.detail, "source has changed"));
    assert_int_equal(store_copy_finish(p.to.store, &p.err), ERR_OK); /* as if it were a store of its own */
    assert_int_equal(pair_copy(&p), ERR_JOB_CONFLICT);
    assert_non_null(strstr(p.err.detail, "not empty"));
    pair_drop(&p);
}

/* The negative control: each part's sum sees one changed bit, and no other part is blamed. */
TEST(a_difference_is_found_in_its_part)
{
    for (int part = 0; part < COPY_PART_COUNT; part++) {
        struct pair p;
        pair_make(&p, PLACE_SQLITE);
        fill_made_up(p.from.store);
        meddle(p.to.store, -1, part);
        assert_int_equal(pair_copy(&p), ERR_OK);
        assert_true(meddling.was_doctored);
        stop_meddling(p.to.store);
        assert_false(p.result.equal);
        for (int i = 0; i < COPY_PART_COUNT; i++) {
            bool same = p.result.source[i].rows == p.result.target[i].rows &&
                        p.result.source[i].digest == p.result.target[i].digest;
            assert_int_equal(same, i != part);
        }
        pair_drop(&p);
    }
}

int main(void)
{
    log_minimum((enum log_level)(LOG_ERROR + 1)); /* the load's refusals are nothing to read */
    return test_run("tests", NULL, NULL);
}
