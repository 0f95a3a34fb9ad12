/* The commit thread: commands from many threads, long polls that wake, a stop that answers everything. On
 * both stores, with the real clock. */
#include "unit/kernel/rig.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/banned.h"

enum { CLIENT_THREADS = 4, JOBS_EACH = 60, WORKERS = 3 };

/* A command somebody waits for. */
struct waited {
    sem_t done;
};

struct waited_submit {
    struct submit_command c;
    struct submit_item item;
    struct waited w;
};

struct waited_claim {
    struct claim_command c;
    struct claimed_task tasks[4];
    struct waited w;
};

struct waited_work {
    struct worker_command c;
    struct worker_item items[4];
    struct waited w;
};

static void submit_done(struct command *c)
{
    sem_post(&CONTAINER_OF(c, struct waited_submit, c.base)->w.done);
}
static void claim_done(struct command *c)
{
    sem_post(&CONTAINER_OF(c, struct waited_claim, c.base)->w.done);
}
static void work_done(struct command *c)
{
    sem_post(&CONTAINER_OF(c, struct waited_work, c.base)->w.done);
}

static void wait_for(struct kernel *k, struct command *c, const struct command_type *type,
                     void (*done)(struct command *c), struct waited *w)
{
    c->type = type;
    c->done = done;
    sem_init(&w->done, 0, 0);
    assert_true(kernel_post(k, c));
    sem_wait(&w->done);
    sem_destroy(&w->done);
}

struct crowd {
    struct kernel *kernel;
    int64_t client;
    unsigned finished; /* by all workers */
    pthread_mutex_t lock;
    atomic_bool failed;
};

static void *submit_many(void *arg)
{
    struct crowd *crowd = arg;
    for (int i = 0; i < JOBS_EACH; i++) {
        struct waited_submit s = {.c = {.client = crowd->client, .item_count = 1}, .item = rig_item()};
        s.c.items = &s.item;
        wait_for(crowd->kernel, &s.c.base, &submit_command_type, submit_done, &s.w);
        if (s.c.base.result != ERR_OK || s.item.err.code != ERR_OK)
            atomic_store(&crowd->failed, true);
    }
    return NULL;
}

static void do_tasks(struct crowd *crowd, const struct waited_claim *claim)
{
    struct waited_work w = {.c = {.item_count = claim->c.task_count}};
    w.c.items = w.items;
    for (uint32_t i = 0; i < claim->c.task_count; i++)
        w.items[i] = (struct worker_item){.id = claim->tasks[i].id,
                                          .token = claim->tasks[i].token,
                                          .low = claim->tasks[i].low,
                                          .outcome = {.success = true}};
    wait_for(crowd->kernel, &w.c.base, &start_command_type, work_done, &w.w);
    wait_for(crowd->kernel, &w.c.base, &finish_command_type, work_done, &w.w);
    pthread_mutex_lock(&crowd->lock);
    for (uint32_t i = 0; i < claim->c.task_count; i++)
        crowd->finished += w.items[i].code == ERR_OK;
    pthread_mutex_unlock(&crowd->lock);
}

static unsigned finished(struct crowd *crowd)
{
    pthread_mutex_lock(&crowd->lock);
    unsigned n = crowd->finished;
    pthread_mutex_unlock(&crowd->lock);
    return n;
}

static void *work_on(void *arg)
{
    static const struct str queue = {"default", 7};
    struct crowd *crowd = arg;
    while (finished(crowd) < CLIENT_THREADS * JOBS_EACH) {
        struct waited_claim claim = {
            .c = {.worker_id = STR("w"), .queues = &queue, .queue_count = 1, .max = 4, .wait_ms = 100}};
        claim.c.tasks = claim.tasks;
        wait_for(crowd->kernel, &claim.c.base, &claim_command_type, claim_done, &claim.w);
        if (claim.c.task_count)
            do_tasks(crowd, &claim);
    }
    return NULL;
}

/* The rig's kernel with the machine's clock and its thread running. */
static void start(struct rig *r)
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
                                   .housekeep = purge_housekeep,
                                   .housekeep_self = &r->purge};
    r->kernel = kernel_new(&config);
    assert_int_equal(kernel_start_thread(r->kernel, &err), ERR_OK);
}

static void fail_on(void *arg, const char *line)
{
    (void)arg;
    fail_msg("%s", line);
}

/* What a reader sees in the middle of it all is whole. (Memory belongs to the commit thread.) */
static void expect_sound_snapshot(struct rig *r)
{
    struct verify_result result;
    struct err err;
    assert_int_equal(store_verify(r->reader, fail_on, NULL, NULL, &result, &err), ERR_OK);
    assert_int_equal(result.problems, 0);
}

RIG_TEST(test_many_threads_submit_and_work_and_every_job_is_done_once, r)
{
    struct crowd crowd = {.client = rig_new_client(r, NULL), .lock = PTHREAD_MUTEX_INITIALIZER};
    start(r);
    crowd.kernel = r->kernel;
    pthread_t clients[CLIENT_THREADS], workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, work_on, &crowd), 0);
    for (int i = 0; i < CLIENT_THREADS; i++)
        assert_int_equal(pthread_create(&clients[i], NULL, submit_many, &crowd), 0);
    struct kernel_stats stats;
    while (finished(&crowd) < CLIENT_THREADS * JOBS_EACH) {
        expect_sound_snapshot(r);
        kernel_stats(r->kernel, &stats);
    }
    for (int i = 0; i < CLIENT_THREADS; i++)
        pthread_join(clients[i], NULL);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    kernel_stop_thread(r->kernel);
    assert_false(crowd.failed);
    assert_int_equal(crowd.finished, CLIENT_THREADS * JOBS_EACH);
    assert_int_equal(rig_counts(r, crowd.client).by_state[JOB_SUCCEEDED], CLIENT_THREADS * JOBS_EACH);
    assert_int_equal(rig_live_count(r), 0);
    pthread_mutex_destroy(&crowd.lock);
}

static void *stop_it(void *arg)
{
    kernel_stop_thread(arg);
    return NULL;
}

RIG_TEST(test_a_stop_answers_long_polls_at_once, r)
{
    static const struct str queue = {"default", 7};
    start(r);
    struct waited_claim claim = {
        .c = {.worker_id = STR("w"), .queues = &queue, .queue_count = 1, .max = 4, .wait_ms = 600000}};
    claim.c.tasks = claim.tasks;
    claim.c.base.type = &claim_command_type;
    claim.c.base.done = claim_done;
    sem_init(&claim.w.done, 0, 0);
    assert_true(kernel_post(r->kernel, &claim.c.base));
    pthread_t stopper;
    assert_int_equal(pthread_create(&stopper, NULL, stop_it, r->kernel), 0);
    sem_wait(&claim.w.done);
    pthread_join(stopper, NULL);
    assert_int_equal(claim.c.base.result, ERR_OK);
    assert_int_equal(claim.c.task_count, 0);
    sem_destroy(&claim.w.done);
}

/* What was posted before the stop is done, not dropped. */
RIG_TEST(test_a_stop_finishes_what_was_posted, r)
{
    int64_t client = rig_new_client(r, NULL);
    start(r);
    enum { MANY = 500 };
    struct submit_command *all[MANY];
    struct submit_item item = rig_item();
    for (int i = 0; i < MANY; i++)
        all[i] = rig_post_submit(r, client, &item, 1);
    kernel_stop_thread(r->kernel);
    for (int i = 0; i < MANY; i++)
        assert_true(rig_is_done(&all[i]->base) && all[i]->items[0].err.code == ERR_OK);
    assert_int_equal(rig_live_count(r), MANY);
}

/* A request that was on its way when the thread ended hears so, instead of waiting for ever. */
RIG_TEST(test_what_comes_after_the_stop_is_refused_at_once, r)
{
    int64_t client = rig_new_client(r, NULL);
    start(r);
    kernel_stop_thread(r->kernel);
    struct submit_item item = rig_item();
    struct submit_command *late = rig_post_submit(r, client, &item, 1);
    assert_true(rig_is_done(&late->base));
    assert_int_equal(late->base.result, ERR_STORAGE_UNAVAILABLE);
    assert_int_equal(rig_live_count(r), 0);
}

int main(void)
{
    return rig_run_all();
}
