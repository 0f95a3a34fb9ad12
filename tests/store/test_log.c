/* The log: events in bytes and chunks in the store. On every store. */
#include "store/bench_store.h"

#include <poll.h>
#include <stdlib.h>

#include "base/banned.h"

static struct event made_event(struct bench *b, uint64_t n)
{
    size_t len = n % 7 == 0 ? LOG_EXTRA_BYTES_MAX : n % 3 == 0 ? 0 : n % 300;
    char *extra = arena_alloc(b->arena, len + 1);
    memset(extra, 'a' + (int)(n % 26), len);
    struct event e = {.job = (int64_t)(n * 1000003),
                      .seq = (uint32_t)n + 1,
                      .event = (enum job_event)(n % JOB_EVENT_COUNT),
                      .prev = (enum job_state)(n % (JOB_STATE_COUNT + 1)),
                      .next = (enum job_state)(n % JOB_STATE_COUNT),
                      .at_us = INT64_C(1763248200000000) + (int64_t)n,
                      .attempt = (uint32_t)(n % 5),
                      .kind = (uint8_t)(n % 31),
                      .extra = {extra, len}};
    memset(e.id.bytes, (int)n, sizeof e.id.bytes);
    return e;
}

static void expect_same_event(const struct event *a, const struct event *b)
{
    assert_int_equal(a->job, b->job);
    assert_int_equal(a->seq, b->seq);
    assert_int_equal(a->event, b->event);
    assert_int_equal(a->prev, b->prev);
    assert_int_equal(a->next, b->next);
    assert_int_equal(a->at_us, b->at_us);
    assert_int_equal(a->attempt, b->attempt);
    assert_int_equal(a->kind, b->kind);
    assert_memory_equal(a->id.bytes, b->id.bytes, 16);
    assert_true(str_equal(a->extra, b->extra));
}

enum { EVENTS = 400 };

/* Builds a log of EVENTS events; gives their refs. */
static void build(struct bench *b, struct log_builder *log, uint64_t *refs)
{
    log_builder_start(log, b->arena, b->store->next_chunk, b->store->open_bytes);
    for (uint64_t n = 0; n < EVENTS; n++) {
        struct event e = made_event(b, n);
        refs[n] = log_append(log, &e);
    }
    log_builder_finish(log);
}

BENCH_TEST(test_events_come_back_from_their_references_and_in_order, b)
{
    struct log_builder log;
    uint64_t refs[EVENTS];
    build(b, &log, refs);
    struct change_set c = {
        .chunks = log.chunks, .chunk_count = log.chunk_count, .first_chunk = log.first_chunk};
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    assert_int_equal(b->store->next_chunk, b->first_chunk + (int64_t)log.chunk_count);
    assert_true(log.chunk_count > 5);
    uint64_t n = 0;
    bench_begin(b);
    for (size_t i = 0; i < log.chunk_count; i++) {
        struct str chunk;
        struct err err;
        int64_t number = b->first_chunk + (int64_t)i;
        assert_int_equal(b->reader->ops->reader_chunk(b->reader, number, b->arena, &chunk, &err), ERR_OK);
        assert_true(chunk.len <= LOG_CHUNK_BYTES);
        assert_true(log_chunk_is_sound(chunk));
        for (size_t at = LOG_FIRST_OFFSET; at < chunk.len; n++) {
            struct event got, want = made_event(b, n);
            assert_int_equal(log_ref_chunk(refs[n]), number);
            assert_int_equal(log_ref_offset(refs[n]), at);
            assert_true(event_decode(chunk, at, &got, &at));
            expect_same_event(&got, &want);
        }
    }
    bench_end(b);
    assert_int_equal(n, EVENTS);
}

/* One commit with `count` events from number `first` on. */
static void commit_events(struct bench *b, uint64_t first, size_t count, uint64_t *refs)
{
    struct log_builder log;
    log_builder_start(&log, b->arena, b->store->next_chunk, b->store->open_bytes);
    for (size_t i = 0; i < count; i++) {
        struct event e = made_event(b, first + i);
        refs[first + i] = log_append(&log, &e);
    }
    log_builder_finish(&log);
    struct change_set c = {.chunks = log.chunks,
                           .chunk_count = log.chunk_count,
                           .first_chunk = log.first_chunk,
                           .first_offset = log.first_offset};
    assert_int_equal(bench_commit(b, &c), ERR_OK);
}

static void expect_event(struct bench *b, uint64_t ref, uint64_t n)
{
    struct event got, want = made_event(b, n);
    struct str chunk;
    struct err err;
    size_t next;
    assert_int_equal(b->reader->ops->reader_chunk(b->reader, log_ref_chunk(ref), b->arena, &chunk, &err),
                     ERR_OK);
    assert_true(log_chunk_is_sound(chunk));
    assert_true(event_decode(chunk, log_ref_offset(ref), &got, &next));
    expect_same_event(&got, &want);
}

struct followed {
    struct bench *bench;
    uint64_t next;
    size_t chunks;
};

static bool see_events(struct log_place at, struct str chunk, void *arg)
{
    struct followed *f = arg;
    struct event e;
    f->chunks++;
    for (size_t offset = at.offset; offset < chunk.len;) {
        struct event want = made_event(f->bench, f->next++);
        assert_true(event_decode(chunk, offset, &e, &offset));
        expect_same_event(&e, &want);
    }
    return true;
}

static bool count_chunk(int64_t number, struct str chunk, void *arg)
{
    (void)number;
    ++*(size_t *)arg;
    return log_chunk_is_sound(chunk);
}

/* However few events a commit has: where one writer numbers the chunks, they are as full as those of a large
 * commit. Each event stays where its reference says, before and after the chunk is full, and is told once. */
BENCH_TEST(test_small_commits_share_chunks_and_no_event_moves, b)
{
    struct followed f = {.bench = b};
    struct log_place place = {0};
    struct err err;
    uint64_t refs[EVENTS + 3], count = 0;
    size_t chunks = 0;
    for (int i = 0; count < EVENTS; i++) {
        commit_events(b, count, 1 + (size_t)i % 3, refs);
        count += 1 + (uint64_t)i % 3;
        if (b->on_disk && i % 50 == 20)
            bench_reopen(b);
        bench_begin(b);
        for (uint64_t n = 0; n<count; n += count> 20 && n + 20 < count ? 7 : 1)
            expect_event(b, refs[n], n);
        assert_int_equal(store_follow(b->reader, &place, 100, see_events, &f, &err), ERR_OK);
        bench_end(b);
        assert_true(b->shared || f.next == count);
    }
    while (f.next < count) { /* other programs' transactions hold it up */
        bench_begin(b);
        assert_int_equal(store_follow(b->reader, &place, 100, see_events, &f, &err), ERR_OK);
        bench_end(b);
    }
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_scan_log(b->reader, 0, count_chunk, &chunks, &err), ERR_OK);
    bench_end(b);
    struct log_builder whole;
    build(b, &whole, refs);
    if (b->on_disk && !b->shared)
        assert_true(chunks <= whole.chunk_count + 2);
}

BENCH_TEST(test_an_event_on_its_own_is_the_same_bytes, b)
{
    for (uint64_t n = 0; n < 30; n++) {
        struct event want = made_event(b, n), got;
        struct str alone = event_encode_in(b->arena, &want);
        size_t next;
        assert_true(event_decode(alone, 0, &got, &next));
        assert_int_equal(next, alone.len);
        expect_same_event(&got, &want);
    }
}

/* Whatever bytes stand there: no read beyond the end, and every single changed byte of a chunk is noticed. */
BENCH_TEST(test_damaged_chunks_are_noticed_and_never_read_beyond, b)
{
    struct log_builder log;
    uint64_t refs[EVENTS];
    build(b, &log, refs);
    struct str whole = log.chunks[0];
    for (size_t i = 0; i < whole.len; i++) {
        char *copy = must_alloc(whole.len);
        memcpy(copy, whole.ptr, whole.len);
        copy[i] = (char)(copy[i] ^ (1 << (i % 8)));
        struct str damaged = {copy, whole.len};
        assert_false(log_chunk_is_sound(damaged));
        struct event e;
        for (size_t at = LOG_FIRST_OFFSET; at < damaged.len && event_decode(damaged, at, &e, &at);)
            assert_true(at <= damaged.len);
        free(copy);
    }
    for (size_t len = 0; len < whole.len; len++) {
        char *cut = must_alloc(len);
        memcpy(cut, whole.ptr, len);
        struct str chunk = {cut, len};
        assert_false(log_chunk_is_sound(chunk));
        struct event e;
        size_t next;
        for (size_t at = 0; at <= len + 8; at++)
            assert_true(!event_decode(chunk, at, &e, &next) || next <= len);
        free(cut);
    }
}

struct numbers {
    int64_t seen[64];
    size_t count, stop_after;
};

/* Its length tells which one it is. */
static size_t length_of_chunk(int64_t number)
{
    return (size_t)(number % 97) * 10;
}

static bool see_number(int64_t number, struct str chunk, void *arg)
{
    struct numbers *n = arg;
    assert_int_equal(chunk.len, length_of_chunk(number));
    n->seen[n->count++] = number;
    return n->count != n->stop_after;
}

/* Chunks `first` to `last` of this bench, counted from 1, and no others from `from` on. */
static void expect_numbers(struct bench *b, int64_t from, int64_t first, int64_t last)
{
    struct numbers n = {.count = 0};
    int64_t before = b->first_chunk - 1;
    struct err err;
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_scan_log(b->reader, before + from, see_number, &n, &err), ERR_OK);
    bench_end(b);
    assert_int_equal(n.count, last - first + 1);
    for (size_t i = 0; i < n.count; i++)
        assert_int_equal(n.seen[i], before + first + (int64_t)i);
}

static void append_chunks(struct bench *b, size_t count, int64_t drop_below)
{
    static const char bytes[1000];
    struct str chunks[8];
    for (size_t i = 0; i < count; i++)
        chunks[i] = (struct str){bytes, length_of_chunk(b->store->next_chunk + (int64_t)i)};
    struct change_set c = {.chunks = chunks,
                           .chunk_count = count,
                           .first_chunk = b->store->next_chunk,
                           .drop_chunks_below = drop_below ? b->first_chunk - 1 + drop_below : 0};
    assert_int_equal(bench_commit(b, &c), ERR_OK);
}

/* A shared one looks into the log when it takes over the duty to shorten it, not before. */
static void expect_first(const struct bench *b, int64_t first)
{
    if (!b->shared)
        assert_int_equal(b->store->first_chunk, first);
}

BENCH_TEST(test_chunks_are_numbered_through_and_dropped_from_the_front, b)
{
    expect_numbers(b, 0, 1, 0);
    expect_first(b, 1);
    for (int i = 0; i < 5; i++)
        append_chunks(b, 4, 0);
    expect_numbers(b, 0, 1, 20);
    expect_numbers(b, 15, 15, 20);
    append_chunks(b, 2, 11);
    expect_first(b, 11);
    expect_numbers(b, 0, 11, 22);
    struct numbers n = {.stop_after = 3};
    struct err err;
    struct str chunk;
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_scan_log(b->reader, 0, see_number, &n, &err), ERR_OK);
    assert_int_equal(b->reader->ops->reader_chunk(b->reader, b->first_chunk + 9, b->arena, &chunk, &err),
                     ERR_OK);
    bench_end(b);
    assert_int_equal(n.count, 3);
    assert_null(chunk.ptr);
}

BENCH_TEST(test_an_emptied_log_counts_on, b)
{
    append_chunks(b, 5, 0);
    append_chunks(b, 0, 6);
    expect_numbers(b, 0, 1, 0);
    expect_first(b, 6);
    if (b->on_disk)
        bench_reopen(b);
    int64_t next = b->store->next_chunk - b->first_chunk + 1;
    if (b->shared)
        assert_true(next >= 6); /* a new handle takes new numbers */
    else
        assert_int_equal(next, 6);
    expect_first(b, 6);
    append_chunks(b, 2, 0);
    expect_numbers(b, 0, next, next + 1);
}

BENCH_TEST(test_a_chunk_number_is_used_once, b)
{
    append_chunks(b, 3, 0);
    struct str chunk = STR("again");
    struct change_set c = {.chunks = &chunk, .chunk_count = 1, .first_chunk = b->first_chunk + 2};
    assert_int_equal(bench_commit(b, &c), ERR_STORAGE_DB_ERROR);
    assert_int_equal(b->store->next_chunk, b->first_chunk + 3);
}

static bool see_place(struct log_place at, struct str chunk, void *arg)
{
    return see_number(at.chunk, chunk, arg);
}

/* Until `count` chunks were seen in all; on a shared store other programs' transactions hold them up. */
static void follow_until(struct bench *b, struct log_place *place, size_t at_once, struct numbers *n,
                         size_t count)
{
    struct err err;
    for (int looks = 0; n->count < count && looks < 5000; looks++) {
        size_t before = n->count;
        bench_begin(b);
        assert_int_equal(store_follow(b->reader, place, at_once, see_place, n, &err), ERR_OK);
        bench_end(b);
        assert_true(n->count - before <= at_once);
        if (b->shared && n->count < count)
            poll(NULL, 0, 2);
    }
    assert_int_equal(n->count, count);
}

BENCH_TEST(test_who_follows_sees_each_chunk_once_and_goes_on_where_it_ended, b)
{
    struct numbers n = {.count = 0}, stopped = {.stop_after = 2};
    struct log_place place = {0}, start = {0};
    struct err err;
    follow_until(b, &place, 3, &n, 0);
    append_chunks(b, 7, 0);
    follow_until(b, &place, 3, &n, 7);
    append_chunks(b, 4, 3); /* two are dropped that were seen long ago */
    follow_until(b, &place, 3, &n, 11);
    for (size_t i = 0; i < n.count; i++)
        assert_int_equal(n.seen[i], b->first_chunk + (int64_t)i);
    assert_int_equal(place.chunk, n.seen[10]);
    /* The one at which it was stopped comes again. */
    bench_begin(b);
    assert_int_equal(store_follow(b->reader, &start, 10, see_place, &stopped, &err), ERR_OK);
    assert_int_equal(start.chunk, b->first_chunk + 2);
    stopped.stop_after = 0;
    assert_int_equal(store_follow(b->reader, &start, 10, see_place, &stopped, &err), ERR_OK);
    bench_end(b);
    assert_int_equal(stopped.count, 2 + 8);
    assert_int_equal(stopped.seen[1], stopped.seen[2]);
}

int main(void)
{
    return bench_run_all();
}
