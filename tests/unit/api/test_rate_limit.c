/* Requests per minute and per day: what is counted, told and kept. On SQLite, as in api_reads. */
#include "unit/kernel/rig.h"

#include <pthread.h>

#include "api/rate_limit.h"

#include "base/banned.h"

enum { THREADS = 4, TAKES = 500 };
static const int64_t MINUTE_MS = 60000, DAY_MS = 86400000;
/* Midnight of some day, and half a minute. */
#define START_MS (INT64_C(20000) * 86400000 + 30000)

struct bench {
    struct rig *rig;
    struct reads *reads;
    struct rate_limit *limit;
    int64_t client;
    struct uuid id;
    struct rate_standing standing;
    struct err err;
};

static struct bench bench_up(struct rig *r, int64_t per_minute, int64_t per_day)
{
    struct bench b = {.rig = r, .reads = reads_new(r->store)};
    r->settings.limits_requests_per_minute = per_minute;
    r->settings.limits_requests_per_day = per_day;
    b.client = rig_new_client(r, &b.id);
    b.limit = rate_limit_new(&r->settings);
    return b;
}

static void bench_down(struct bench *b)
{
    rate_limit_free(b->limit);
    reads_free(b->reads);
}

static enum err_code take(struct bench *b, int64_t now_ms)
{
    b->standing = (struct rate_standing){0};
    b->err = (struct err){.code = ERR_OK};
    return rate_limit_take(b->limit, b->reads, b->rig->arena, b->client, &b->id, now_ms, &b->standing,
                           &b->err);
}

static void expect_headers(const struct bench *b, const char *wanted)
{
    struct strbuf text = {0};
    rate_limit_headers(&b->standing, &text);
    assert_string_equal(text.ptr ? text.ptr : "", wanted);
    strbuf_free(&text);
}

/* --- memory ------------------------------------------------------------------------------------------ */

/* Ten thousand clients call once each, ten a minute: those of the last minutes are in memory, no more. */
RIG_TEST(clients_that_are_idle_leave_memory, r)
{
    struct bench b = bench_up(r, 10, 0);
    for (int64_t i = 0; i < 10000; i++) {
        b.client = 1000 + i;
        assert_int_equal(take(&b, START_MS + i / 10 * MINUTE_MS), ERR_OK);
    }
    assert_true(rate_limit_clients(b.limit) <= 16 * 256);
    bench_down(&b);
}

/* --- counting --------------------------------------------------------------------------------------- */

/* [JOB-191] [JOB-286] A refused request does not count, and the next minute begins with a full share. */
RIG_TEST(a_minute_has_its_share_and_the_next_one_too, r)
{
    struct bench b = bench_up(r, 3, 0);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(take(&b, START_MS), ERR_OK);
        assert_int_equal(b.standing.spans[RATE_MINUTE].left, 3 - i);
    }
    for (int i = 0; i < 5; i++) {
        assert_int_equal(take(&b, START_MS + 29999), ERR_REQUEST_RATE_LIMITED);
        assert_int_equal(b.err.retry_after_s, 1);
    }
    assert_int_equal(take(&b, START_MS + 30000), ERR_OK);
    assert_int_equal(b.standing.spans[RATE_MINUTE].left, 2);
    assert_int_equal(b.standing.spans[RATE_MINUTE].reset_s, 60);
    bench_down(&b);
}

/* [JOB-192] Of two limits that are used up the longer one says when to come back: the wait is enough. */
RIG_TEST(a_day_has_its_share_whatever_the_minutes_do, r)
{
    struct bench b = bench_up(r, 2, 5);
    int64_t at = START_MS;
    for (int i = 0; i < 5; i++, at += MINUTE_MS)
        assert_int_equal(take(&b, at), ERR_OK);
    assert_int_equal(take(&b, at), ERR_REQUEST_RATE_LIMITED);
    assert_non_null(strstr(b.err.detail, "5 requests per day"));
    assert_int_equal(b.err.retry_after_s, 86400 - 30 - 5 * 60);
    assert_int_equal(take(&b, at + (int64_t)b.err.retry_after_s * 1000), ERR_OK);
    assert_int_equal(b.standing.spans[RATE_DAY].left, 4);
    bench_down(&b);
}

RIG_TEST(without_limits_nothing_is_counted_or_told, r)
{
    struct bench b = bench_up(r, 0, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(take(&b, START_MS), ERR_OK);
    expect_headers(&b, "");
    bench_down(&b);
}

RIG_TEST(an_override_of_zero_leaves_the_day, r)
{
    struct bench b = bench_up(r, 1, 3);
    char id[UUID_TEXT_LEN + 1], override[UUID_TEXT_LEN + 8];
    uuid_text(&b.id, id);
    snprintf(override, sizeof override, "%s=0", id);
    struct err err;
    assert_int_equal(settings_set(&r->settings, "limits.overrides", override, ORIGIN_FLAG, &err), ERR_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(take(&b, START_MS), ERR_OK);
    expect_headers(&b, "RateLimit-Policy: \"day\";q=3;w=86400\r\nRateLimit: \"day\";r=0;t=86370\r\n");
    assert_int_equal(take(&b, START_MS), ERR_REQUEST_RATE_LIMITED);
    bench_down(&b);
}

RIG_TEST(the_headers_are_structured_fields, r)
{
    struct bench b = bench_up(r, 600, 10000);
    assert_int_equal(take(&b, START_MS + 4001), ERR_OK);
    expect_headers(&b, "RateLimit-Policy: \"minute\";q=600;w=60, \"day\";q=10000;w=86400\r\n"
                       "RateLimit: \"minute\";r=599;t=26, \"day\";r=9999;t=86366\r\n");
    bench_down(&b);
    b = bench_up(r, 2, 0);
    assert_int_equal(take(&b, START_MS), ERR_OK);
    expect_headers(&b, "RateLimit-Policy: \"minute\";q=2;w=60\r\nRateLimit: \"minute\";r=1;t=30\r\n");
    bench_down(&b);
}

/* --- days outlive the program ------------------------------------------------------------------------ */

static enum err_code decide_save(struct unit *u, struct command *c, struct err *err)
{
    (void)err;
    while (rate_limit_save(c->owner, u))
        continue;
    return ERR_OK;
}
static const struct command_type save_type = {"save", NULL, decide_save};

static enum err_code save(struct bench *b)
{
    struct command *c = ARENA_NEW(b->rig->arena, struct command);
    rig_post(b->rig, c, &save_type);
    c->owner = b->limit;
    rig_step(b->rig);
    rate_limit_saved(b->limit, c->result == ERR_OK);
    return c->result;
}

static void begin_anew(struct bench *b)
{
    bench_down(b);
    b->reads = reads_new(b->rig->store);
    b->limit = rate_limit_new(&b->rig->settings);
}

RIG_TEST(a_restart_forgets_the_minute_and_not_the_day, r)
{
    struct bench b = bench_up(r, 3, 4);
    for (int i = 0; i < 3; i++)
        assert_int_equal(take(&b, START_MS), ERR_OK);
    assert_int_equal(save(&b), ERR_OK);
    begin_anew(&b);
    assert_int_equal(take(&b, START_MS), ERR_OK);
    assert_int_equal(b.standing.spans[RATE_MINUTE].left, 2);
    assert_int_equal(b.standing.spans[RATE_DAY].left, 0);
    assert_int_equal(take(&b, START_MS), ERR_REQUEST_RATE_LIMITED);
    assert_int_equal(save(&b), ERR_OK); /* an update this time */
    begin_anew(&b);
    assert_int_equal(take(&b, START_MS), ERR_REQUEST_RATE_LIMITED);
    assert_int_equal(take(&b, START_MS + DAY_MS), ERR_OK); /* another day */
    b.rig->settings.limits_requests_per_day = 2;
    begin_anew(&b); /* a smaller share than was used: nothing is left, and nothing below it */
    assert_int_equal(take(&b, START_MS), ERR_REQUEST_RATE_LIMITED);
    assert_int_equal(b.standing.spans[RATE_DAY].left, 0);
    bench_down(&b);
}

/* The control of the test above: what was not saved is not there. */
RIG_TEST(without_saving_the_day_begins_anew, r)
{
    struct bench b = bench_up(r, 0, 4);
    assert_int_equal(take(&b, START_MS), ERR_OK);
    b.rig->failures = 1;
    assert_int_equal(save(&b), ERR_STORAGE_DB_ERROR);
    begin_anew(&b);
    assert_int_equal(take(&b, START_MS), ERR_OK);
    assert_int_equal(b.standing.spans[RATE_DAY].left, 3);
    bench_down(&b);
}

/* Said again by the next save, and once. */
RIG_TEST(what_was_not_stored_is_saved_later, r)
{
    struct bench b = bench_up(r, 0, 10);
    assert_int_equal(take(&b, START_MS), ERR_OK);
    b.rig->failures = 1;
    assert_int_equal(save(&b), ERR_STORAGE_DB_ERROR);
    assert_int_equal(take(&b, START_MS), ERR_OK);
    assert_int_equal(save(&b), ERR_OK);
    assert_int_equal(save(&b), ERR_OK);
    begin_anew(&b);
    assert_int_equal(take(&b, START_MS), ERR_OK);
    assert_int_equal(b.standing.spans[RATE_DAY].left, 7);
    bench_down(&b);
}

/* Two nodes of one store: each adds what it has counted, and learns what the other has. */
RIG_TEST(a_day_is_one_for_all_nodes, r)
{
    struct bench a = bench_up(r, 0, 10), b = a;
    b.reads = reads_new(a.rig->store);
    b.limit = rate_limit_new(&a.rig->settings);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(take(&a, START_MS), ERR_OK);
        assert_int_equal(take(&b, START_MS), ERR_OK);
    }
    assert_int_equal(b.standing.spans[RATE_DAY].left, 7); /* not yet */
    assert_int_equal(save(&a), ERR_OK);
    assert_int_equal(save(&b), ERR_OK);
    assert_int_equal(take(&b, START_MS), ERR_OK);
    assert_int_equal(b.standing.spans[RATE_DAY].left, 3);
    assert_int_equal(save(&b), ERR_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(take(&b, START_MS), ERR_OK);
    assert_int_equal(take(&b, START_MS), ERR_REQUEST_RATE_LIMITED);
    assert_int_equal(save(&b), ERR_OK);
    assert_int_equal(take(&a, START_MS), ERR_OK); /* what the other did within the last second */
    assert_int_equal(save(&a), ERR_OK);
    assert_int_equal(take(&a, START_MS), ERR_REQUEST_RATE_LIMITED);
    bench_down(&b);
    bench_down(&a);
}

RIG_TEST(only_a_limit_per_day_is_written, r)
{
    struct bench b = bench_up(r, 5, 0);
    size_t commits = b.rig->commits;
    assert_int_equal(take(&b, START_MS), ERR_OK);
    assert_int_equal(save(&b), ERR_OK);
    assert_int_equal(b.rig->commits, commits);
    bench_down(&b);
}

/* --- threads ----------------------------------------------------------------------------------------- */

struct taker {
    struct bench bench;
    pthread_t thread;
    int taken;
};

static void *take_many(void *arg)
{
    struct taker *t = arg;
    for (int i = 0; i < TAKES; i++)
        t->taken += take(&t->bench, START_MS) == ERR_OK;
    return NULL;
}

/* The reads are of different threads, the arenas are their own. */
RIG_TEST(threads_share_one_count, r)
{
    struct bench b = bench_up(r, THREADS * TAKES / 2, THREADS * TAKES);
    struct taker takers[THREADS];
    struct rig own[THREADS];
    int taken = 0;
    for (int i = 0; i < THREADS; i++) {
        takers[i] = (struct taker){.bench = b};
        own[i] = *b.rig;
        own[i].arena = arena_new(4096);
        takers[i].bench.rig = &own[i];
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_many, &takers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(takers[i].thread, NULL);
        taken += takers[i].taken;
        arena_free(own[i].arena);
    }
    assert_int_equal(taken, THREADS * TAKES / 2);
    bench_down(&b);
}

int main(void)
{
    return test_run("sqlite", rig_group_disk, NULL);
}
