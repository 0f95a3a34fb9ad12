#include "domains/runner/runner.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/heart.h"
#include "base/log.h"
#include "base/must.h"
#include "base/random.h"
#include "domains/runner/runner_internal.h"

#include "base/banned.h"

void runner_want_work(struct runner *r, struct runner_worker *w)
{
    if (w->wanting || w->claim || w->slots_free <= 0)
        return;
    w->wanting = true;
    TAILQ_INSERT_TAIL(&r->wanting, w, link);
}

static void runner_init(struct runner *r, const struct runner_config *config)
{
    *r = (struct runner){
        .config = config,
        .clock = config->clock ? config->clock : &clock_system,
        .queue = str_of(config->queue ? config->queue : "default"),
        .finish_bytes_max = RUNNER_FINISH_BYTES,
    };
    snprintf(r->name, sizeof r->name, "runner %" PRId64, config->instance);
    r->link = (struct link_watch){.component = "runner", .instance_id = r->name};
    r->client = worker_client_new(&(struct worker_client_config){
        .socket_path = config->socket_path,
        .timeout_ms = RUNNER_CALL_TIMEOUT_MS,
        .calls_max = RUNNER_CLAIMS_MAX + 5, /* and one of each other verb, and of the report */
        .clock = r->clock,
        .link = runner_link,
        .link_self = r,
    });
    r->exerciser = exerciser_new(config->scratch_fd);
    for (size_t i = 0; i < LENGTH_OF(r->phases); i++)
        TAILQ_INIT(&r->phases[i]);
    TAILQ_INIT(&r->wanting);
    r->workers = must_alloc((size_t)config->workers * sizeof *r->workers);
    for (int64_t i = 0; i < config->workers; i++) {
        struct runner_worker *w = &r->workers[i];
        w->runner = r;
        w->slots_free = config->concurrency;
        snprintf(w->id, sizeof w->id, "runner-%" PRId64 "-w%" PRId64 "-%016" PRIx64, config->instance, i + 1,
                 random_u64());
        runner_want_work(r, w);
    }
}

static void free_batch_tasks(struct runner_batch *b)
{
    for (size_t i = 0; b->call && i < b->count; i++)
        free(b->tasks[i]);
}

/* What is left has not been reported in time: its leases run out and core hands it on. */
static void runner_forget_tasks(struct runner *r)
{
    struct runner_task *t;
    /* Heartbeats first: a task that only they hold is freed, the others stand somewhere else. */
    for (size_t i = 0; r->heartbeat.call && i < r->heartbeat.count; i++)
        runner_task_unbeat(r->heartbeat.tasks[i]);
    r->heartbeat.call = NULL;
    for (size_t p = 0; p < LENGTH_OF(r->phases); p++)
        while ((t = TAILQ_FIRST(&r->phases[p]))) {
            TAILQ_REMOVE(&r->phases[p], t, link);
            heap_remove(&r->timers, &t->timer);
            exercise_end(r->exerciser, t->exercise);
            free(t);
        }
    free_batch_tasks(&r->start);
    free_batch_tasks(&r->release);
    free_batch_tasks(&r->finish);
}

static void runner_free(struct runner *r)
{
    runner_forget_tasks(r);
    worker_client_free(r->client);
    exerciser_free(r->exerciser);
    heap_free(&r->timers);
    free(r->workers);
}

static void fire_timers(struct runner *r, int64_t now_ms)
{
    struct heap_node *n;
    while ((n = heap_first(&r->timers)) && n->key <= (uint64_t)now_ms)
        runner_task_due(r, CONTAINER_OF(n, struct runner_task, timer), now_ms);
}

/* Tasks in an answer that has already arrived are ours: unread, they would wait for their lease. */
static void take_arrived_answers(struct runner *r)
{
    struct pollfd arrived = {.fd = worker_client_fd(r->client), .events = POLLIN};
    for (int i = 0; i < RUNNER_ARRIVED_READS_MAX && poll(&arrived, 1, 0) > 0; i++)
        worker_client_work(r->client);
}

static void drain_begin(struct runner *r, int64_t now_ms)
{
    take_arrived_answers(r);
    log_line(LOG_INFO, "draining", "tasks", LOG_INT((int64_t)r->task_count), NULL);
    r->draining = true;
    r->drain_until_ms = now_ms + r->config->drain_ms;
    runner_abandon_claims(r);
}

/* True when nothing is left to do, or no time to do it. */
static bool drain_step(struct runner *r, int64_t now_ms)
{
    struct runner_task *t;
    if (now_ms >= r->drain_until_ms)
        while ((t = TAILQ_FIRST(&r->phases[TASK_RUNNING])))
            runner_task_ended(r, t, END_SHUTDOWN);
    return r->task_count == 0 || now_ms >= r->drain_until_ms + RUNNER_REPORT_MS;
}

static int64_t runner_next_at_ms(const struct runner *r, int64_t now_ms)
{
    int64_t at_ms = runner_calls_next_at_ms(r, now_ms);
    int64_t client_ms = worker_client_deadline_ms(r->client);
    const struct heap_node *timer = heap_first(&r->timers);
    if (client_ms < at_ms)
        at_ms = client_ms;
    if (timer && (int64_t)timer->key < at_ms)
        at_ms = (int64_t)timer->key;
    if (r->draining) {
        bool waiting = now_ms < r->drain_until_ms;
        int64_t drain_ms = r->drain_until_ms + (waiting ? 0 : RUNNER_REPORT_MS);
        at_ms = drain_ms < at_ms ? drain_ms : at_ms;
    }
    return at_ms;
}

static void runner_wait(struct runner *r, int64_t now_ms)
{
    struct pollfd fds[2] = {
        {.fd = worker_client_fd(r->client), .events = POLLIN},
        {.fd = r->draining ? -1 : r->config->stop_fd, .events = POLLIN},
    };
    int64_t at_ms = runner_next_at_ms(r, now_ms);
    int64_t wait_ms = at_ms == INT64_MAX ? -1 : at_ms < now_ms ? 0 : at_ms - now_ms;
    int ready = poll(fds, LENGTH_OF(fds), heart_sleep_ms(wait_ms));
    MUST(ready >= 0 || errno == EINTR);
}

static bool stop_wanted(const struct runner_config *config)
{
    struct pollfd stop = {.fd = config->stop_fd, .events = POLLIN};
    if (config->stop_requested && config->stop_requested())
        return true;
    return config->stop_fd >= 0 && poll(&stop, 1, 0) > 0;
}

int runner_main(const struct runner_config *config)
{
    struct runner *r = must_alloc(sizeof *r);
    struct heart *heart = heart_open("runner");
    runner_init(r, config);
    for (;;) {
        heart_beat(heart);
        int64_t now_ms = clock_mono_ms(r->clock);
        fire_timers(r, now_ms);
        if (!r->draining && stop_wanted(config))
            drain_begin(r, now_ms);
        if (r->draining && drain_step(r, now_ms))
            break;
        runner_pump(r, now_ms);
        runner_wait(r, now_ms);
        worker_client_work(r->client);
    }
    heart_close(heart);
    struct exercise_count used = exerciser_count(r->exerciser);
    log_line(LOG_INFO, "stopped", "unreported", LOG_INT((int64_t)r->task_count), "cpu_us",
             LOG_INT((int64_t)used.cpu_us), "memory_blocks", LOG_INT((int64_t)used.blocks), "files",
             LOG_INT((int64_t)used.files), NULL);
    runner_free(r);
    free(r);
    return 0;
}
