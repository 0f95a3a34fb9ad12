/* tests/faults/test_power_cut.c - accepted means durable: the power fails at every disk operation
 * of a run of the real kernel on the real store.
 *
 * After every cut the store opens and holds exactly the state after some batch between the last
 * acknowledged and the last begun one; samples pass the store's own verification and go on working.
 * The controls break one thing each and must be caught. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sqlite3.h>

#include "case.h"

#include "faults/kernel_load.h"
#include "faults/sim_disk.h"
#include "faults/store_book.h"
#include "base/hash.h"
#include "base/must.h"
#include "base/banned.h"

/* SQLite allocates a lot here; a large quarantine would be most of the run. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=8:malloc_context_size=4:max_malloc_fill_size=0";
}

/* A sanitizer makes a cut many times dearer: with one, a slice of each; the release build does them all, and
 * the controls, which are about this test and not about Weir. */
#ifdef __SANITIZE_ADDRESS__
enum { CUTS = 500, CUTS_LONG = 20000, BESIDE_CUTS = 150, INDEX_CUTS = 120 };
#else
enum { CUTS = 5000, CUTS_LONG = 400000, BESIDE_CUTS = 1500, INDEX_CUTS = 400 };
#endif

enum {
    CONTROL_CUTS = 600,
    STEPS = 110, /* enough for a merge of listing entries */
    CONTROL_STEPS = 25,
    STEPS_PER_CHECKPOINT = 3,
    GO_ON_EACH = 100, /* of the disks found */
    INDEX_CONTROL_CUTS = 200,
    INDEX_COMMITS = 70,
    ENTRIES_EACH = 12,
    EVENT_RUNS = 5,
};

struct experiment {
    struct store_book book;
    struct sim_disk *disk;
    const char *synchronous;
    unsigned steps;
    struct sim_fault fault; /* armed after the schema stands, when `broken` */
    bool broken;
    bool beside;             /* checkpoints by a second connection, while commits go on */
    _Atomic uint64_t copied; /* pages, by it */
    _Atomic bool stop;
    struct kernel_load_stats stats;
    uint64_t judged;
};

static void checkpoint_once(struct experiment *e, sqlite3 *db)
{
    int in_log = 0, copied = 0;
    int rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log, &copied);
    MUST(rc == SQLITE_OK || rc == SQLITE_BUSY);
    if (copied > 0)
        atomic_fetch_add(&e->copied, (uint64_t)copied);
}

static sqlite3 *open_beside(const char *pragmas)
{
    sqlite3 *db = NULL;
    MUST(sqlite3_open_v2(STORE_BOOK_DB, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, SIM_VFS_NAME) ==
         SQLITE_OK);
    MUST(sqlite3_exec(db, pragmas, NULL, NULL, NULL) == SQLITE_OK);
    return db;
}

/* As the store's own checkpoint thread, but all the time: the load is too small for its thresholds. Within a
 * snapshot, as that one, so that the WAL does not start over meanwhile (sqlite_checkpoint.c). */
static void *checkpoint_beside(void *arg)
{
    struct experiment *e = arg;
    sqlite3 *db = open_beside("PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0");
    sqlite3 *pin = open_beside("PRAGMA wal_autocheckpoint=0");
    checkpoint_once(e, db); /* opens its files, before the disk is mounted for something else */
    MUST(sqlite3_exec(pin, "SELECT 1 FROM sqlite_schema LIMIT 1", NULL, NULL, NULL) == SQLITE_OK);
    atomic_store(&e->stop, false);
    while (!atomic_load(&e->stop)) {
        MUST(sqlite3_exec(pin, "BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1", NULL, NULL, NULL) == SQLITE_OK);
        checkpoint_once(e, db);
        MUST(sqlite3_exec(pin, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
        sched_yield();
    }
    sqlite3_close(pin);
    sqlite3_close(db);
    return NULL;
}

static void start_beside(struct experiment *e, pthread_t *thread)
{
    atomic_store(&e->stop, true);
    assert_int_equal(pthread_create(thread, NULL, checkpoint_beside, e), 0);
    while (atomic_load(&e->stop))
        sched_yield();
}

static void stop_beside(struct experiment *e, pthread_t thread)
{
    atomic_store(&e->stop, true);
    pthread_join(thread, NULL);
}

/* A reader on an old snapshot now and then, so that checkpoints have to stop at its mark. */
static void reader_turn(struct reader *r, uint64_t n)
{
    struct err err;
    if (n % 3 == 1) {
        struct stats_row row = {.client = 1};
        struct arena *a = arena_new(4096);
        bool found = false;
        assert_int_equal(r->ops->reader_begin(r, &err), ERR_OK);
        assert_int_equal(r->ops->reader_row(r, &table_stats_row, &row, a, &found, &err), ERR_OK);
        arena_free(a);
    }
    if (n % 3 == 0)
        r->ops->reader_end(r);
}

/* The commits are numbered in the order the kernel tells them; the next may be under way at once. */
static void committed(void *arg)
{
    struct experiment *e = arg;
    sim_disk_acked(e->disk, e->book.count);
    sim_disk_begun(e->disk, e->book.count + 1);
    store_book_note(&e->book, e->disk, e->book.count);
}

static void run_steps(struct experiment *e, struct store *s, struct reader *r)
{
    struct kernel_load *l = kernel_load_new(s, 11);
    struct err err;
    char why[256];
    kernel_load_watch(l, committed, NULL, e);
    for (uint64_t n = 1; n <= e->steps; n++) {
        assert_int_equal(kernel_load_step(l, &err), ERR_OK);
        reader_turn(r, n);
        if (n % STEPS_PER_CHECKPOINT == 0 && !e->beside)
            assert_int_equal(store_book_checkpoint(s, &err), ERR_OK);
        if (n % 5 == 0 && kernel_load_verify(s, why) != 0)
            fail_msg("after step %llu: %s", (unsigned long long)n, why);
    }
    if (e->steps % 3 != 0)
        r->ops->reader_end(r);
    e->stats = *kernel_load_stats(l);
    kernel_load_free(l);
}

static void workload(struct sim_disk *d, void *ctx)
{
    struct experiment *e = ctx;
    struct store *s = NULL;
    struct reader *r = NULL;
    struct err err;
    assert_int_equal(store_book_open(e->synchronous, &s, &err), ERR_OK);
    e->book.count = 0;
    e->disk = d;
    committed(e); /* the empty schema is number 0 */
    if (e->broken)
        sim_disk_fault(d, &e->fault);
    assert_int_equal(s->ops->reader_open(s, &r, &err), ERR_OK);
    pthread_t thread;
    if (e->beside)
        start_beside(e, &thread);
    run_steps(e, s, r);
    if (e->beside)
        stop_beside(e, thread);
    r->ops->reader_close(r);
    store_close(s);
}

/* The mounted store passes its verification, and a kernel on it goes on working. */
static enum sim_verdict go_on(uint64_t seed, char why[256])
{
    struct store *s = NULL;
    struct err err = {.code = ERR_OK};
    if (store_book_open(NULL, &s, &err) != ERR_OK || kernel_load_verify(s, why) != 0) {
        store_close(s);
        return SIM_UNREADABLE;
    }
    struct kernel_load *l = kernel_load_new(s, seed);
    enum sim_verdict verdict = SIM_SOUND;
    for (int i = 0; i < 3 && verdict == SIM_SOUND; i++)
        if (kernel_load_step(l, &err) != ERR_OK) {
            snprintf(why, 256, "%s", err.detail);
            verdict = SIM_UNREADABLE;
        }
    kernel_load_free(l);
    store_close(s);
    return verdict;
}

static enum sim_verdict check(struct sim_disk *d, const struct sim_cut *cut, void *ctx, char why[256])
{
    struct experiment *e = ctx;
    enum sim_verdict verdict = store_book_judge(&e->book, d, cut, why);
    if (verdict != SIM_SOUND || ++e->judged % GO_ON_EACH != 0)
        return verdict;
    struct sim_disk *copy = sim_disk_copy(d); /* `d` itself stays as found: it may be cut again */
    sim_disk_mount(copy);
    verdict = go_on(cut->seed, why);
    sim_disk_mount(d);
    sim_disk_free(copy);
    return verdict;
}

static struct sim_cut_report cut_kernel(const char *title, struct experiment *e, struct sim_cut_plan plan)
{
    plan.seed = 1;
    plan.recut_each = 8;
    struct sim_cut_report r = sim_run_cuts(&plan, workload, check, e);
    sim_report_print(stderr, title, &r);
    return r;
}

static struct sim_cut_plan whole_plan(void)
{
    const char *longer = getenv("WEIR_TEST_LONG");
    return longer && strcmp(longer, "1") == 0 ? (struct sim_cut_plan){.cuts = CUTS_LONG}
                                              : (struct sim_cut_plan){.cuts = CUTS, .start = SIM_START_ONCE};
}

TEST(test_no_cut_loses_an_acknowledged_command_or_leaves_half_a_batch)
{
    struct experiment *e = must_alloc(sizeof *e);
    e->steps = STEPS;
    struct sim_cut_report r = cut_kernel("kernel", e, whole_plan());
    const struct kernel_load_stats *s = &e->stats;
    assert_true(r.cuts >= whole_plan().cuts);
    assert_int_equal(sim_unsound(&r), 0);
    /* The load was a load: every kind of command, a listing merge and the purge were among it. */
    assert_true(s->accepted > 500 && s->replayed > 20 && s->claimed > 300 && s->started > 200);
    assert_true(s->finished > 150 && s->canceled > 50 && s->retried > 10);
    assert_true(e->book.pages[e->book.count - 1].merged > 0);
    assert_true(e->book.pages[e->book.count - 1].first_chunk > 1);
    free(e);
}

TEST(test_no_cut_loses_anything_while_another_thread_checkpoints)
{
    struct experiment *e = must_alloc(sizeof *e);
    e->steps = STEPS / 2;
    e->beside = true;
    struct sim_cut_report r =
        cut_kernel("checkpoints beside commits", e,
                   (struct sim_cut_plan){.cuts = BESIDE_CUTS, .start = SIM_START_UNCUT});
    assert_int_equal(sim_unsound(&r), 0);
    assert_true(atomic_load(&e->copied) > 100);
    assert_true(e->stats.finished > 50);
    free(e);
}

/* --- events of runs and their index entries ------------------------------------------------------------ */

/* Number n of all there are: one event of a run, and its index entry. */
static struct run_index_row entry_number(uint64_t n)
{
    return (struct run_index_row){
        .run = 1 + (int64_t)(n % EVENT_RUNS), .hash = (int64_t)hash_mix(n), .place = (int64_t)n};
}

static struct run_event_row event_number(uint64_t n)
{
    return (struct run_event_row){.run = 1 + (int64_t)(n % EVENT_RUNS),
                                  .seq = 1 + (int64_t)(n / EVENT_RUNS),
                                  .persisted_ms = (int64_t)(hash_mix(n) >> 20),
                                  .event_id = STR("0123456789abcdef"),
                                  .payload = STR("{}")};
}

static enum err_code commit_entries(struct store *s, uint64_t from, struct err *err)
{
    struct run_index_row entries[ENTRIES_EACH];
    struct run_event_row events[ENTRIES_EACH];
    struct row_change rows[2 * ENTRIES_EACH];
    for (uint64_t i = 0; i < ENTRIES_EACH; i++) {
        entries[i] = entry_number(from + i);
        events[i] = event_number(from + i);
        rows[2 * i] = (struct row_change){&table_run_index_row, ROW_INSERT, &entries[i]};
        rows[2 * i + 1] = (struct row_change){&table_run_event_row, ROW_INSERT, &events[i]};
    }
    struct change_set c = {.rows = rows, .row_count = LENGTH_OF(rows), .first_chunk = s->next_chunk};
    return s->ops->commit(s, &c, err);
}

static void index_workload(struct sim_disk *d, void *ctx)
{
    struct experiment *e = ctx;
    struct store *s = NULL;
    struct err err;
    assert_int_equal(store_book_open(e->synchronous, &s, &err), ERR_OK);
    e->book.count = 0;
    e->disk = d;
    committed(e);
    for (uint64_t n = 0; n < INDEX_COMMITS; n++) {
        assert_int_equal(commit_entries(s, n * ENTRIES_EACH, &err), ERR_OK);
        committed(e);
        if (n % STEPS_PER_CHECKPOINT == 0)
            assert_int_equal(store_book_checkpoint(s, &err), ERR_OK);
    }
    store_close(s);
}

static bool count_entry(const void *row, void *arg)
{
    (void)row;
    ++*(uint64_t *)arg;
    return true;
}

static bool is_there(struct store *s, uint64_t n, struct err *err)
{
    struct run_index_row m = entry_number(n);
    struct run_event_row e = event_number(n), want = e;
    struct arena *a = arena_new(512);
    bool entry = false, event = false;
    bool read = s->ops->fetch(s, &table_run_index_row, &m, NULL, &entry, err) == ERR_OK &&
                s->ops->fetch(s, &table_run_event_row, &e, a, &event, err) == ERR_OK;
    bool same = read && entry && m.place == (int64_t)n && event && e.persisted_ms == want.persisted_ms &&
                str_equal(e.event_id, want.event_id) && str_equal(e.payload, want.payload);
    arena_free(a);
    return same;
}

/* As many as a reader finds, all of their numbers are there; and it goes on. */
static bool entries_are_whole(struct store *s, uint64_t *ret_count, struct err *err)
{
    struct reader *r = NULL;
    uint64_t events = 0;
    *ret_count = 0;
    if (s->ops->reader_open(s, &r, err) != ERR_OK)
        return false;
    bool whole = r->ops->reader_scan(r, &table_run_index_row, count_entry, ret_count, err) == ERR_OK &&
                 r->ops->reader_scan(r, &table_run_event_row, count_entry, &events, err) == ERR_OK &&
                 events == *ret_count;
    r->ops->reader_close(r);
    for (uint64_t i = 0; whole && i < *ret_count; i++)
        whole = is_there(s, i, err);
    s->ops->abandon(s);
    return whole && *ret_count % ENTRIES_EACH == 0;
}

static enum sim_verdict check_entries(struct sim_disk *d, const struct sim_cut *cut, void *ctx, char why[256])
{
    struct experiment *e = ctx;
    enum sim_verdict verdict = store_book_judge(&e->book, d, cut, why);
    if (verdict != SIM_SOUND || ++e->judged % (GO_ON_EACH / 10) != 0)
        return verdict;
    struct sim_disk *copy = sim_disk_copy(d);
    struct store *s = NULL;
    struct err err = {.code = ERR_OK};
    uint64_t count, more;
    sim_disk_mount(copy);
    bool whole = store_book_open(NULL, &s, &err) == ERR_OK && entries_are_whole(s, &count, &err);
    for (more = 0; whole && more < 30; more++)
        whole = commit_entries(s, count + more * ENTRIES_EACH, &err) == ERR_OK;
    whole = whole && entries_are_whole(s, &more, &err) && more == count + UINT64_C(30) * ENTRIES_EACH;
    store_close(s);
    sim_disk_mount(d);
    sim_disk_free(copy);
    if (!whole)
        snprintf(why, 256, "%s", err.code == ERR_OK ? "events or index entries are missing" : err.detail);
    return whole ? SIM_SOUND : SIM_UNREADABLE;
}

/* In the middle of a merge, too: what the cut leaves is blocks and a part of them in their places. */
TEST(test_no_cut_loses_an_event_of_a_run_or_an_index_entry)
{
    struct experiment *e = must_alloc(sizeof *e);
    struct sim_cut_plan plan = {.seed = 2, .cuts = INDEX_CUTS, .recut_each = 8, .start = SIM_START_UNCUT};
    struct sim_cut_report r = sim_run_cuts(&plan, index_workload, check_entries, e);
    sim_report_print(stderr, "events of runs and their index entries", &r);
    assert_int_equal(sim_unsound(&r), 0);
    const struct store_page *last = &e->book.pages[e->book.count - 1]; /* most have been merged */
    assert_in_range(last->merged_entries, INDEX_COMMITS * ENTRIES_EACH / 2, INDEX_COMMITS * ENTRIES_EACH - 1);
    assert_in_range(last->merged_events, INDEX_COMMITS * ENTRIES_EACH / 2, INDEX_COMMITS * ENTRIES_EACH - 1);
    e->synchronous = "OFF"; /* the control */
    plan.cuts = INDEX_CONTROL_CUTS;
    plan.stop_at_first = true;
    r = sim_run_cuts(&plan, index_workload, check_entries, e);
    assert_true(sim_unsound(&r) > 0);
    free(e);
}

#ifndef __SANITIZE_ADDRESS__
/* --- controls -------------------------------------------------------------------------------------- */

static bool is_caught(const char *title, const struct experiment *how)
{
    struct experiment *e = must_alloc(sizeof *e);
    *e = *how;
    e->steps = CONTROL_STEPS;
    struct sim_cut_report r = cut_kernel(
        title, e,
        (struct sim_cut_plan){.cuts = CONTROL_CUTS, .stop_at_first = true, .start = SIM_START_UNCUT});
    free(e);
    return sim_unsound(&r) > 0;
}

TEST(test_control_synchronous_off_and_normal_are_caught)
{
    static struct experiment off = {.synchronous = "OFF"}, normal = {.synchronous = "NORMAL"};
    assert_true(is_caught("synchronous=OFF", &off));
    assert_true(is_caught("synchronous=NORMAL", &normal));
}

TEST(test_control_a_disk_that_skips_the_syncs_of_one_file_is_caught)
{
    static struct experiment wal = {.broken = true, .fault = {.call = SIM_CALL_SYNC, .files = SIM_FILE_WAL}};
    static struct experiment db = {.broken = true, .fault = {.call = SIM_CALL_SYNC, .files = SIM_FILE_DB}};
    static struct experiment beside = {
        .beside = true, .broken = true, .fault = {.call = SIM_CALL_SYNC, .files = SIM_FILE_WAL}};
    assert_true(is_caught("every WAL sync skipped", &wal));
    assert_true(is_caught("every WAL sync skipped, checkpoints beside commits", &beside));
    assert_true(is_caught("every database sync skipped", &db));
}

/* Not every sync guards something of its own (the one of a WAL header, of a WAL that is synced
 * already), but most do. */
TEST(test_control_one_skipped_wal_sync_in_a_whole_run_is_caught)
{
    unsigned caught = 0;
    for (unsigned nth = 21; nth < 27 && caught < 2; nth++) {
        static struct experiment one = {.broken = true,
                                        .fault = {.call = SIM_CALL_SYNC, .files = SIM_FILE_WAL, .times = 1}};
        one.fault.nth = nth;
        caught += is_caught("one WAL sync skipped", &one);
    }
    assert_int_equal(caught, 2);
}

#endif
