/* Events of runs: found by the writer and by readers whatever way they have gone, over restarts, failing
 * commits, changes. On every store; on SQLite also what an old snapshot and a reader in another process see,
 * where they lie, and what damage of theirs does. */
#include "store/bench_former.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/banned.h"

enum { RUNS = 40, COMMIT_EVENTS = 25, BATCH = 30, LARGE = 5000 };
#ifdef __SANITIZE_THREAD__
enum { COMMITS = 60 }; /* by one thread, which the other builds do at length */
#else
enum { COMMITS = 300 };
#endif

/* How many events each run has: what an event says follows from its run and its number. */
struct model {
    int64_t last[RUNS];
};

static struct run_event_row event_of(struct bench *b, int64_t run, int64_t seq)
{
    uint64_t h = hash_mix((uint64_t)(run * 100003 + seq));
    size_t len = h % 50 == 0 ? LARGE : h % 3 == 0 ? h % 300 : 0;
    char *payload = arena_alloc(b->arena, len + 1);
    memset(payload, 'a' + (int)(h % 26), len);
    return (struct run_event_row){.run = run,
                                  .seq = seq,
                                  .type = (int64_t)(h % 9),
                                  .attempt = (int64_t)(h % 5) - 1,
                                  .engine_attempt = 1,
                                  .persisted_ms = (int64_t)(h >> 20),
                                  .event_id = arena_str(b->arena, (struct str){(const char *)&h, sizeof h}),
                                  .emitted = STR("2026-01-01T00:00:00Z"),
                                  .step =
                                      h % 4 ? arena_printf(b->arena, "step-%d", (int)(h % 7)) : STR_ABSENT,
                                  .payload = len ? (struct str){payload, len} : STR_ABSENT};
}

static void put_event(struct bench *b, struct model *m, int64_t run, struct row_change *ret_change)
{
    struct run_event_row *e = ARENA_NEW(b->arena, struct run_event_row);
    *e = event_of(b, run, ++m->last[run]);
    *ret_change = (struct row_change){&table_run_event_row, ROW_INSERT, e};
}

/* One commit: a few events of many runs, or many of one. A failing one leaves nothing. */
static void add_events(struct bench *b, struct model *m, bool batch, bool fails)
{
    struct row_change rows[BATCH + COMMIT_EVENTS + 1];
    struct job_row absent = {.id = 5};
    struct model before = *m;
    size_t count = 0, wanted = 1 + bench_draw(b, batch ? BATCH : COMMIT_EVENTS);
    int64_t run = (int64_t)bench_draw(b, RUNS);
    for (; count < wanted; count++)
        put_event(b, m, batch ? run : (int64_t)bench_draw(b, RUNS), &rows[count]);
    rows[count] = (struct row_change){&table_job_row, ROW_DELETE, &absent};
    struct change_set c = {.rows = rows, .row_count = count + fails, .first_chunk = b->store->next_chunk};
    assert_int_equal(bench_commit(b, &c) == ERR_OK, !fails);
    if (fails)
        *m = before;
}

struct told {
    struct bench *bench;
    int64_t run, seq; /* that come next */
    size_t count;
};

static bool expect_next(const void *row, void *arg)
{
    struct told *t = arg;
    struct run_event_row want = event_of(t->bench, t->run, t->seq++);
    bench_expect_equal(&table_run_event_row, row, &want);
    t->count++;
    return true;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Of a run from a number on, at most so many. */
static void expect_range(struct bench *b, struct reader *r, const struct model *m, int64_t run, int64_t seq,
                         size_t max)
{
    struct err err;
    struct run_event_row from = {.run = run, .seq = seq};
    struct told t = {b, run, seq, 0};
    assert_int_equal(r->ops->reader_range(r, &table_run_event_row, &from, max, expect_next, &t, &err),
                     ERR_OK);
    int64_t there = m->last[run] - seq + 1;
    assert_int_equal(t.count, least(max, there > 0 ? (size_t)there : 0));
}

/* In the order of runs and numbers. */
static bool expect_in_order(const void *row, void *arg)
{
    struct told *t = arg;
    const struct run_event_row *e = row;
    if (e->run != t->run) {
        assert_true(e->run > t->run);
        t->run = e->run;
        t->seq = 1;
    }
    return expect_next(row, arg);
}

/* All that the reader sees is what the model has. */
static void expect_seen(struct bench *b, struct reader *r, const struct model *m)
{
    struct err err;
    struct told all = {b, -1, 0, 0};
    size_t count = 0;
    bool found;
    for (int64_t run = 0; run < RUNS; run++) {
        count += (size_t)m->last[run];
        expect_range(b, r, m, run, 1, SIZE_MAX >> 1);
        struct run_event_row beyond = {.run = run, .seq = m->last[run] + 1};
        assert_int_equal(r->ops->reader_row(r, &table_run_event_row, &beyond, b->arena, &found, &err),
                         ERR_OK);
        assert_false(found);
    }
    assert_int_equal(r->ops->reader_scan(r, &table_run_event_row, expect_in_order, &all, &err), ERR_OK);
    assert_int_equal(all.count, count);
}

static void expect_some(struct bench *b, const struct model *m, int tries)
{
    struct err err;
    for (int i = 0; i < tries; i++) {
        int64_t run = (int64_t)bench_draw(b, RUNS);
        struct run_event_row want = event_of(b, run, m->last[run] + 1);
        assert_null(bench_fetch(b, &table_run_event_row, &want));
        if (!m->last[run])
            continue;
        int64_t seq = 1 + (int64_t)bench_draw(b, (uint64_t)m->last[run]);
        want = event_of(b, run, seq);
        bench_expect_equal(&table_run_event_row, bench_fetch(b, &table_run_event_row, &want), &want);
        bench_begin(b);
        expect_range(b, b->reader, m, run, seq, bench_draw(b, 20));
        bench_end(b);
        struct told t = {b, run, seq, 0};
        assert_int_equal(
            b->store->ops->range(b->store, &table_run_event_row, &want, 10, expect_next, &t, &err), ERR_OK);
        assert_int_equal(t.count, least(10, (size_t)(m->last[run] - seq + 1)));
        if (b->store->ops->abandon)
            b->store->ops->abandon(b->store);
    }
}

static void expect_all(struct bench *b, const struct model *m)
{
    bench_begin(b);
    expect_seen(b, b->reader, m);
    bench_end(b);
    arena_reset(b->arena);
}

BENCH_TEST(test_every_event_is_found_whatever_way_it_has_gone, b)
{
    struct model m = {{0}};
    for (int i = 0; i < (b->shared ? COMMITS / 5 : COMMITS); i++) {
        add_events(b, &m, bench_draw(b, 10) == 0, false);
        if (bench_draw(b, 6) == 0)
            add_events(b, &m, bench_draw(b, 4) == 0, true);
        expect_some(b, &m, 3);
        if (i % 20 == 0)
            expect_all(b, &m);
        if (b->on_disk && bench_draw(b, 40) == 0)
            bench_reopen(b);
    }
    expect_all(b, &m);
}

/* Weir does neither; a store that is asked to does it, and what waited does not undo it. */
BENCH_TEST(test_a_changed_or_deleted_event_stays_so, b)
{
    struct model m = {{0}};
    for (int i = 0; i < 12; i++) {
        for (int k = 0; k < 5; k++)
            add_events(b, &m, false, false);
        int64_t run = 0;
        while (m.last[run] < 2)
            run++;
        struct run_event_row gone = event_of(b, run, m.last[run]--);
        assert_int_equal(bench_change(b, &table_run_event_row, ROW_DELETE, &gone), ERR_OK);
        expect_all(b, &m);
        if (b->on_disk && i % 5 == 0)
            bench_reopen(b);
        expect_all(b, &m);
    }
}

/* --- SQLite alone ---------------------------------------------------------------------------------- */

static int64_t blocks_below(struct bench *b)
{
    return bench_file_number(b, "SELECT coalesce(min(n),0) FROM deferred_run_events");
}

/* Few bytes for each run wait; a batch of one run, or a large payload, goes to its place. */
BENCH_TEST_ON("sqlite", test_what_rides_and_what_does_not, b)
{
    struct model m = {{0}};
    struct row_change rows[RUNS];
    for (int64_t run = 0; run < RUNS; run++)
        put_event(b, &m, run, &rows[run]);
    struct change_set c = {.rows = rows, .row_count = RUNS, .first_chunk = b->store->next_chunk};
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    assert_int_equal(bench_file_number(b, "SELECT count(*) FROM run_events"), 0);
    assert_int_equal(bench_file_number(b, "SELECT count(*) FROM deferred_run_events"), 1);
    for (int64_t i = 0; i < BATCH; i++)
        put_event(b, &m, 7, &rows[i]);
    c.row_count = BATCH;
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    assert_int_equal(bench_file_number(b, "SELECT count(*) FROM run_events"), BATCH);
    assert_int_equal(bench_file_number(b, "SELECT count(*) FROM deferred_run_events"), 1);
    expect_all(b, &m);
}

/* A merge that was begun and not ended, because the process was: the blocks are still there. */
BENCH_TEST_ON("sqlite", test_a_merge_that_was_interrupted_is_made_good, b)
{
    struct model m = {{0}};
    for (int round = 0; round < 4; round++) {
        int64_t before, first;
        do { /* a slice is more than any of these commits has */
            before = bench_file_number(b, "SELECT count(*) FROM run_events");
            add_events(b, &m, false, false);
        } while (bench_file_number(b, "SELECT count(*) FROM run_events") <= before + COMMIT_EVENTS);
        assert_true(blocks_below(b) > 0);
        bench_reopen(b);
        expect_all(b, &m);
        for (first = blocks_below(b); blocks_below(b) == first;)
            add_events(b, &m, false, false);
        expect_all(b, &m);
    }
}

/* A reader whose snapshot is older than what the writer still has in memory, and one in another process. */
BENCH_TEST_ON("sqlite", test_a_snapshot_sees_what_it_saw_while_all_of_it_moves, b)
{
    struct model m = {{0}}, then;
    struct err err;
    struct reader *outside;
    struct sqlite_options o = {.path = b->path, .timeout_ms = 1000};
    for (int i = 0; i < 10; i++)
        add_events(b, &m, false, false);
    assert_int_equal(store_open_sqlite_reader(&o, &outside, &err), ERR_OK);
    for (int round = 0; round < 3; round++) {
        then = m;
        bench_begin(b);
        assert_int_equal(outside->ops->reader_begin(outside, &err), ERR_OK);
        expect_range(b, b->reader, &then, 3, 1, 100); /* the snapshot begins with the first read */
        expect_range(b, outside, &then, 3, 1, 100);
        add_events(b, &m, false, false); /* is in memory at once, and not theirs */
        for (int64_t run = 0; run < RUNS; run++)
            expect_range(b, b->reader, &then, run, 1, 1000);
        for (int64_t last = bench_file_number(b, "SELECT max(n) FROM deferred_run_events");
             blocks_below(b) <= last;)
            add_events(b, &m, bench_draw(b, 20) == 0, false); /* until no block of theirs is left */
        expect_seen(b, b->reader, &then);
        expect_seen(b, outside, &then);
        bench_end(b);
        outside->ops->reader_end(outside);
        expect_all(b, &m);
        expect_seen(b, outside, &m); /* without a snapshot, too */
    }
    outside->ops->reader_close(outside);
}

/* As the ninth schema had it: every event in its place. */
BENCH_TEST_ON("sqlite", test_events_of_the_ninth_schema_are_found, b)
{
    struct model m = {{0}};
    for (int i = 0; i < 20; i++)
        add_events(b, &m, false, false);
    struct run_event_row gone = event_of(b, 2, ++m.last[2]); /* a delete merges all of them */
    assert_int_equal(bench_change(b, &table_run_event_row, ROW_INSERT, &gone), ERR_OK);
    assert_int_equal(bench_change(b, &table_run_event_row, ROW_DELETE, &gone), ERR_OK);
    m.last[2]--;
    assert_int_equal(bench_file_number(b, "SELECT count(*) FROM deferred_run_events"), 0);
    bench_from_version(b, 9, "INSERT INTO run_events SELECT * FROM now.run_events");
    expect_all(b, &m);
    add_events(b, &m, false, false);
    expect_all(b, &m);
}

/* One byte of a block is another: it is told, and nothing is taken from it. */
BENCH_TEST_ON("sqlite", test_a_damaged_block_is_told, b)
{
    struct model m = {{0}};
    add_events(b, &m, false, false);
    add_events(b, &m, false, false);
    bench_close(b);
    int64_t size = bench_file_number(b, "SELECT length(block) FROM deferred_run_events ORDER BY n LIMIT 1");
    bench_file_run(b, "CREATE TABLE sound AS SELECT n,block FROM deferred_run_events");
    for (int64_t at = 1; at <= size; at += 1 + size / 25) {
        char sql[300];
        struct err err = {.code = ERR_OK};
        enum err_code code;
        snprintf(
            sql, sizeof sql,
            "UPDATE deferred_run_events SET block=CAST(substr(block,1,%lld-1)||CASE substr(block,%lld,1) "
            "WHEN x'21' THEN x'22' ELSE x'21' END||substr(block,%lld+1) AS BLOB)"
            " WHERE n=(SELECT min(n) FROM deferred_run_events)",
            (long long)at, (long long)at, (long long)at);
        bench_file_run(b, sql);
        assert_null(bench_open_again(b, &code, &err));
        assert_int_equal(code, ERR_STORE_CORRUPT);
        assert_non_null(strstr(err.detail, "deferred_run_events"));
        bench_file_run(
            b, "DELETE FROM deferred_run_events; INSERT INTO deferred_run_events SELECT n,block FROM sound");
    }
    bench_open(b); /* the control */
    expect_all(b, &m);
}

/* --- readers beside the writer --------------------------------------------------------------------- */

struct watcher {
    struct reader *reader;
    _Atomic bool stop;
    _Atomic int64_t looks;
    int64_t gaps, backwards;
};

struct length {
    int64_t next, gaps;
};

static bool note_length(const void *row, void *arg)
{
    struct length *l = arg;
    l->gaps += ((const struct run_event_row *)row)->seq != l->next;
    l->next = ((const struct run_event_row *)row)->seq + 1;
    return true;
}

/* A run has no gap, and never less than before. */
static void *watch(void *arg)
{
    struct watcher *w = arg;
    struct reader *r = w->reader;
    struct err err;
    int64_t seen[RUNS] = {0};
    while (!atomic_load(&w->stop)) {
        bool snapshot = atomic_load(&w->looks) % 2 == 0;
        if (snapshot && r->ops->reader_begin(r, &err) != ERR_OK)
            break;
        for (int64_t run = 0; run < RUNS; run++) {
            struct run_event_row from = {.run = run, .seq = 1};
            struct length l = {1, 0};
            if (r->ops->reader_range(r, &table_run_event_row, &from, 1 << 20, note_length, &l, &err) !=
                ERR_OK)
                l.gaps++;
            w->gaps += l.gaps;
            w->backwards += l.next < seen[run];
            seen[run] = l.next;
        }
        if (snapshot)
            r->ops->reader_end(r);
        atomic_fetch_add(&w->looks, 1);
    }
    return NULL;
}

BENCH_TEST_ON("sqlite", test_readers_on_other_threads_see_no_gap, b)
{
    enum { WATCHERS = 2 };
    struct model m = {{0}};
    struct watcher w[WATCHERS] = {{0}};
    pthread_t threads[WATCHERS];
    struct err err;
    for (int i = 0; i < WATCHERS; i++) {
        assert_int_equal(b->store->ops->reader_open(b->store, &w[i].reader, &err), ERR_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, watch, &w[i]), 0);
    }
    for (int i = 0; i < 250 || atomic_load(&w[0].looks) < 20 || atomic_load(&w[1].looks) < 20; i++) {
        add_events(b, &m, bench_draw(b, 15) == 0, bench_draw(b, 20) == 0);
        arena_reset(b->arena);
    }
    for (int i = 0; i < WATCHERS; i++) { /* all have ended before anything is judged */
        atomic_store(&w[i].stop, true);
        pthread_join(threads[i], NULL);
        w[i].reader->ops->reader_close(w[i].reader);
    }
    for (int i = 0; i < WATCHERS; i++) {
        assert_int_equal(w[i].gaps, 0);
        assert_int_equal(w[i].backwards, 0);
    }
    expect_all(b, &m);
}

int main(void)
{
    return bench_run_all();
}
