/* Checkpoints on the thread of their own, beside commits and readers: the WAL starts over again and again, so
 * it stays small, also while commits never pause; and nothing is lost or read half. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_store.h"

#include "base/banned.h"

enum {
    COMMITS = 1500,
    IDLE_COMMITS = 300,
    ROWS_A_COMMIT = 25,
    PAYLOAD_SIZE = 3600, /* few rows fill many pages */
    AHEAD_BYTES = 4 << 20,
    AHEAD_COMMITS = 6,
    PATIENCE = 5, /* times as many commits, until the WAL has started over: a busy machine copies slowly */
};

struct yard {
    char folder[32], path[64];
    struct store *store;
    _Atomic bool stop;
    _Atomic int64_t committed; /* rows readers must find */
    _Atomic uint64_t reads;
};

static struct store *open_store_ahead(const struct yard *y, bool thread, int64_t wal_ahead_bytes)
{
    struct sqlite_options o = {
        .path = y->path, .timeout_ms = 5000, .checkpoint_thread = thread, .wal_ahead_bytes = wal_ahead_bytes};
    struct store *s = NULL;
    struct err err = {.code = ERR_OK};
    assert_int_equal(store_open_sqlite(&o, &s, &err), ERR_OK);
    return s;
}

static struct store *open_store(const struct yard *y, bool thread)
{
    return open_store_ahead(y, thread, 0);
}

static void yard_open(struct yard *y)
{
    snprintf(y->folder, sizeof y->folder, "/tmp/weir-checkpoint.XXXXXX");
    assert_non_null(mkdtemp(y->folder));
    snprintf(y->path, sizeof y->path, "%s/weir.db", y->folder);
    y->store = open_store(y, true);
}

static void yard_close(struct yard *y)
{
    store_close(y->store);
    unlink(y->path);
    assert_int_equal(rmdir(y->folder), 0); /* a clean stop leaves neither WAL nor shared memory */
}

static struct job_row job(int64_t id, char payload[PAYLOAD_SIZE])
{
    snprintf(payload, PAYLOAD_SIZE, "\"%0*lld\"", PAYLOAD_SIZE - 10, (long long)id);
    return (struct job_row){
        .id = id, .low = id * 3, .client = 1, .queue = STR("q"), .payload = {payload, strlen(payload)}};
}

static void commit_rows(struct yard *y, int64_t first)
{
    struct row_change changes[ROWS_A_COMMIT];
    static struct job_row rows[ROWS_A_COMMIT];
    static char payloads[ROWS_A_COMMIT][PAYLOAD_SIZE];
    for (int i = 0; i < ROWS_A_COMMIT; i++) {
        rows[i] = job(first + i, payloads[i]);
        changes[i] = (struct row_change){&table_job_row, ROW_INSERT, &rows[i]};
    }
    struct change_set c = {.rows = changes, .row_count = ROWS_A_COMMIT, .first_chunk = y->store->next_chunk};
    struct err err = {.code = ERR_OK};
    assert_int_equal(y->store->ops->commit(y->store, &c, &err), ERR_OK);
    atomic_store(&y->committed, first + ROWS_A_COMMIT - 1);
}

static void read_one(struct reader *r, struct arena *a, int64_t id)
{
    struct err err = {.code = ERR_OK};
    struct job_row row = {.id = id};
    char payload[PAYLOAD_SIZE];
    struct job_row expected = job(id, payload);
    bool found = false;
    MUST(r->ops->reader_begin(r, &err) == ERR_OK);
    MUST(r->ops->reader_row(r, &table_job_row, &row, a, &found, &err) == ERR_OK);
    r->ops->reader_end(r);
    MUST(found && row.low == expected.low && str_equal(row.payload, expected.payload));
    arena_reset(a);
}

static void *reader_thread(void *arg)
{
    struct yard *y = arg;
    struct reader *r = NULL;
    struct err err = {.code = ERR_OK};
    struct arena *a = arena_new(4096);
    uint64_t seed = 1;
    MUST(y->store->ops->reader_open(y->store, &r, &err) == ERR_OK);
    while (!atomic_load(&y->stop)) {
        int64_t last = atomic_load(&y->committed);
        seed = hash_mix(seed + 1);
        if (last)
            read_one(r, a, 1 + (int64_t)(seed % (uint64_t)last));
        atomic_fetch_add(&y->reads, 1);
        usleep(20); /* an HTTP thread looks at its sockets between two reads */
    }
    r->ops->reader_close(r);
    arena_free(a);
    return NULL;
}

static int64_t wal_bytes(const struct yard *y)
{
    struct stat wal;
    char path[80];
    snprintf(path, sizeof path, "%s-wal", y->path);
    assert_int_equal(stat(path, &wal), 0);
    return wal.st_size;
}

/* Commits without a pause, so many and on until the WAL has started over; false: it never did. */
static bool commit_all(struct yard *y, int64_t commits, bool idle_between)
{
    bool started_over = false;
    struct err err = {.code = ERR_OK};
    for (int64_t n = 0; n < commits || (!started_over && n < PATIENCE * commits); n++) {
        int64_t before = y->store->wal_pages;
        commit_rows(y, 1 + n * ROWS_A_COMMIT);
        started_over = started_over || y->store->wal_pages < before;
        assert_int_equal(y->store->ops->tend(y->store, idle_between, &err), ERR_OK);
    }
    return started_over;
}

static void expect_everything_after_reopening(struct yard *y)
{
    store_close(y->store);
    y->store = open_store(y, false);
    struct reader *r = NULL;
    struct err err = {.code = ERR_OK};
    struct arena *a = arena_new(4096);
    assert_int_equal(y->store->ops->reader_open(y->store, &r, &err), ERR_OK);
    for (int64_t id = 1; id <= atomic_load(&y->committed); id++)
        read_one(r, a, id);
    r->ops->reader_close(r);
    arena_free(a);
}

TEST(test_the_wal_starts_over_under_load_and_nothing_is_lost)
{
    struct yard y = {0};
    pthread_t readers[2];
    yard_open(&y);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, reader_thread, &y), 0);
    bool started_over = commit_all(&y, COMMITS, false);
    atomic_store(&y.stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(readers[i], NULL);
    assert_true(started_over);
    assert_true(atomic_load(&y.reads) > 0);
    expect_everything_after_reopening(&y);
    yard_close(&y);
}

/* On a server with little to do the writer copies nothing: it only asks. */
TEST(test_the_wal_starts_over_when_there_are_pauses)
{
    struct yard y = {0};
    yard_open(&y);
    assert_true(commit_all(&y, IDLE_COMMITS, true));
    yard_close(&y);
}

/* Both files as they are now, as a killed server would leave them. */
static void copy_files(const struct yard *from, const struct yard *to)
{
    char command[300];
    snprintf(command, sizeof command, "cp %s %s && cp %s-wal %s-wal", from->path, to->path, from->path,
             to->path);
    assert_int_equal(system(command), 0);
}

/* Written ahead the WAL does not grow, and what lies behind its last frame is never taken for one. */
TEST(test_a_wal_written_ahead_does_not_grow_and_recovers)
{
    struct yard y = {0}, copy;
    yard_open(&y);
    store_close(y.store);
    y.store = open_store_ahead(&y, true, AHEAD_BYTES);
    assert_int_equal(wal_bytes(&y), AHEAD_BYTES);
    copy = y;
    snprintf(copy.path, sizeof copy.path, "%s/copy.db", copy.folder);
    for (int64_t n = 0; n < AHEAD_COMMITS; n++) {
        commit_rows(&y, 1 + n * ROWS_A_COMMIT);
        assert_int_equal(wal_bytes(&y), AHEAD_BYTES);
        copy_files(&y, &copy);
        copy.store = open_store_ahead(&copy, false, n % 2 ? 2 * AHEAD_BYTES : 0);
        struct reader *r = NULL;
        struct err err = {.code = ERR_OK};
        struct arena *a = arena_new(4096);
        assert_int_equal(copy.store->ops->reader_open(copy.store, &r, &err), ERR_OK);
        for (int64_t id = 1; id <= (n + 1) * ROWS_A_COMMIT; id++)
            read_one(r, a, id);
        r->ops->reader_close(r);
        arena_free(a);
        store_close(copy.store);
        unlink(copy.path);
    }
    yard_close(&y);
}
