/* What a batch loads from a shared store: claims on several queues, streams with the jobs they are about,
 * keys and texts of any bytes, webhooks that others have changed. */
#include "store/bench_shared.h"
#include "pace.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/banned.h"

static const struct str queues[] = {{"a", 1}, {"b", 1}, {"c", 1}};

static void add_task(struct bench *b, struct task_row t)
{
    assert_int_equal(bench_change(b, &table_task_row, ROW_INSERT, &t), ERR_OK);
}

static struct task_row task_in(size_t queue, int64_t id, int64_t priority)
{
    struct task_row t = shared_ready_task(id, priority);
    t.queue = queues[queue];
    return t;
}

/* Deliveries about a job, with something to send. */
static struct task_row stream_about(int64_t job, int64_t id, int64_t target)
{
    struct task_row t = shared_ready_task(id, 5);
    t.subject = job;
    t.target = target;
    t.done = 0;
    t.queue = STR("streams");
    return t;
}

static void expect_loaded(struct store *s, const int64_t *ids, size_t count)
{
    assert_int_equal(live_size(s->live), count);
    for (size_t i = 0; i < count; i++)
        assert_non_null(live_find(s->live, ids[i]));
}

#define EXPECT_LOADED(store, ...)                                                                            \
    expect_loaded(store, (const int64_t[]){__VA_ARGS__}, LENGTH_OF(((const int64_t[]){__VA_ARGS__})))

static void load_claims(struct bench *b, const struct load_claim *claims, size_t count)
{
    struct load_set l = {.claims = claims, .claim_count = count, .now_ms = 1000};
    assert_int_equal(bench_load_shared(b->store, &l, b->arena), ERR_OK);
}

/* --- claims ---------------------------------------------------------------------------------------- */

BENCH_TEST(test_a_claim_on_several_queues_takes_the_best_of_all, b)
{
    for (int64_t id = 1; id <= 12; id++)
        add_task(b, task_in((size_t)id % 3, id, id > 9 ? 9 : 5));
    load_claims(b, &(struct load_claim){queues, 2, 0, 4}, 1); /* b has 1 4 7 10, a has 3 6 9 12 */
    EXPECT_LOADED(b->store, 10, 12, 1, 3);
    shared_abandon(b->store);
    load_claims(b, &(struct load_claim){queues, 3, 2, 3}, 1); /* client 2: the odd ones */
    EXPECT_LOADED(b->store, 11, 1, 3);
    shared_abandon(b->store);
    const struct str none[] = {STR("nobody"), STR("nothing")};
    load_claims(b, &(struct load_claim){none, 2, 0, 3}, 1);
    assert_int_equal(live_size(b->store->live), 0);
    shared_abandon(b->store);
}

BENCH_TEST(test_claims_of_one_batch_that_overlap_get_a_task_each, b)
{
    for (int64_t id = 1; id <= 12; id++)
        add_task(b, task_in((size_t)id % 2, id, 5));
    const struct load_claim claims[] = {
        {queues, 1, 0, 2}, {queues, 2, 0, 2}, {queues, 1, 0, 1}, {queues, 1, 1, 2}};
    load_claims(b, claims, LENGTH_OF(claims));
    assert_true(live_size(b->store->live) >= 2 + 2 + 1 + 2);
    assert_non_null(live_find(b->store->live, 1)); /* of b: only the second claim names it */
    shared_abandon(b->store);
}

static void add_many(struct bench *b, int64_t count)
{
    struct task_row *rows = ARENA_ARRAY(b->arena, struct task_row, (size_t)count);
    struct job_row *jobs = ARENA_ARRAY(b->arena, struct job_row, (size_t)count);
    struct row_change *changes = ARENA_ARRAY(b->arena, struct row_change, (size_t)count * 2);
    for (int64_t i = 0; i < count; i++) {
        rows[i] = task_in((size_t)i % 3, i + 1, i % 10);
        jobs[i] = (struct job_row){.id = i + 1, .client = 1, .queue = queues[0]};
        jobs[i].idem_key = arena_printf(b->arena, "key %lld", (long long)i);
        changes[2 * i] = (struct row_change){&table_task_row, ROW_INSERT, &rows[i]};
        changes[2 * i + 1] = (struct row_change){&table_job_row, ROW_INSERT, &jobs[i]};
    }
    struct change_set c = {
        .rows = changes, .row_count = (size_t)count * 2, .first_chunk = b->store->next_chunk};
    assert_int_equal(bench_commit(b, &c), ERR_OK);
}

static void load_everything(struct store *s, struct arena *a)
{
    enum { WANTED = 10, NOBODY = 9 };
    const struct load_claim claims[] = {{queues, 3, 0, WANTED},      {queues, 1, 0, WANTED},
                                        {queues, 2, 1, WANTED},      {queues, 1, 2, WANTED},
                                        {queues, 1, NOBODY, WANTED}, {queues, 3, NOBODY, WANTED}};
    const struct load_key keys[] = {{1, STR("key 5")}, {1, STR("key of nobody")}, {NOBODY, STR("key 5")}};
    const int64_t ids[] = {5, 6, 7};
    struct load_set l = {.claims = claims,
                         .claim_count = LENGTH_OF(claims),
                         .keys = keys,
                         .key_count = LENGTH_OF(keys),
                         .tasks = ids,
                         .task_count = LENGTH_OF(ids),
                         .due_max = WANTED,
                         .now_ms = 1000};
    assert_int_equal(bench_load_shared(s, &l, a), ERR_OK);
    shared_abandon(s);
}

/* However long the queue is: rows read are as many as are wanted, and some. Also by statements that were
 * planned when the queue was empty. */
BENCH_TEST(test_what_a_batch_reads_does_not_grow_with_the_queue, b)
{
    enum { TASKS = 4000, READ_MAX = 1000 };
#define OF_TABLES                                                                                            \
    " FROM pg_stat_user_tables WHERE relname IN ('tasks','jobs') AND schemaname=current_schema()"
    static const char reads[] = "SELECT sum(coalesce(seq_tup_read,0)+coalesce(idx_tup_fetch,0))" OF_TABLES;
    static const char writes[] = "SELECT sum(n_tup_ins+n_tup_upd)" OF_TABLES;
    struct store *lane = shared_open_other(b);
    PGconn *look = bench_session(&b->schema);
    struct task_row last = task_in(0, TASKS, 1);
    struct err err;
    add_task(b, last);
    assert_int_equal(shared_change(lane, &table_task_row, ROW_UPDATE, &last, &err), ERR_OK);
    load_everything(lane, b->arena);
    assert_int_equal(bench_change(b, &table_task_row, ROW_DELETE, &last), ERR_OK);
    add_many(b, TASKS);
    b->store = store_close(b->store); /* a session that ends tells what it has done */
    shared_wait_until(look, writes, 2 * TASKS + 1);
    int64_t before = bench_number(look, reads);
    load_everything(lane, b->arena);
    assert_int_equal(shared_change(lane, &table_task_row, ROW_UPDATE, &last, &err), ERR_OK);
    store_close(lane);
    shared_wait_until(look, writes, 2 * TASKS + 3);
    assert_in_range(bench_number(look, reads) - before, 1, READ_MAX);
    /* The control: a read of the whole queue shows. */
    bench_sql(look, "SELECT pg_stat_force_next_flush()");
    assert_int_equal(bench_number(look, "SELECT count(low) FROM tasks"), TASKS);
    shared_wait_until(look, reads, before + TASKS);
    PQfinish(look);
    b->store = shared_open_other(b);
}

/* --- streams --------------------------------------------------------------------------------------- */

#define STREAM(n) ((int64_t)TASK_ID_OF_OTHERS | (n))

static void expect_streams(struct store *s)
{
    EXPECT_LOADED(s, 1, STREAM(1), STREAM(2));
    const struct task *job = live_find(s->live, 1);
    assert_true(job->has_callback);
    assert_true(job->about_loaded);
    shared_abandon(s);
}

BENCH_TEST(test_streams_come_with_the_job_they_are_about_however_it_is_asked_for, b)
{
    struct job_row job = {.id = 1, .client = 2, .queue = queues[0], .idem_key = STR("key")};
    const struct load_claim claim = {queues, 1, 0, 1};
    const struct load_key key = {2, STR("key")};
    const int64_t id = 1;
    struct load_set sets[] = {{.tasks = &id, .task_count = 1, .now_ms = 1000},
                              {.claims = &claim, .claim_count = 1, .now_ms = 1000},
                              {.keys = &key, .key_count = 1, .now_ms = 1000},
                              {.due_max = 5, .now_ms = 9000}};
    struct task_row waits = task_in(0, 1, 9), ready = waits;
    waits.state = waits.job_state = JOB_CREATED;
    waits.due_ms = 5000;
    assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &job), ERR_OK);
    add_task(b, ready);
    add_task(b, stream_about(1, STREAM(1), -5));
    add_task(b, stream_about(1, STREAM(2), 7));
    add_task(b, stream_about(2, STREAM(3), -6));
    for (size_t i = 0; i < LENGTH_OF(sets); i++) {
        if (sets[i].due_max)
            assert_int_equal(bench_change(b, &table_task_row, ROW_UPDATE, &waits), ERR_OK);
        assert_int_equal(bench_load_shared(b->store, &sets[i], b->arena), ERR_OK);
        expect_streams(b->store);
    }
    const int64_t asked[] = {STREAM(3), 1}; /* one that is asked for itself, alone and beside a job */
    struct load_set l = {.tasks = asked, .task_count = 1, .now_ms = 1000};
    assert_int_equal(bench_load_shared(b->store, &l, b->arena), ERR_OK);
    EXPECT_LOADED(b->store, STREAM(3));
    shared_abandon(b->store);
    l.task_count = 2;
    assert_int_equal(bench_load_shared(b->store, &l, b->arena), ERR_OK);
    EXPECT_LOADED(b->store, 1, STREAM(1), STREAM(2), STREAM(3));
    shared_abandon(b->store);
}

struct late {
    struct bench *bench;
    struct store *store;
    PGconn *plain;
    enum err_code code;
    int64_t seen;
};

static void *load_job(void *arg)
{
    struct late *x = arg;
    struct arena *a = arena_new(1 << 12);
    const int64_t id = 1;
    struct load_set l = {.tasks = &id, .task_count = 1, .now_ms = 1000};
    x->code = bench_load_shared(x->store, &l, a);
    arena_free(a);
    return NULL;
}

static void *read_in_one(void *arg)
{
    struct late *x = arg;
    PGresult *r = PQexec(x->plain, "SELECT id FROM tasks WHERE id=1 OR subject=1 ORDER BY id FOR UPDATE");
    x->seen = PQresultStatus(r) == PGRES_TUPLES_OK ? PQntuples(r) : -1;
    PQclear(r);
    return NULL;
}

/* Two wait for a job while a batch holds it and gives it a stream. The store's load sees the stream; the
 * control, one statement for both, does not: it reads by what it knew before it waited. */
BENCH_TEST(test_a_stream_made_while_a_load_waits_for_its_job_is_seen, b)
{
    struct late x = {.bench = b, .store = shared_open_other(b), .plain = bench_session(&b->schema)};
    PGconn *look = bench_session(&b->schema);
    const int64_t id = 1;
    struct load_set l = {.tasks = &id, .task_count = 1, .now_ms = 1000};
    struct task_row job = task_in(0, 1, 5), stream = stream_about(1, STREAM(1), 7);
    pthread_t threads[2];
    add_task(b, job);
    assert_int_equal(bench_load_shared(b->store, &l, b->arena), ERR_OK);
    assert_int_equal(pthread_create(&threads[0], NULL, read_in_one, &x), 0);
    shared_wait_until(look, "SELECT count(*) FROM pg_locks WHERE NOT granted", 1);
    assert_int_equal(pthread_create(&threads[1], NULL, load_job, &x), 0);
    shared_wait_until(look, "SELECT count(*) FROM pg_locks WHERE NOT granted", 2);
    job.token++;
    const struct row_change rows[] = {{&table_task_row, ROW_UPDATE, &job},
                                      {&table_task_row, ROW_INSERT, &stream}};
    struct change_set c = {.rows = rows, .row_count = 2, .first_chunk = b->store->next_chunk};
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_int_equal(x.seen, 1); /* the control */
    assert_int_equal(x.code, ERR_OK);
    EXPECT_LOADED(x.store, 1, STREAM(1));
    shared_abandon(x.store);
    store_close(x.store);
    PQfinish(x.plain);
    PQfinish(look);
}

/* --- timers ---------------------------------------------------------------------------------------- */

static int64_t next_due(struct bench *b, int64_t now_ms, uint32_t max)
{
    struct load_set l = {.due_max = max, .now_ms = now_ms};
    assert_int_equal(bench_load_shared(b->store, &l, b->arena), ERR_OK);
    shared_abandon(b->store);
    return l.next_due_ms;
}

BENCH_TEST(test_a_load_of_timers_tells_when_the_next_one_is_due, b)
{
    assert_int_equal(next_due(b, 1000, 10), INT64_MAX);
    for (int64_t id = 1; id <= 3; id++) {
        struct task_row t = task_in(0, id, 5);
        t.state = t.job_state = JOB_CREATED;
        t.due_ms = id * 1000;
        add_task(b, t);
    }
    assert_int_equal(next_due(b, 500, 10), 1000);
    assert_int_equal(next_due(b, 1000, 10), 2000);
    assert_int_equal(next_due(b, 9000, 10), INT64_MAX);
    assert_int_equal(next_due(b, 9000, 2), 9000); /* there is more to do at once */
}

/* Who beats keeps its lease, but not beyond the time a job may run. */
BENCH_TEST(test_tasks_that_run_too_long_are_loaded_with_the_timers, b)
{
    for (int64_t id = 1; id <= 2; id++) {
        struct task_row t = task_in(0, id, 5);
        t.state = t.job_state = JOB_RUNNING;
        t.token = 1;
        t.worker = STR("w");
        t.lease_ms = 90000;
        t.started_ms = 1000;
        t.max_runtime_ms = id * 4000;
        add_task(b, t);
    }
    struct load_set l = {.due_max = 10, .now_ms = 4999};
    assert_int_equal(bench_load_shared(b->store, &l, b->arena), ERR_OK);
    assert_int_equal(live_size(b->store->live), 0);
    l.now_ms = 5000;
    assert_int_equal(bench_load_shared(b->store, &l, b->arena), ERR_OK);
    EXPECT_LOADED(b->store, 1);
    shared_abandon(b->store);
}

/* A task in backoff is ready by its state, and nobody gets it before its time. */
BENCH_TEST(test_a_ready_task_that_is_not_due_is_not_claimed, b)
{
    struct task_row t = task_in(0, 1, 5);
    const struct load_claim claim = {queues, 1, 0, 5};
    struct load_set now = {.now_ms = 1000};
    t.due_ms = 5000;
    assert_int_equal(bench_load_shared(b->store, &now, b->arena), ERR_OK);
    add_task(b, t);
    load_claims(b, &claim, 1);
    assert_int_equal(live_size(b->store->live), 0);
    shared_abandon(b->store);
    assert_int_equal(next_due(b, 1000, 5), 5000);
    now.now_ms = 5000;
    assert_int_equal(bench_load_shared(b->store, &now, b->arena), ERR_OK);
    assert_int_equal(bench_change(b, &table_task_row, ROW_UPDATE, &t), ERR_OK);
    load_claims(b, &claim, 1);
    EXPECT_LOADED(b->store, 1);
    shared_abandon(b->store);
}

/* --- texts ----------------------------------------------------------------------------------------- */

BENCH_TEST(test_texts_of_any_bytes_are_stored_and_found, b)
{
    const struct str texts[] = {{"\0", 1},
                                {"a\0b", 3},
                                {"\xff\xfe", 2},
                                {"\xed\xa0\x80", 3},
                                {"\x01", 1},
                                {"\x01zz", 3},
                                {"\x01"
                                 "610062",
                                 7},
                                {"", 0},
                                {"\xc3\xa4", 2},
                                {"plain", 5}};
    struct err err;
    for (size_t i = 0; i < LENGTH_OF(texts); i++) {
        struct job_row job = {.id = (int64_t)i + 1, .client = 1, .queue = STR("q"), .idem_key = texts[i]},
                       twin = job;
        twin.id += 100;
        assert_int_equal(bench_change(b, &table_job_row, ROW_INSERT, &job), ERR_OK);
        bench_expect_equal(&table_job_row, bench_fetch(b, &table_job_row, &job), &job);
        struct load_key key = {1, texts[i]};
        struct load_set l = {.keys = &key, .key_count = 1, .now_ms = 1000};
        size_t cursor = 0;
        assert_int_equal(bench_load_shared(b->store, &l, b->arena), ERR_OK);
        assert_int_equal(idem_find(&b->store->idem, idem_hash(1, texts[i]), &cursor), job.id);
        shared_abandon(b->store);
        assert_int_not_equal(shared_change(b->store, &table_job_row, ROW_INSERT, &twin, &err), ERR_OK);
        assert_true(err.conflict);
    }
    struct task_row odd = shared_ready_task(50, 5); /* names are texts too */
    odd.queue = (struct str){"q\0q", 3};
    add_task(b, odd);
    load_claims(b, &(struct load_claim){&odd.queue, 1, 0, 5}, 1);
    EXPECT_LOADED(b->store, 50);
    shared_abandon(b->store);
}

/* --- webhooks -------------------------------------------------------------------------------------- */

BENCH_TEST(test_webhooks_that_another_handle_changed_are_known_before_anything_is_decided, b)
{
    struct store *other = shared_open_other(b);
    struct webhook_row hook = {
        .id = 1, .client = 4, .url = STR("u"), .events = STR("*"), .secret = STR("s"), .enabled = 1};
    struct load_set nothing = {.now_ms = 1000};
    struct err err;
    assert_null(hooks_of(&other->hooks, 4));
    assert_int_equal(shared_change(b->store, &table_webhook_row, ROW_INSERT, &hook, &err), ERR_OK);
    assert_int_equal(bench_load_shared(other, &nothing, b->arena), ERR_OK);
    assert_int_equal(hooks_of(&other->hooks, 4)->count, 1);
    shared_abandon(other);
    assert_int_equal(shared_change(b->store, &table_webhook_row, ROW_DELETE, &hook, &err), ERR_OK);
    assert_int_not_equal(shared_insert_job(other, 1, &err), ERR_OK); /* decided without a look */
    assert_true(err.conflict);
    assert_int_equal(shared_insert_job(other, 1, &err), ERR_OK); /* and again, by what is there */
    assert_null(hooks_of(&other->hooks, 4));
    store_close(other);
}

/* --- readers --------------------------------------------------------------------------------------- */

static bool see_entry(const struct list_entry *e, void *arg)
{
    (void)e;
    ++*(size_t *)arg;
    return true;
}

static void *hold_for_a_while(void *arg)
{
    bench_sql(arg, "SELECT pg_sleep(2)");
    bench_sql(arg, "COMMIT");
    return NULL;
}

/* A server's lane has other things to do: its own scans keep to the timeout. */
static void expect_served_scan_refused(const struct postgres_options *o)
{
    struct store *s = NULL;
    struct reader *r = NULL;
    struct err err;
    size_t count = 0;
    assert_int_equal(store_open_postgres(o, &s, &err), ERR_OK);
    s->served = true;
    assert_int_equal(s->ops->reader_open(s, &r, &err), ERR_OK);
    assert_int_equal(r->ops->reader_begin(r, &err), ERR_OK);
    struct pace start = pace_start();
    assert_int_not_equal(r->ops->reader_scan_list(r, see_entry, &count, &err), ERR_OK);
    assert_true(pace_quiet_ms(&start) < 2 * o->timeout_ms);
    r->ops->reader_end(r);
    r->ops->reader_close(r);
    store_close(s);
}

/* Who asks for a page is told in time that it cannot be had; who reads everything waits for it. */
BENCH_TEST(test_a_scan_takes_longer_than_the_timeout_and_a_page_does_not, b)
{
    struct postgres_options o = {.url = b->schema.url, .timeout_ms = 1000};
    PGconn *holder = bench_session(&b->schema);
    struct list_query q = {.owner_key = 1, .bucket = LIST_DELIVERIES, .below_id = INT64_MAX, .limit = 1};
    struct reader *r = NULL;
    struct err err;
    pthread_t thread;
    size_t count = 0;
    int64_t id;
    assert_int_equal(shared_insert_job(b->store, 1, &err), ERR_OK);
    assert_int_equal(store_open_postgres_reader(&o, &r, &err), ERR_OK);
    bench_sql(holder, "BEGIN");
    bench_sql(holder, "LOCK TABLE list IN ACCESS EXCLUSIVE MODE");
    assert_int_equal(r->ops->reader_begin(r, &err), ERR_OK);
    assert_int_not_equal(r->ops->reader_list(r, &q, &id, &count, &err), ERR_OK);
    r->ops->reader_end(r);
    expect_served_scan_refused(&o);
    assert_int_equal(pthread_create(&thread, NULL, hold_for_a_while, holder), 0);
    assert_int_equal(r->ops->reader_begin(r, &err), ERR_OK);
    assert_int_equal(r->ops->reader_scan_list(r, see_entry, &count, &err), ERR_OK);
    r->ops->reader_end(r);
    pthread_join(thread, NULL);
    assert_int_equal(count, 1);
    r->ops->reader_close(r);
    PQfinish(holder);
}

int main(void)
{
    return store_run("postgres", bench_group_postgres);
}
