/* What the commit thread keeps in memory: idempotency hashes, counters, the live queue; each against a naive
 * model. */
#include "store/bench_store.h"

#include <stdlib.h>

#include "base/banned.h"

static uint64_t walk = 7;

static uint64_t draw(uint64_t below)
{
    walk = hash_mix(walk + UINT64_C(0x9E3779B97F4A7C15));
    return walk % below;
}

/* --- idempotency ------------------------------------------------------------------------------- */

enum { HASHES = 300, JOBS_A_HASH = 4 };

static void expect_candidates(const struct idem_index *x, uint64_t hash, const bool *there)
{
    size_t cursor = 0, count = 0, want = 0;
    bool seen[JOBS_A_HASH] = {false};
    for (int64_t job; (job = idem_find(x, hash, &cursor)); count++) {
        size_t which = (size_t)job % JOBS_A_HASH;
        assert_true(there[which] && !seen[which]);
        seen[which] = true;
    }
    for (size_t i = 0; i < JOBS_A_HASH; i++)
        want += there[i];
    assert_int_equal(count, want);
}

TEST(test_the_idempotency_index_agrees_with_a_naive_one)
{
    static bool there[HASHES][JOBS_A_HASH];
    struct idem_index x = {0};
    size_t used = 0;
    for (int i = 0; i < 200000; i++) {
        uint64_t n = draw(HASHES), which = draw(JOBS_A_HASH);
        uint64_t hash = 2 + n * 1024; /* many share a slot */
        int64_t job = (int64_t)(JOBS_A_HASH * (n + 1) + which);
        if (!there[n][which])
            idem_put(&x, hash, job);
        else
            idem_remove(&x, hash, job);
        used += there[n][which] ? (size_t)-1 : 1;
        there[n][which] = !there[n][which];
        assert_int_equal(x.used, used);
        expect_candidates(&x, hash, there[n]);
    }
    assert_true(x.slot_count <= 8192); /* removed slots are cleaned up, not kept for ever */
    idem_free(&x);
}

TEST(test_idempotency_hashes_differ_by_client_and_key_and_are_never_reserved)
{
    assert_int_not_equal(idem_hash(1, STR("a")), idem_hash(2, STR("a")));
    assert_int_not_equal(idem_hash(1, STR("a")), idem_hash(1, STR("b")));
    assert_int_equal(idem_hash(1, STR("a")), idem_hash(1, STR("a")));
    for (int64_t i = 0; i < 1000; i++)
        assert_true(idem_hash(i, STR("key")) > 1);
}

/* --- counters ---------------------------------------------------------------------------------- */

TEST(test_counters_of_an_older_shorter_form_are_read_with_zeros)
{
    struct client_counts full, back;
    memset(&full, 1, sizeof full);
    counts_from_bytes(&back, counts_bytes(&full));
    assert_memory_equal(&back, &full, sizeof full);
    counts_from_bytes(&back, (struct str){(const char *)&full, 8 * sizeof(int64_t)});
    assert_int_equal(back.by_kind[0], full.by_kind[0]);
    assert_int_equal(back.by_kind[1], 0);
}

/* --- the live queue ---------------------------------------------------------------------------- */

enum { TASKS = 200, QUEUES = 3, CLIENTS = 4 };

static const struct str queue_names[QUEUES] = {{"q0", 2}, {"q1", 2}, {"q2", 2}};

static bool is_before(const struct task *a, const struct task *b)
{
    return a->row.priority != b->row.priority ? a->row.priority > b->row.priority : a->row.id < b->row.id;
}

static struct task *naive_best(struct task **all, const struct live_claim *c, int64_t now)
{
    struct task *best = NULL;
    for (int i = 0; i < TASKS; i++) {
        struct task *t = all[i];
        bool named = false;
        for (size_t q = 0; t && q < c->queue_count; q++)
            named |= str_equal(c->queues[q], t->row.queue);
        if (named && t->row.state == JOB_QUEUED && t->row.due_ms <= now &&
            (!c->client || t->row.client == c->client) && (!best || is_before(t, best)))
            best = t;
    }
    return best;
}

/* Another state, with what a sound row of that state has. */
static void randomize(struct live *l, struct task *t, int64_t now)
{
    t->row.state = (int64_t)draw(4);
    bool leased = t->row.state == JOB_ASSIGNED || t->row.state == JOB_RUNNING;
    t->row.due_ms = t->row.state != JOB_CREATED && draw(2) ? 0 : now + (int64_t)draw(2000);
    t->row.lease_ms = leased ? now + (int64_t)draw(2000) : 0;
    t->row.started_ms = t->row.state == JOB_RUNNING;
    t->run_until_ms = now + (int64_t)draw(2000);
    live_set_worker(l, t, leased ? STR("w") : STR_ABSENT, now);
}

static void expect_timers(struct live *l, struct task **all, int64_t now)
{
    int64_t wall = INT64_MAX, steady = INT64_MAX;
    uint32_t phases[TASK_ENDED + 1] = {0}, count = 0;
    for (int i = 0; i < TASKS; i++) {
        struct task *t = all[i];
        if (!t)
            continue;
        count++;
        phases[t->phase]++;
        int64_t at = t->row.lease_ms;
        if (t->row.state == JOB_RUNNING && t->run_until_ms < at)
            at = t->run_until_ms;
        bool leased = t->row.state == JOB_ASSIGNED || t->row.state == JOB_RUNNING;
        if (leased && at < steady)
            steady = at;
        if (!leased && (t->row.state == JOB_CREATED || t->row.due_ms > now) && t->row.due_ms < wall)
            wall = t->row.due_ms;
    }
    assert_int_equal(live_next_wall(l), wall);
    assert_int_equal(live_next_steady(l), steady);
    assert_int_equal(live_count(l), count);
    for (int p = 0; p < TASK_ENDED; p++)
        assert_int_equal(live_phase_count(l, (enum task_phase)p), phases[p]);
}

TEST(test_the_live_queue_agrees_with_a_naive_one)
{
    struct live *l = live_new();
    struct task *all[TASKS] = {NULL};
    const int64_t now = 1000000; /* one instant: what passes is the kernel's business */
    for (int i = 0; i < 30000; i++) {
        size_t at = draw(TASKS);
        struct task_row row = {.id = (int64_t)at + 1,
                               .client = 1 + (int64_t)draw(CLIENTS),
                               .priority = (int64_t)draw(10),
                               .queue = queue_names[draw(QUEUES)],
                               .state = JOB_QUEUED,
                               .attempt = 1,
                               .token = 1};
        if (!all[at])
            all[at] = live_task_new(l, &row);
        else if (draw(4) == 0) {
            live_take(l, all[at]);
            live_task_free(l, all[at]);
            all[at] = NULL;
            continue;
        }
        randomize(l, all[at], now);
        live_place(l, all[at], now);
        assert_ptr_equal(live_find(l, (int64_t)at + 1), all[at]);
        struct live_claim c = {queue_names, 1 + draw(QUEUES), (int64_t)draw(CLIENTS + 1)};
        assert_ptr_equal(live_best(l, &c), naive_best(all, &c, now));
        if (i % 50 == 0)
            expect_timers(l, all, now);
    }
    live_free(l);
}

TEST(test_workers_are_remembered_while_they_are_seen_or_hold_a_task)
{
    struct live *l = live_new();
    struct task_row row = {.id = 1,
                           .client = 1,
                           .queue = STR("q"),
                           .state = JOB_ASSIGNED,
                           .attempt = 1,
                           .token = 1,
                           .lease_ms = 50};
    struct task *t = live_task_new(l, &row);
    live_set_worker(l, t, STR("holder"), 100);
    live_place(l, t, 0);
    live_worker(l, STR("idle"), 100);
    live_worker(l, STR("busy"), 5000);
    live_worker(l, STR("busy"), 4000); /* never younger by an older look */
    assert_int_equal(live_worker_count(l, 5000), 1);
    assert_int_equal(live_worker_count(l, 100), 3);
    live_forget_workers(l, 1000);
    assert_int_equal(live_worker_count(l, 0), 2);
    assert_true(str_is(t->row.worker, "holder"));
    live_take(l, t);
    live_task_free(l, t); /* it lets go of its worker */
    live_forget_workers(l, 1000);
    assert_int_equal(live_worker_count(l, 0), 1);
    live_free(l);
}
