/* Listings against a naive model: thousands of random entries, removed ones, merges, failing commits; and
 * live tasks of a client. On every store. */
#include "store/bench_store.h"

#include <stdlib.h>

#include "base/banned.h"

enum { CLIENTS = 4, BUCKETS = 4, IDS = 900, COMMITS = 900, MODEL_MAX = CLIENTS * BUCKETS * IDS };

struct naive {
    bool in[CLIENTS][BUCKETS][IDS];
    uint8_t first_bucket;
};

/* A shared store writes no entries for jobs: it answers from their rows (test_postgres.c). */
static uint8_t first_bucket(const struct bench *b)
{
    return b->shared ? LIST_DELIVERIES : LIST_ALL;
}

/* Each commit of a shared store is a round trip and a sync. */
static int fewer(const struct bench *b, int count)
{
    return b->shared ? count / 5 : count;
}

static void random_entries(struct bench *b, struct naive *next, struct list_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t client = bench_draw(b, CLIENTS), bucket = bench_draw(b, BUCKETS), id = bench_draw(b, IDS);
        bool removed = bench_draw(b, 3) == 0;
        entries[i] = (struct list_entry){.owner_key = (int64_t)client + 1,
                                         .bucket = (uint8_t)(next->first_bucket + bucket),
                                         .id = (int64_t)id + 1,
                                         .removed = removed};
        next->in[client][bucket][id] = !removed;
    }
}

static void expect_list(struct bench *b, const struct naive *m, const struct list_query *q)
{
    int64_t got[IDS], want[IDS];
    size_t got_count, want_count = 0;
    struct err err;
    for (int64_t id = IDS; id-- > 0 && want_count < q->limit;)
        if (m->in[q->owner_key - 1][q->bucket - m->first_bucket][id] && id + 1 < q->below_id &&
            id + 1 >= q->from_id)
            want[want_count++] = id + 1;
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_list(b->reader, q, got, &got_count, &err), ERR_OK);
    bench_end(b);
    assert_int_equal(got_count, want_count);
    assert_memory_equal(got, want, want_count * sizeof *want);
}

static void random_queries(struct bench *b, const struct naive *m)
{
    for (int i = 0; i < 3; i++) {
        struct list_query q = {.owner_key = 1 + (int64_t)bench_draw(b, CLIENTS),
                               .bucket = (uint8_t)(m->first_bucket + bench_draw(b, BUCKETS)),
                               .below_id = bench_draw(b, 2) ? INT64_MAX : (int64_t)bench_draw(b, IDS + 2),
                               .from_id = bench_draw(b, 2) ? 0 : (int64_t)bench_draw(b, IDS + 2),
                               .limit = 1 + bench_draw(b, bench_draw(b, 2) ? 30 : IDS)};
        expect_list(b, m, &q);
    }
}

struct seen_entries {
    const struct naive *model;
    struct list_entry last;
    size_t count;
};

static bool see_entry(const struct list_entry *e, void *arg)
{
    struct seen_entries *s = arg;
    const struct list_entry *x = &s->last;
    assert_true(s->model->in[e->owner_key - 1][e->bucket - s->model->first_bucket][e->id - 1]);
    if (s->count)
        assert_true(x->owner_key < e->owner_key ||
                    (x->owner_key == e->owner_key &&
                     (x->bucket < e->bucket || (x->bucket == e->bucket && x->id < e->id))));
    s->last = *e;
    s->count++;
    return true;
}

static void expect_all(struct bench *b, const struct naive *m)
{
    struct seen_entries s = {.model = m};
    struct err err;
    size_t want = 0;
    for (size_t i = 0; i < MODEL_MAX; i++)
        want += (&m->in[0][0][0])[i];
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_scan_list(b->reader, see_entry, &s, &err), ERR_OK);
    bench_end(b);
    assert_int_equal(s.count, want);
}

BENCH_TEST(test_listings_agree_with_a_naive_model, b)
{
    struct naive *now = must_alloc(sizeof *now), *next = must_alloc(sizeof *next);
    struct job_row absent = {.id = 5};
    struct row_change bad = {&table_job_row, ROW_DELETE, &absent};
    static const struct str chunks[3] = {STR("a"), STR("bc"), STR("def")};
    now->first_bucket = first_bucket(b);
    for (int i = 0; i < fewer(b, COMMITS); i++) {
        struct list_entry entries[60];
        *next = *now;
        size_t count = 1 + bench_draw(b, LENGTH_OF(entries)), fails = bench_draw(b, 10) == 0;
        random_entries(b, next, entries, count);
        struct change_set c = {.list = entries,
                               .list_count = count,
                               .rows = &bad,
                               .row_count = fails,
                               .chunks = chunks,
                               .chunk_count = bench_draw(b, 12) ? 1 + bench_draw(b, 3) : 0,
                               .first_chunk = b->store->next_chunk};
        if (bench_draw(b, 100) == 0)
            c.drop_chunks_below = c.first_chunk;
        assert_int_equal(bench_commit(b, &c) == ERR_OK, !fails);
        if (!fails)
            *now = *next;
        random_queries(b, now);
        if (i % 100 == 0)
            expect_all(b, now);
        if (b->on_disk && bench_draw(b, 80) == 0)
            bench_reopen(b);
    }
    expect_all(b, now);
    free(now);
    free(next);
}

/* A large commit passes the merge threshold alone; the next ones start over. */
BENCH_TEST(test_one_large_commit_is_listed_whole, b)
{
    enum { MANY = 5000 };
    struct list_entry *entries = ARENA_ARRAY(b->arena, struct list_entry, MANY);
    int64_t *ids = ARENA_ARRAY(b->arena, int64_t, MANY + 1);
    for (int i = 0; i < MANY; i++)
        entries[i] = (struct list_entry){
            .owner_key = 1, .bucket = first_bucket(b), .id = (int64_t)i * 7919 % MANY + 1};
    struct change_set c = {.list = entries, .list_count = MANY, .first_chunk = b->store->next_chunk};
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    c.list = &(struct list_entry){.owner_key = 1, .bucket = first_bucket(b), .id = MANY + 1};
    c.list_count = 1;
    assert_int_equal(bench_commit(b, &c), ERR_OK);
    struct list_query q = {
        .owner_key = 1, .bucket = first_bucket(b), .below_id = INT64_MAX, .limit = MANY + 1};
    struct err err;
    size_t count;
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_list(b->reader, &q, ids, &count, &err), ERR_OK);
    bench_end(b);
    assert_int_equal(count, MANY + 1);
    for (int i = 0; i <= MANY; i++)
        assert_int_equal(ids[i], MANY + 1 - i);
}

static size_t live_ids(struct bench *b, const struct list_query *q, int64_t task_state, int64_t *ids)
{
    struct err err;
    size_t count;
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_live(b->reader, q, task_state, ids, &count, &err), ERR_OK);
    bench_end(b);
    return count;
}

BENCH_TEST(test_live_tasks_of_a_client_are_listed_newest_first, b)
{
    for (int64_t id = 1; id <= 120; id++) {
        struct task_row t = {
            .id = id, .client = id % 3, .job_state = id % 4, .queue = STR("q"), .refs = {"", 0}};
        assert_int_equal(bench_change(b, &table_task_row, ROW_INSERT, &t), ERR_OK);
    }
    int64_t ids[200];
    for (int64_t client = 0; client < 3; client++)
        for (int64_t wanted = -1; wanted < 4; wanted++) {
            struct list_query q = {
                .owner_key = client, .below_id = 100, .from_id = 10, .limit = 5 + (size_t)client * 50};
            size_t n = live_ids(b, &q, wanted, ids), at = 0;
            for (int64_t id = 99; id >= 10 && at < q.limit; id--)
                if (id % 3 == client && (wanted < 0 || id % 4 == wanted))
                    assert_int_equal(ids[at++], id);
            assert_int_equal(n, at);
        }
    struct list_query foreign = {.owner_key = 9, .below_id = INT64_MAX, .limit = 10};
    assert_int_equal(live_ids(b, &foreign, -1, ids), 0);
}

/* What a listing of live tasks should give, the slow way. */
struct model_task {
    int64_t client, state; /* client 0: not alive */
    size_t queue;
    int64_t since_us;
};
enum { MODEL_IDS = 400, MODEL_CLIENTS = 3, MODEL_QUEUES = 3, MODEL_STEPS = 3000 };
static const struct str model_queues[MODEL_QUEUES + 1] = {STR("mail"), STR("m"), STR("images"), {0}};

static void check_live_listing(struct bench *b, const struct model_task *model)
{
    static int64_t ids[MODEL_IDS];
    int64_t from = (int64_t)(bench_draw(b, MODEL_IDS));
    struct list_query q = {.owner_key = 1 + (int64_t)(bench_draw(b, MODEL_CLIENTS)),
                           .from_id = from,
                           .below_id = from + (int64_t)(bench_draw(b, MODEL_IDS)),
                           .limit = 1 + bench_draw(b, 50)};
    int64_t wanted = (int64_t)(bench_draw(b, 5)) - 1;
    size_t queue = bench_draw(b, MODEL_QUEUES + 1); /* the last: any */
    q.queue = model_queues[queue];
    size_t n = live_ids(b, &q, wanted, ids), at = 0;
    for (int64_t id = MODEL_IDS - 1; id >= q.from_id && at < q.limit; id--)
        if (id < q.below_id && model[id].client == q.owner_key && (wanted < 0 || model[id].state == wanted) &&
            (queue == MODEL_QUEUES || model[id].queue == queue))
            assert_int_equal(ids[at++], id);
    assert_int_equal(n, at);
}

struct seen_queues {
    const struct model_task *model;
    int64_t client; /* 0: of any */
    size_t count;
};

static bool see_queue(const struct queue_sum *q, void *arg)
{
    struct seen_queues *seen = arg;
    struct queue_sum sum = {0};
    assert_true(!seen->client || q->client == seen->client);
    for (int64_t id = 1; id < MODEL_IDS; id++) {
        const struct model_task *m = &seen->model[id];
        if (m->client != q->client || !str_equal(model_queues[m->queue], q->queue))
            continue;
        sum.queued += m->state == JOB_QUEUED;
        sum.running += m->state == JOB_ASSIGNED || m->state == JOB_RUNNING;
        sum.scheduled += m->state == JOB_CREATED;
        if (m->state == JOB_QUEUED && (!sum.oldest_us || m->since_us < sum.oldest_us))
            sum.oldest_us = m->since_us;
    }
    assert_int_equal(q->queued, sum.queued);
    assert_int_equal(q->running, sum.running);
    assert_int_equal(q->scheduled, sum.scheduled);
    assert_int_equal(q->oldest_us, sum.oldest_us);
    seen->count++;
    return true;
}

/* Each queue of the client that has tasks, with the right numbers, once. */
static void check_queues(struct bench *b, const struct model_task *model, int64_t client)
{
    struct seen_queues seen = {.model = model, .client = client};
    bool there[MODEL_CLIENTS + 1][MODEL_QUEUES] = {{false}};
    struct err err;
    size_t want = 0;
    if (!b->reader->ops->reader_queues)
        return;
    for (int64_t id = 1; id < MODEL_IDS; id++)
        if (model[id].client && (!client || model[id].client == client))
            there[model[id].client][model[id].queue] = true;
    for (size_t c = 0; c <= MODEL_CLIENTS; c++)
        for (size_t q = 0; q < MODEL_QUEUES; q++)
            want += there[c][q];
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_queues(b->reader, client, see_queue, &seen, &err), ERR_OK);
    bench_end(b);
    assert_int_equal(seen.count, want);
}

/* Ids appear in any order (a retried job has an old one), move, and go from the front, the back and the
 * middle, so that lists are packed, emptied and begun again. */
BENCH_TEST(test_live_tasks_agree_with_a_naive_model, b)
{
    static struct model_task model[MODEL_IDS];
    memset(model, 0, sizeof model);
    for (int step = 0, steps = fewer(b, MODEL_STEPS); step < steps; step++) {
        bool growing = step / (steps / 6) % 2 == 0;
        int64_t id = 1 + (int64_t)(bench_draw(b, MODEL_IDS - 1));
        struct model_task *m = &model[id];
        bool remove = m->client && bench_draw(b, 4) >= (growing ? 3u : 1u);
        enum row_op op = remove ? ROW_DELETE : m->client ? ROW_UPDATE : ROW_INSERT;
        if (!m->client) {
            m->client = 1 + (int64_t)(bench_draw(b, MODEL_CLIENTS));
            m->queue = bench_draw(b, MODEL_QUEUES);
        }
        m->state = (int64_t)(bench_draw(b, 4));
        m->since_us = (1 + (int64_t)bench_draw(b, 1000)) * 1000000;
        struct task_row t = {.id = id,
                             .client = m->client,
                             .job_state = m->state,
                             .last_us = m->since_us,
                             .queue = model_queues[m->queue],
                             .refs = {"", 0}};
        assert_int_equal(bench_change(b, &table_task_row, op, &t), ERR_OK);
        if (remove)
            m->client = 0;
        check_live_listing(b, model);
        if (step % 10 == 0 || !b->shared)
            check_queues(b, model, (int64_t)bench_draw(b, MODEL_CLIENTS + 2)); /* 0: all; the last has none */
    }
}

/* --- counters: they ride beside the log, too ---------------------------------------------------- */

enum { COUNTERS = 9, COUNTER_COMMITS = 4000 };

struct naive_counters {
    bool there[COUNTERS];
    struct client_counts counts[COUNTERS];
};

struct seen_counters {
    const struct naive_counters *model;
    size_t count;
};

static bool see_counters(const void *row, void *arg)
{
    struct seen_counters *s = arg;
    const struct stats_row *r = row;
    assert_true(r->client >= 1 && r->client <= COUNTERS && s->model->there[r->client - 1]);
    assert_int_equal(r->counts.len, sizeof(struct client_counts));
    assert_memory_equal(r->counts.ptr, &s->model->counts[r->client - 1], sizeof(struct client_counts));
    s->count++;
    return true;
}

static void expect_counters(struct bench *b, const struct naive_counters *m)
{
    struct seen_counters s = {.model = m};
    struct err err;
    size_t want = 0;
    for (int i = 0; i < COUNTERS; i++) {
        struct stats_row key = {.client = i + 1};
        const struct stats_row *found = bench_fetch(b, &table_stats_row, &key);
        assert_int_equal(found != NULL, m->there[i]);
        if (found)
            assert_memory_equal(found->counts.ptr, &m->counts[i], sizeof m->counts[i]);
        want += m->there[i];
    }
    bench_begin(b);
    assert_int_equal(b->reader->ops->reader_scan(b->reader, &table_stats_row, see_counters, &s, &err),
                     ERR_OK);
    bench_end(b);
    assert_int_equal(s.count, want);
}

/* What one commit says of some counters. */
struct said_counters {
    struct client_counts counts[COUNTERS];
    struct stats_row rows[COUNTERS];
    struct row_change changes[COUNTERS + 1];
};

/* One commit that makes, changes or (seldom) deletes some counters. A shared store is told by how much they
 * change, and is never told to delete any. */
static size_t random_counters(struct bench *b, struct naive_counters *m, struct said_counters *said)
{
    size_t n = 0;
    for (int i = 0; i < COUNTERS; i++) {
        if (bench_draw(b, 3) == 0)
            continue;
        bool ends = !b->shared && bench_draw(b, 200) == 0;
        enum row_op op = !m->there[i] ? ROW_INSERT : ends ? ROW_DELETE : ROW_UPDATE;
        if (op == ROW_INSERT)
            m->counts[i] = (struct client_counts){0};
        m->there[i] = op != ROW_DELETE;
        uint64_t in_state = bench_draw(b, JOB_STATE_COUNT), kind = bench_draw(b, WORK_KIND_COUNT);
        int64_t more = (int64_t)bench_draw(b, 1000) - 300;
        m->counts[i].by_state[in_state] += more;
        m->counts[i].by_kind[kind]++;
        said->counts[n] = m->counts[i];
        if (b->shared && op == ROW_UPDATE) {
            said->counts[n] = (struct client_counts){0};
            said->counts[n].by_state[in_state] = more;
            said->counts[n].by_kind[kind] = 1;
        }
        said->rows[n] = (struct stats_row){.client = i + 1, .counts = counts_bytes(&said->counts[n])};
        said->changes[n] = (struct row_change){&table_stats_row, op, &said->rows[n]};
        n++;
    }
    return n;
}

BENCH_TEST(test_counters_agree_with_a_naive_model, b)
{
    static const struct str chunk = STR("a");
    struct naive_counters now = {0}, next;
    struct job_row absent = {.id = 5};
    for (int i = 0; i < fewer(b, COUNTER_COMMITS); i++) {
        struct said_counters said;
        next = now;
        bool fails = bench_draw(b, 20) == 0;
        size_t n = random_counters(b, &next, &said);
        if (fails)
            said.changes[n++] = (struct row_change){&table_job_row, ROW_DELETE, &absent};
        struct change_set c = {.rows = said.changes,
                               .row_count = n,
                               .chunks = &chunk,
                               .chunk_count = bench_draw(b, 300) != 0,
                               .first_chunk = b->store->next_chunk};
        assert_int_equal(bench_commit(b, &c) == ERR_OK, !fails);
        if (!fails)
            now = next;
        if (i % 50 == 0)
            expect_counters(b, &now);
        if (b->on_disk && bench_draw(b, 200) == 0)
            bench_reopen(b);
    }
    expect_counters(b, &now);
}

int main(void)
{
    return bench_run_all();
}
