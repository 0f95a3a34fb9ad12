/* Inline commits: the only waiting command is committed by the HTTP thread that posted it. On both
 * stores, with the real clock and the commit thread running. */
#include "unit/kernel/rig.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/banned.h"

enum { TRIES = 3000, THREADS = 4, EACH = 100, LEASE_MS = 150, SLOW_US = 3000 };

/* A submit somebody waits for; who was it that called done? */
struct waited {
    struct submit_command c;
    struct submit_item item;
    sem_t done;
    pthread_t by;
};

static void is_done(struct command *c)
{
    struct waited *w = CONTAINER_OF(c, struct waited, c.base);
    w->by = pthread_self();
    sem_post(&w->done);
}

/* One round of a thread that serves: it brings one job and waits until it is stored. True: it stored it
 * itself. */
static bool round_with(struct kernel *k, int64_t client, int64_t weight, enum err_code expected)
{
    struct waited w = {.c = {.client = client, .item_count = 1}, .item = rig_item()};
    w.c.items = &w.item;
    w.c.base.type = &submit_command_type;
    w.c.base.done = is_done;
    w.c.base.weight = weight;
    sem_init(&w.done, 0, 0);
    assert_true(kernel_post_in_round(k, &w.c.base));
    kernel_round_end(k);
    sem_wait(&w.done);
    sem_destroy(&w.done);
    assert_int_equal(w.c.base.result, expected);
    return pthread_equal(w.by, pthread_self());
}

static bool round_with_one_job(struct kernel *k, int64_t client, enum err_code expected)
{
    return round_with(k, client, 1, expected);
}

static atomic_int told, told_here; /* fatal was called, by another thread than the test's, and by it */
static pthread_t tester;

static void fatal_elsewhere(void *self, const struct err *err)
{
    (void)self;
    if (err->code == ERR_STORE_FSYNC)
        atomic_fetch_add(pthread_equal(pthread_self(), tester) ? &told_here : &told, 1);
}

static void start(struct rig *r, bool commits_inline)
{
    struct err err;
    kernel_free(r->kernel);
    struct kernel_config config = {.owners = task_owners,
                                   .owner_count = LENGTH_OF(task_owners),
                                   .timer_kinds = timer_kinds,
                                   .timer_kind_count = LENGTH_OF(timer_kinds),
                                   .store = r->store,
                                   .settings = &r->settings,
                                   .clock = &clock_system,
                                   .watch = {.fatal = fatal_elsewhere},
                                   .commits_inline = commits_inline};
    r->kernel = kernel_new(&config);
    assert_int_equal(kernel_start_thread(r->kernel, &err), ERR_OK);
}

/* Brings jobs until one was committed here: the commit thread has to be asleep for that. */
static void commit_inline_for(struct rig *r, int64_t client, int64_t weight)
{
    for (int i = 0; i < TRIES; i++) {
        usleep(200); /* one that asks again at once finds it awake */
        if (round_with(r->kernel, client, weight, ERR_OK))
            return;
    }
    fail_msg("no command was committed inline in %d rounds", TRIES);
}

static void commit_one_inline(struct rig *r, int64_t client)
{
    commit_inline_for(r, client, 1);
}

RIG_TEST(test_the_only_waiting_command_is_committed_by_the_thread_that_posted_it, r)
{
    int64_t client = rig_new_client(r, NULL);
    start(r, true);
    commit_one_inline(r, client);
    struct kernel_stats stats;
    kernel_stats(r->kernel, &stats);
    assert_int_equal(stats.inline_commits, 1);
    assert_true(stats.batches >= stats.inline_commits);
    kernel_stop_thread(r->kernel);
}

RIG_TEST(test_no_commit_is_inline_where_only_one_thread_serves, r)
{
    int64_t client = rig_new_client(r, NULL);
    start(r, false);
    for (int i = 0; i < 50; i++)
        assert_false(round_with_one_job(r->kernel, client, ERR_OK));
    kernel_stop_thread(r->kernel);
}

/* A bulk call of more than 64 items would keep a serving thread for long. */
RIG_TEST(test_a_heavy_command_is_left_to_the_commit_thread, r)
{
    int64_t client = rig_new_client(r, NULL);
    start(r, true);
    commit_inline_for(r, client, 64);
    for (int i = 0; i < 50; i++) {
        usleep(200);
        assert_false(round_with(r->kernel, client, 65, ERR_OK));
    }
    commit_inline_for(r, client, 64);
    kernel_stop_thread(r->kernel);
}

/* A serving thread waits for a quick disk only. */
RIG_TEST(test_a_slow_disk_gets_no_inline_commits, r)
{
    int64_t client = rig_new_client(r, NULL);
    start(r, true);
    commit_one_inline(r, client);
    r->commit_takes_us = SLOW_US;
    (void)round_with_one_job(r->kernel, client, ERR_OK); /* whoever it is finds out */
    for (int i = 0; i < 50; i++)
        assert_false(round_with_one_job(r->kernel, client, ERR_OK));
    r->commit_takes_us = 0;
    commit_one_inline(r, client); /* and it is quick again */
    kernel_stop_thread(r->kernel);
}

static void post_claim_in_round(struct rig *r, struct claim_command *c, void (*done)(struct command *c))
{
    c->base.type = &claim_command_type;
    c->base.done = done;
    assert_true(kernel_post_in_round(r->kernel, &c->base));
    kernel_round_end(r->kernel);
}

struct waited_claim {
    struct claim_command c;
    struct claimed_task task;
    sem_t done;
};

static void claim_is_done(struct command *c)
{
    sem_post(&CONTAINER_OF(c, struct waited_claim, c.base)->done);
}

/* One task, claimed in a round of this thread. True: in an inline commit. */
static bool claim_one(struct rig *r)
{
    static const struct str queue = {"default", 7};
    struct kernel_stats before, after;
    struct waited_claim w = {
        .c = {.worker_id = STR("w"), .queues = &queue, .queue_count = 1, .max = 1, .tasks = &w.task}};
    sem_init(&w.done, 0, 0);
    kernel_stats(r->kernel, &before);
    post_claim_in_round(r, &w.c, claim_is_done);
    sem_wait(&w.done);
    sem_destroy(&w.done);
    assert_int_equal(w.c.task_count, 1);
    kernel_stats(r->kernel, &after);
    return after.inline_commits > before.inline_commits;
}

/* The commit thread sleeps towards the timers it knows; a claim in an inline commit adds an earlier one. */
RIG_TEST(test_a_timer_made_in_an_inline_commit_is_on_time, r)
{
    int64_t client = rig_new_client(r, NULL);
    r->settings.queue_lease_ms = LEASE_MS;
    start(r, true);
    struct kernel_stats stats = {.assigned = 1};
    bool is_inline = false;
    for (int i = 0; i < TRIES && !is_inline; i++) {
        commit_one_inline(r, client);
        usleep(5000); /* the commit thread sleeps, and would for a minute */
        is_inline = claim_one(r);
    }
    assert_true(is_inline);
    for (int i = 0; i < 400 && stats.assigned; i++) {
        usleep(10000);
        kernel_stats(r->kernel, &stats);
    }
    assert_int_equal(stats.assigned, 0); /* the lease ended, and somebody was awake to see it */
    kernel_stop_thread(r->kernel);
}

/* A failed fsync in an inline commit: the thread that committed can still answer, the commit thread ends the
 * process. */
RIG_TEST(test_a_lost_store_is_told_by_the_commit_thread, r)
{
    int64_t client = rig_new_client(r, NULL);
    tester = pthread_self();
    atomic_store(&told, 0);
    atomic_store(&told_here, 0);
    start(r, true);
    commit_one_inline(r, client);
    usleep(5000);
    r->failures = 1;
    r->failure = ERR_STORE_FSYNC;
    (void)round_with_one_job(r->kernel, client, ERR_STORE_FSYNC);
    for (int i = 0; i < 400 && !atomic_load(&told); i++)
        usleep(10000);
    assert_true(atomic_load(&told) >= 1 && !atomic_load(&told_here));
    kernel_stop_thread(r->kernel);
}

struct crowd {
    struct kernel *kernel;
    int64_t client;
};

static void *bring_many(void *arg)
{
    struct crowd *crowd = arg;
    for (int i = 0; i < EACH; i++) {
        (void)round_with_one_job(crowd->kernel, crowd->client, ERR_OK);
        if (i % 4 == 0)
            usleep(500); /* so that the others are alone at times */
    }
    return NULL;
}

RIG_TEST(test_many_who_bring_one_each_lose_nothing, r)
{
    struct crowd crowd = {.client = rig_new_client(r, NULL)};
    start(r, true);
    crowd.kernel = r->kernel;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, bring_many, &crowd), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    commit_one_inline(r, crowd.client);
    kernel_stop_thread(r->kernel);
    struct kernel_stats stats;
    kernel_stats(r->kernel, &stats);
    assert_true(rig_live_count(r) > THREADS * EACH);
    assert_int_equal(rig_counts(r, crowd.client).by_state[JOB_QUEUED], rig_live_count(r));
    assert_true(stats.inline_commits >= 1);
}

int main(void)
{
    return rig_run_both();
}
