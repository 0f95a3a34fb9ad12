/* tests/faults/test_kernel_faults.c - the disk fails under the commit loop.
 *
 * Every fault is met by the whole kernel: a batch that cannot be stored is refused to all its callers, and
 * memory and tables are then both as before; what was acknowledged is there after a power cut; a failed
 * sync is fatal. tests/faults/test_io_errors.c walks every single operation below the kernel; here every
 * few, with the real commands, timers and the purge. */
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>

#include "case.h"

#include "base/log.h"
#include "faults/kernel_load.h"
#include "faults/sim_disk.h"
#include "faults/store_book.h"
#include "base/must.h"
#include "base/banned.h"

/* SQLite allocates a lot here; a large quarantine would be most of the run. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=8:malloc_context_size=4:max_malloc_fill_size=0";
}

enum { STEPS_BEFORE = 40, STEPS = 8, STRIDE = 4, N_MAX = 20000 };

struct trial {
    struct sim_disk *disk, *after; /* after: as found when the process ended by a failed sync */
    struct store *store;
    struct kernel_load *load;
    struct sim_disk *last; /* as it was after the last durable commit */
};

static void committed(void *arg)
{
    struct trial *t = arg;
    sim_disk_free(t->last);
    t->last = sim_disk_copy(t->disk);
}

/* The trial's disk, as found, holds what the last durable commit left. */
static bool holds_the_last(const struct trial *t)
{
    static struct store_book book;
    book.count = 0;
    sim_disk_mount(t->last);
    store_book_note(&book, t->last, 0);
    sim_disk_mount(t->disk);
    return store_book_is(&book, t->disk, 0);
}

/* The process ends here and now, and to make it worse the power goes too. */
static void fatal(void *arg)
{
    struct trial *t = arg;
    if (!t->after)
        t->after = sim_disk_power_cut(t->disk, SIM_CUT_DROP_ALL, 1);
}

/* Starts on a copy of a disk that has seen some work, so that timers, retries and the purge have something
 * to do. */
static struct trial *trial_new(const struct sim_disk *seen)
{
    struct trial *t = must_alloc(sizeof *t);
    struct err err;
    t->disk = sim_disk_copy((struct sim_disk *)(uintptr_t)seen);
    sim_disk_mount(t->disk);
    assert_int_equal(store_book_open(NULL, &t->store, &err), ERR_OK);
    t->load = kernel_load_new(t->store, 77);
    committed(t);
    kernel_load_watch(t->load, committed, fatal, t);
    assert_int_equal(kernel_load_step(t->load, &err), ERR_OK); /* the client */
    return t;
}

static void trial_free(struct trial *t)
{
    sim_disk_mount(NULL);
    sim_disk_free(t->last);
    sim_disk_free(t->disk);
    free(t);
}

static struct sim_disk *worked_disk;

static int make_worked_disk(void **state)
{
    (void)state;
    struct store *s = NULL;
    struct err err;
    worked_disk = sim_disk_new();
    sim_disk_mount(worked_disk);
    assert_int_equal(store_book_open(NULL, &s, &err), ERR_OK);
    struct kernel_load *l = kernel_load_new(s, 5);
    for (int i = 0; i < STEPS_BEFORE; i++)
        assert_int_equal(kernel_load_step(l, &err), ERR_OK);
    kernel_load_free(l);
    store_close(s);
    sim_disk_mount(NULL);
    return 0;
}

static int free_worked_disk(void **state)
{
    (void)state;
    sim_disk_free(worked_disk);
    return 0;
}

static void expect_verified(struct store *s)
{
    char why[256];
    if (kernel_load_verify(s, why) != 0)
        fail_msg("verify: %s", why);
}

/* The power fails, if it has not yet. Everything acknowledged is there, and nothing else. */
static void expect_durable(struct trial *t)
{
    struct store *s = NULL;
    struct err err;
    fatal(t);
    kernel_load_free(t->load);
    store_close(t->store);
    sim_disk_free(t->disk);
    t->disk = t->after;
    sim_disk_mount(t->disk);
    assert_true(holds_the_last(t));
    assert_int_equal(store_book_open(NULL, &s, &err), ERR_OK);
    expect_verified(s);
    store_close(s);
}

static void expect_refused_whole(struct trial *t, const struct err *err)
{
    assert_true(err->code == ERR_STORAGE_DB_ERROR || err->code == ERR_STORAGE_UNAVAILABLE);
    assert_null(t->after);
    assert_true(holds_the_last(t));
}

static void checkpoint(struct trial *t)
{
    struct err err = {.code = ERR_OK};
    if (store_book_checkpoint(t->store, &err) == ERR_STORE_FSYNC)
        fatal(t); /* as the commit thread does */
}

/* Steps with the fault until enough were acknowledged; the second refusal sees it repaired. True when
 * struck. */
static bool run_with_fault(const struct sim_fault *f)
{
    struct trial *t = trial_new(worked_disk);
    struct err err = {.code = ERR_OK};
    unsigned acked = 0, failures = 0;
    sim_disk_fault(t->disk, f);
    while (acked < STEPS && !t->after) {
        enum err_code code = kernel_load_step_blind(t->load, &err);
        if (code == ERR_OK && ++acked == STEPS / 2)
            checkpoint(t);
        if (code == ERR_OK || code == ERR_STORE_FSYNC)
            continue;
        expect_refused_whole(t, &err);
        if (++failures == 2)
            sim_disk_heal(t->disk);
        assert_true(failures < 6);
    }
    bool struck = sim_disk_faults_hit(t->disk) > 0;
    assert_int_equal(t->after != NULL, struck && f->call == SIM_CALL_SYNC);
    sim_disk_heal(t->disk);
    if (!t->after) {
        kernel_load_compare(t->load);
        expect_verified(t->store);
    }
    expect_durable(t);
    trial_free(t);
    return struck;
}

static void walk(struct sim_fault f, unsigned stride, unsigned at_least)
{
    unsigned n = 1;
    for (; n < N_MAX; n += stride) {
        f.nth = n;
        if (!run_with_fault(&f))
            break;
    }
    if (n >= N_MAX || n / stride < at_least)
        fail_msg("struck %u times, by strides of %u", n, stride);
}

TEST(test_a_full_disk_refuses_whole_batches_and_nothing_else)
{
    walk((struct sim_fault){.call = SIM_CALL_WRITE, .times = 1, .code = SQLITE_FULL}, STRIDE, 15);
    walk((struct sim_fault){.call = SIM_CALL_WRITE, .times = 0, .code = SQLITE_FULL}, STRIDE, 15);
}

TEST(test_a_failing_write_refuses_whole_batches_and_nothing_else)
{
    walk((struct sim_fault){.call = SIM_CALL_WRITE, .times = 1, .code = SQLITE_IOERR_WRITE}, STRIDE, 15);
}

TEST(test_a_failing_read_refuses_whole_batches_and_nothing_else)
{
    walk((struct sim_fault){.call = SIM_CALL_READ, .times = 1, .code = SQLITE_IOERR_READ}, 3, 5);
    walk((struct sim_fault){.call = SIM_CALL_READ, .times = 0, .code = SQLITE_IOERR_READ}, 3, 5);
}

TEST(test_a_failing_sync_ends_the_process_and_loses_nothing_acknowledged)
{
    struct sim_fault f = {.call = SIM_CALL_SYNC, .times = 1, .code = SQLITE_IOERR_FSYNC};
    walk(f, 1, STEPS);
    f.evict = true;
    walk(f, 1, STEPS);
}

int main(void)
{
    log_minimum(LOG_ERROR + 1); /* refusals are the point here */
    return test_run("tests", make_worked_disk, free_worked_disk);
}
