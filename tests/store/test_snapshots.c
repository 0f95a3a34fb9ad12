/* Readers on other threads see whole batches and nothing that is not committed. On every store. */
#include "store/bench_store.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/banned.h"

enum { BATCHES = 300, READERS = 3, ROWS_A_BATCH = 5 };

struct reading {
    struct store *store;
    atomic_bool *stop;
    sem_t *looked; /* posted after each snapshot */
    int64_t highest;
    const char *fault;
};

static bool count_row(const void *row, void *arg)
{
    (void)row;
    ++*(uint64_t *)arg;
    return true;
}

static bool count_chunk(int64_t number, struct str chunk, void *arg)
{
    (void)number;
    (void)chunk;
    ++*(uint64_t *)arg;
    return true;
}

/* Batch n inserts five jobs, appends one chunk, lists five entries and sets the head to n, in one commit. */
static const char *look(struct reader *r, struct arena *a, int64_t *highest)
{
    struct key_head_row head = {.client = 1};
    struct list_query q = {.owner_key = 1, .below_id = INT64_MAX, .limit = BATCHES * ROWS_A_BATCH};
    int64_t *ids = ARENA_ARRAY(a, int64_t, BATCHES * ROWS_A_BATCH);
    struct err err;
    bool found = false;
    uint64_t rows = 0, chunks = 0;
    size_t listed = 0;
    if (r->ops->reader_row(r, &table_key_head_row, &head, a, &found, &err) != ERR_OK || !found)
        return "the head is readable";
    if (r->ops->reader_scan(r, &table_job_row, count_row, &rows, &err) != ERR_OK ||
        rows != (uint64_t)head.active * ROWS_A_BATCH)
        return "rows and head are of one commit";
    if (r->ops->reader_scan_log(r, 0, count_chunk, &chunks, &err) != ERR_OK ||
        chunks != (uint64_t)head.active)
        return "log and head are of one commit";
    if (r->ops->reader_list(r, &q, ids, &listed, &err) != ERR_OK ||
        listed != (size_t)head.active * ROWS_A_BATCH)
        return "listing and head are of one commit";
    if (head.active < *highest)
        return "a later snapshot is not older";
    *highest = head.active;
    return NULL;
}

static void *read_on(void *arg)
{
    struct reading *x = arg;
    struct reader *r;
    struct err err;
    struct arena *a = arena_new(1 << 16);
    if (x->store->ops->reader_open(x->store, &r, &err) != ERR_OK) {
        x->fault = "a reader opens";
        for (int i = 0; i < BATCHES; i++)
            sem_post(x->looked);
        arena_free(a);
        return NULL;
    }
    while (!atomic_load(x->stop) && !x->fault) {
        if (r->ops->reader_begin(r, &err) != ERR_OK) {
            x->fault = "a snapshot begins";
            break;
        }
        x->fault = look(r, a, &x->highest);
        r->ops->reader_end(r);
        sem_post(x->looked);
        arena_reset(a);
    }
    for (int i = 0; x->fault && i < BATCHES; i++)
        sem_post(x->looked); /* nobody waits for a reader that has stopped */
    r->ops->reader_close(r);
    arena_free(a);
    return NULL;
}

static void write_batch(struct bench *b, int64_t n)
{
    struct job_row jobs[ROWS_A_BATCH];
    struct row_change rows[ROWS_A_BATCH + 1];
    struct list_entry list[ROWS_A_BATCH];
    for (int64_t i = 0; i < ROWS_A_BATCH; i++) {
        jobs[i] = (struct job_row){.id = n * ROWS_A_BATCH + i, .client = 1, .queue = STR("q")};
        rows[i] = (struct row_change){&table_job_row, ROW_INSERT, &jobs[i]};
        list[i] = (struct list_entry){.owner_key = 1, .id = jobs[i].id};
    }
    struct key_head_row head = {.client = 1, .active = n};
    rows[ROWS_A_BATCH] = (struct row_change){&table_key_head_row, ROW_UPDATE, &head};
    struct str chunk = STR("chunk");
    struct change_set c = {.rows = rows,
                           .row_count = LENGTH_OF(rows),
                           .chunks = &chunk,
                           .chunk_count = 1,
                           .first_chunk = b->store->next_chunk,
                           .list = list,
                           .list_count = LENGTH_OF(list)};
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    struct err err;
    assert_int_equal(b->store->ops->tend(b->store, true, &err), ERR_OK);
}

BENCH_TEST(test_readers_beside_the_writer_see_whole_batches, b)
{
    struct key_head_row head = {.client = 1};
    assert_int_equal(bench_change(b, &table_key_head_row, ROW_INSERT, &head), ERR_OK);
    atomic_bool stop = false;
    sem_t looked;
    sem_init(&looked, 0, 0);
    struct reading readings[READERS];
    pthread_t threads[READERS];
    for (int i = 0; i < READERS; i++) {
        readings[i] = (struct reading){.store = b->store, .stop = &stop, .looked = &looked};
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &readings[i]), 0);
    }
    for (int64_t n = 1; n <= BATCHES; n++) {
        write_batch(b, n);
        if (n % 10)
            continue;
        while (sem_trywait(&looked) == 0) /* so that reads and writes really alternate: */
            continue;
        sem_wait(&looked); /* somebody has looked since */
    }
    atomic_store(&stop, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    sem_destroy(&looked);
    for (int i = 0; i < READERS; i++)
        assert_null(readings[i].fault);
}

/* A snapshot that is held does not move; the next one does. Not in memory: that store's snapshot is its
 * lock, so nobody could write beside it. */
BENCH_TEST_ON("sqlite postgres", test_a_held_snapshot_stays_as_it_was, b)
{
    struct key_head_row head = {.client = 1};
    struct err err;
    bool found = false;
    assert_int_equal(bench_change(b, &table_key_head_row, ROW_INSERT, &head), ERR_OK);
    write_batch(b, 1);
    bench_begin(b);
    assert_int_equal(
        b->reader->ops->reader_row(b->reader, &table_key_head_row, &head, b->arena, &found, &err), ERR_OK);
    assert_int_equal(head.active, 1);
    write_batch(b, 2);
    uint64_t rows = 0;
    assert_int_equal(
        b->reader->ops->reader_row(b->reader, &table_key_head_row, &head, b->arena, &found, &err), ERR_OK);
    assert_int_equal(b->reader->ops->reader_scan(b->reader, &table_job_row, count_row, &rows, &err), ERR_OK);
    assert_int_equal(head.active, 1);
    assert_int_equal(rows, ROWS_A_BATCH);
    bench_end(b);
    bench_begin(b);
    assert_int_equal(
        b->reader->ops->reader_row(b->reader, &table_key_head_row, &head, b->arena, &found, &err), ERR_OK);
    bench_end(b);
    assert_int_equal(head.active, 2);
}

int main(void)
{
    return bench_run_all();
}
