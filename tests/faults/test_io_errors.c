/* tests/faults/test_io_errors.c - the nth read, write, sync, truncate or open of the store fails.
 *
 * A run without faults is the book. With a fault, a refused batch leaves exactly the state before
 * it, what was acknowledged is there after a power cut, the same batches go through once the fault
 * is over, and a failed sync is told as ERR_STORE_FSYNC, because its result is unknown. */
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>

#include "case.h"

#include "faults/sim_disk.h"
#include "faults/store_book.h"
#include "faults/store_load.h"
#include "base/must.h"
#include "base/banned.h"

/* SQLite allocates a lot here; a large quarantine would be most of the run. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=8:malloc_context_size=4:max_malloc_fill_size=0";
}

/* Writes of the whole run. Frame by frame there would be several times as many (sqlite_wal_writes.c). */
enum { WRITES_MIN = 20, WRITES_MAX = 30 };
enum { BATCHES = 8, CHECKPOINT_AFTER = 5, JOBS_PER_BATCH = 6, SEED = 3, N_MAX = 3000 };

static struct store_book book;
static struct sim_disk *empty_schema; /* closed; every trial begins with a copy of it */

struct trial {
    struct sim_disk *disk;
    struct store *store;
    struct store_load *load;
    bool unknown; /* a sync failed: the last batch may or may not be there */
};

static void trial_start(struct trial *t)
{
    struct err err;
    *t = (struct trial){.disk = sim_disk_copy(empty_schema)};
    sim_disk_mount(t->disk);
    assert_int_equal(store_book_open(NULL, &t->store, &err), ERR_OK);
    t->load = store_load_new(SEED, JOBS_PER_BATCH);
}

/* Without power, so that nothing but what was durable helps; then the disk as found is the trial's.
 */
static void trial_cut_power(struct trial *t)
{
    struct sim_disk *after = sim_disk_power_cut(t->disk, SIM_CUT_DROP_ALL, 1);
    store_close(t->store);
    t->store = NULL;
    sim_disk_free(t->disk);
    t->disk = after;
    sim_disk_mount(after);
}

static void trial_end(struct trial *t)
{
    store_load_free(t->load);
    store_close(t->store);
    sim_disk_mount(NULL);
    sim_disk_free(t->disk);
}

static void expect_durable(struct trial *t)
{
    struct sim_cut cut = {.acked = store_load_batches(t->load)};
    cut.begun = cut.acked + (t->unknown ? 1 : 0);
    char why[256] = "";
    trial_cut_power(t);
    if (store_book_judge(&book, t->disk, &cut, why) != SIM_SOUND)
        fail_msg("%llu batches acknowledged, found %s", (unsigned long long)cut.acked, why);
}

static int write_the_book(void **state)
{
    (void)state;
    struct trial t;
    struct err err;
    empty_schema = sim_disk_new();
    sim_disk_mount(empty_schema);
    assert_int_equal(store_book_open(NULL, &t.store, &err), ERR_OK);
    store_close(t.store);
    trial_start(&t);
    store_book_note(&book, t.disk, 0);
    for (uint64_t n = 1; n <= BATCHES; n++) {
        assert_int_equal(store_load_step(t.load, t.store, &err), ERR_OK);
        store_book_note(&book, t.disk, n);
    }
    trial_end(&t);
    return 0;
}

static int free_the_schema(void **state)
{
    (void)state;
    sim_disk_free(empty_schema);
    return 0;
}

/* One batch, and the checkpoint where one is due. */
static enum err_code step(struct trial *t, struct err *err)
{
    if (store_load_step(t->load, t->store, err) != ERR_OK)
        return err->code;
    return store_load_batches(t->load) == CHECKPOINT_AFTER ? store_book_checkpoint(t->store, err) : ERR_OK;
}

static void expect_refused_whole(struct trial *t, const struct err *err)
{
    assert_true(err->code == ERR_STORAGE_DB_ERROR || err->code == ERR_STORAGE_UNAVAILABLE);
    assert_true(err->detail[0] != '\0');
    assert_true(store_book_is(&book, t->disk, store_load_batches(t->load)));
}

/* Runs all batches with the fault; a batch that fails twice sees the fault repaired. True when
 * struck. */
static bool run_with_fault(const struct sim_fault *f)
{
    struct trial t;
    struct err err = {.code = ERR_OK};
    unsigned failures = 0;
    trial_start(&t);
    sim_disk_fault(t.disk, f);
    while (store_load_batches(t.load) < BATCHES && !t.unknown) {
        if (step(&t, &err) == ERR_OK)
            continue;
        if (err.code == ERR_STORE_FSYNC) {
            t.unknown = true;
            break;
        }
        expect_refused_whole(&t, &err);
        if (++failures == 2)
            sim_disk_heal(t.disk);
        assert_true(failures < 4);
    }
    bool struck = sim_disk_faults_hit(t.disk) > 0;
    assert_int_equal(t.unknown, struck && f->call == SIM_CALL_SYNC);
    sim_disk_heal(t.disk);
    expect_durable(&t);
    trial_end(&t);
    return struck;
}

static void walk(struct sim_fault f, unsigned at_least)
{
    for (unsigned n = 1; n < N_MAX; n++) {
        f.nth = n;
        if (!run_with_fault(&f)) {
            if (n <= at_least) /* else the walk proves little */
                fail_msg("only %u calls of %s", n, sim_call_text(f.call));
            assert_true(f.call != SIM_CALL_WRITE || n <= WRITES_MAX);
            return;
        }
    }
    fail_msg("%s: still struck at %d", sim_call_text(f.call), N_MAX);
}

TEST(test_any_write_may_find_the_disk_full_and_only_its_batch_is_refused)
{
    walk((struct sim_fault){.call = SIM_CALL_WRITE, .times = 1, .code = SQLITE_FULL}, WRITES_MIN);
}

TEST(test_the_disk_may_stay_full_until_there_is_room_again)
{
    walk((struct sim_fault){.call = SIM_CALL_WRITE, .times = 0, .code = SQLITE_FULL}, WRITES_MIN);
}

TEST(test_any_write_may_fail_and_only_its_batch_is_refused)
{
    walk((struct sim_fault){.call = SIM_CALL_WRITE, .times = 1, .code = SQLITE_IOERR_WRITE}, WRITES_MIN);
    walk((struct sim_fault){.call = SIM_CALL_WRITE, .times = 0, .code = SQLITE_IOERR_WRITE}, WRITES_MIN);
}

TEST(test_any_sync_may_fail_and_it_is_told_as_unknown)
{
    struct sim_fault f = {.call = SIM_CALL_SYNC, .times = 1, .code = SQLITE_IOERR_FSYNC};
    walk(f, BATCHES);
    f.evict = true;
    walk(f, BATCHES);
}

TEST(test_any_read_may_fail_and_only_its_batch_is_refused)
{
    walk((struct sim_fault){.call = SIM_CALL_READ, .times = 1, .code = SQLITE_IOERR_READ}, 5);
    walk((struct sim_fault){.call = SIM_CALL_READ, .times = 0, .code = SQLITE_IOERR_READ}, 5);
}

TEST(test_a_full_disk_still_answers_reads_and_says_when_to_come_again)
{
    struct trial t;
    struct err err;
    trial_start(&t);
    struct reader *r = NULL;
    while (store_load_batches(t.load) < 3) /* until the WAL is longer than what was written ahead */
        assert_int_equal(step(&t, &err), ERR_OK);
    assert_int_equal(t.store->ops->reader_open(t.store, &r, &err), ERR_OK);
    sim_disk_limit(t.disk, sim_disk_used(t.disk) + 512);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(store_load_step(t.load, t.store, &err), ERR_STORAGE_DB_ERROR);
        assert_true(err.retry_after_s > 0);
        struct stats_row row = {.client = 1};
        struct arena *a = arena_new(4096);
        bool found = false;
        assert_int_equal(r->ops->reader_row(r, &table_stats_row, &row, a, &found, &err), ERR_OK);
        assert_true(found);
        arena_free(a);
    }
    sim_disk_heal(t.disk);
    while (store_load_batches(t.load) < BATCHES)
        assert_int_equal(step(&t, &err), ERR_OK);
    r->ops->reader_close(r);
    expect_durable(&t);
    trial_end(&t);
}

/* A database as a crash leaves it: a WAL to recover. */
static struct sim_disk *crashed_disk(void)
{
    struct trial t;
    struct err err;
    trial_start(&t);
    while (store_load_batches(t.load) < BATCHES)
        assert_int_equal(store_load_step(t.load, t.store, &err), ERR_OK);
    trial_cut_power(&t);
    struct sim_disk *left = sim_disk_copy(t.disk);
    trial_end(&t);
    return left;
}

/* Opening with a fault fails in words or succeeds; either way the next opening finds everything. */
static bool open_with_fault(struct sim_disk *crashed, const struct sim_fault *f)
{
    struct sim_disk *d = sim_disk_copy(crashed);
    struct store *s = NULL;
    struct err err = {.code = ERR_OK};
    char why[256] = "";
    struct sim_cut all = {.acked = BATCHES, .begun = BATCHES};
    sim_disk_mount(d);
    sim_disk_fault(d, f);
    if (store_book_open(NULL, &s, &err) == ERR_OK)
        store_close(s);
    else
        assert_true(err.detail[0] != '\0');
    bool struck = sim_disk_faults_hit(d) > 0;
    sim_disk_heal(d);
    if (store_book_judge(&book, d, &all, why) != SIM_SOUND)
        fail_msg("%s %llu: %s", sim_call_text(f->call), (unsigned long long)f->nth, why);
    sim_disk_mount(NULL);
    sim_disk_free(d);
    return struck;
}

TEST(test_opening_may_fail_at_any_call_and_the_next_opening_finds_everything)
{
    static const struct sim_fault faults[] = {
        {.call = SIM_CALL_OPEN, .times = 1, .code = SQLITE_CANTOPEN},
        {.call = SIM_CALL_READ, .times = 1, .code = SQLITE_IOERR_READ},
        {.call = SIM_CALL_READ, .times = 0, .code = SQLITE_IOERR_READ},
        {.call = SIM_CALL_WRITE, .times = 1, .code = SQLITE_FULL},
        {.call = SIM_CALL_WRITE, .times = 0, .code = SQLITE_IOERR_WRITE},
        {.call = SIM_CALL_SYNC, .times = 1, .code = SQLITE_IOERR_FSYNC},
        {.call = SIM_CALL_TRUNCATE, .times = 1, .code = SQLITE_IOERR_TRUNCATE},
        {.call = SIM_CALL_DELETE, .times = 1, .code = SQLITE_IOERR_DELETE},
        {.call = SIM_CALL_SHM_MAP, .times = 1, .code = SQLITE_IOERR_SHMMAP},
    };
    struct sim_disk *crashed = crashed_disk();
    for (size_t i = 0; i < LENGTH_OF(faults); i++) {
        struct sim_fault f = faults[i];
        for (f.nth = 1; open_with_fault(crashed, &f); f.nth++)
            assert_true(f.nth < N_MAX);
        assert_true(f.nth > 1);
    }
    sim_disk_free(crashed);
}

int main(void)
{
    return test_run("tests", write_the_book, free_the_schema);
}
