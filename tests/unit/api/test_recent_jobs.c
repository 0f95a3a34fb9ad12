/* Recently submitted jobs: what is found, what is forgotten, and two threads at once. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

#include "api/worker/recent_jobs.h"
#include "base/must.h"

#include "base/banned.h"

enum { BYTES = 64 * 1024, ROWS = 1000, ROW_BYTES_MAX = BYTES / RECENT_JOBS_ROW_PART, THREAD_JOBS = 20000 };

static char payload_text[ROW_BYTES_MAX];

/* A row whose numbers and texts tell its id, so that a mixed-up copy is noticed. */
static struct job_row job_of(int64_t id, size_t payload_len, char queue[32])
{
    int n = snprintf(queue, 32, "queue-%lld", (long long)id);
    memset(payload_text, 'a' + (int)(id % 26), payload_len);
    return (struct job_row){.id = id,
                            .low = id * 7,
                            .max_runtime_ms = id + 1,
                            .queue = {queue, (size_t)n},
                            .callback = STR_ABSENT,
                            .idem_key = STR(""),
                            .payload = {payload_text, payload_len}};
}

static void add(struct recent_jobs *r, int64_t id, size_t payload_len)
{
    char queue[32];
    struct job_row job = job_of(id, payload_len, queue);
    recent_jobs_add(r, &job);
}

/* Found and as it was added. */
static bool has(struct recent_jobs *r, struct arena *a, int64_t id, size_t payload_len)
{
    char queue[32];
    struct job_row got, want = job_of(id, payload_len, queue);
    arena_reset(a);
    if (!recent_jobs_find(r, id, a, &got))
        return false;
    MUST(got.id == id && got.low == want.low && got.max_runtime_ms == want.max_runtime_ms);
    MUST(str_equal(got.queue, want.queue) && str_equal(got.payload, want.payload));
    MUST(!got.callback.ptr && !got.traceparent.ptr && got.idem_key.ptr && !got.idem_key.len);
    return true;
}

struct fixture {
    struct recent_jobs *jobs;
    struct arena *arena;
};

static int up(void **state)
{
    struct fixture *f = must_alloc(sizeof *f);
    *f = (struct fixture){recent_jobs_new(BYTES, ROWS), arena_new(4096)};
    *state = f;
    return 0;
}

static int down(void **state)
{
    struct fixture *f = *state;
    recent_jobs_free(f->jobs);
    arena_free(f->arena);
    free(f);
    return 0;
}

#define CACHE_TEST(name, parameter) TEST_WITH(name, struct fixture *parameter, up, down)

CACHE_TEST(a_row_is_found_as_it_was_added, f)
{
    add(f->jobs, 10, 300);
    add(f->jobs, 11, 0);
    assert_true(has(f->jobs, f->arena, 10, 300));
    assert_true(has(f->jobs, f->arena, 11, 0));
}

CACHE_TEST(an_id_that_was_never_added_is_not_found, f)
{
    assert_false(has(f->jobs, f->arena, 1, 0));
    for (int64_t id = 10; id <= 20; id += 2)
        add(f->jobs, id, 5);
    for (int64_t id = 0; id <= 30; id++)
        assert_int_equal(has(f->jobs, f->arena, id, 5), id >= 10 && id <= 20 && id % 2 == 0);
}

/* The copy is the caller's: rows that come later do not show in it. */
CACHE_TEST(what_was_found_outlives_the_row, f)
{
    struct job_row got;
    add(f->jobs, 1, 20);
    assert_true(recent_jobs_find(f->jobs, 1, f->arena, &got));
    for (int64_t id = 2; id < 1000; id++)
        add(f->jobs, id, 500);
    assert_true(str_is(got.queue, "queue-1"));
    assert_true(got.payload.len == 20 && got.payload.ptr[0] == 'b' && got.payload.ptr[19] == 'b');
}

/* Every size there is, round and round: whatever is found is right, and it is always the newest ones. */
CACHE_TEST(the_oldest_go_first_round_after_round, f)
{
    enum { LAPS = 4000 };
    for (int64_t id = 1; id <= LAPS; id++) {
        add(f->jobs, id, (size_t)(id * 37 % 600));
        assert_true(has(f->jobs, f->arena, id, (size_t)(id * 37 % 600)));
        int64_t known = id;
        while (known > 0 && has(f->jobs, f->arena, known, (size_t)(known * 37 % 600)))
            known--;
        assert_true(id < 60 ? known == 0 : id - known >= 60); /* 64 KiB and at most about 820 bytes each */
        assert_false(known > 1 && has(f->jobs, f->arena, known - 1, (size_t)((known - 1) * 37 % 600)));
    }
}

CACHE_TEST(small_rows_are_bounded_by_their_number, f)
{
    struct recent_jobs *few = recent_jobs_new(BYTES, 3);
    for (int64_t id = 1; id <= 10; id++)
        add(few, id, 4);
    for (int64_t id = 1; id <= 10; id++)
        assert_int_equal(has(few, f->arena, id, 4), id >= 8);
    recent_jobs_free(few);
}

CACHE_TEST(a_large_row_is_not_kept_and_pushes_nothing_out, f)
{
    size_t largest = ROW_BYTES_MAX - sizeof(struct job_row) - 7; /* "queue-2" */
    add(f->jobs, 1, 9);
    add(f->jobs, 2, largest);
    add(f->jobs, 3, largest + 1);
    add(f->jobs, 4, 9);
    assert_true(has(f->jobs, f->arena, 1, 9));
    assert_true(has(f->jobs, f->arena, 2, largest));
    assert_false(has(f->jobs, f->arena, 3, largest + 1));
    assert_true(has(f->jobs, f->arena, 4, 9));
}

/* Cannot happen with our ids; if it did, the table would only know less. */
CACHE_TEST(an_id_out_of_order_is_left_out, f)
{
    add(f->jobs, 5, 1);
    add(f->jobs, 3, 1);
    add(f->jobs, 5, 2);
    add(f->jobs, 7, 1);
    assert_false(has(f->jobs, f->arena, 3, 1));
    assert_true(has(f->jobs, f->arena, 5, 1));
    assert_true(has(f->jobs, f->arena, 7, 1));
}

struct race {
    struct recent_jobs *jobs;
    _Atomic int64_t newest;
};

static void *add_many(void *arg)
{
    struct race *race = arg;
    char queue[32];
    for (int64_t id = 1; id <= THREAD_JOBS; id++) {
        int n = snprintf(queue, sizeof queue, "queue-%lld", (long long)id);
        struct job_row job = {.id = id, .low = -id, .queue = {queue, (size_t)n}, .payload = STR("{}")};
        recent_jobs_add(race->jobs, &job);
        atomic_store(&race->newest, id);
    }
    return NULL;
}

static void *find_many(void *arg)
{
    struct race *race = arg;
    struct arena *a = arena_new(4096);
    int64_t newest;
    do {
        newest = atomic_load(&race->newest);
        for (int64_t id = newest > 50 ? newest - 50 : 1; id <= newest; id++) {
            struct job_row got;
            char want[32];
            snprintf(want, sizeof want, "queue-%lld", (long long)id);
            if (recent_jobs_find(race->jobs, id, a, &got)) /* may be pushed out meanwhile, never mixed up */
                MUST(got.low == -id && str_is(got.queue, want) && str_is(got.payload, "{}"));
        }
        arena_reset(a);
    } while (newest < THREAD_JOBS);
    arena_free(a);
    return NULL;
}

CACHE_TEST(rows_are_whole_while_others_are_added, f)
{
    struct race race = {.jobs = f->jobs};
    pthread_t writer, readers[2];
    assert_int_equal(pthread_create(&writer, NULL, add_many, &race), 0);
    for (size_t i = 0; i < LENGTH_OF(readers); i++)
        assert_int_equal(pthread_create(&readers[i], NULL, find_many, &race), 0);
    pthread_join(writer, NULL);
    for (size_t i = 0; i < LENGTH_OF(readers); i++)
        pthread_join(readers[i], NULL);
}
