/* The commit thread: sleeps until a command or a timer, runs a batch, tends the store, again. */
#include <errno.h>
#include <time.h>

#include "base/must.h"
#include "kernel/kernel_internal.h"

#include "base/banned.h"

enum { LOOK_AGAIN_MS = 500 }; /* longest sleep while timers wait: a clock that was set is noticed */

int64_t kernel_idle_ms(const struct kernel *k)
{
    int64_t steady = steady_now(k), wall = clock_wall_ms(k->config.clock), ms = 60000;
    int64_t next_steady = live_next_steady(k->unit.store->live),
            next_wall = live_next_wall(k->unit.store->live);
    if (next_steady < INT64_MAX && next_steady - steady < ms)
        ms = next_steady - steady;
    if (next_wall < INT64_MAX) {
        if (next_wall - wall < ms)
            ms = next_wall - wall;
        if (ms > LOOK_AGAIN_MS)
            ms = LOOK_AGAIN_MS;
    }
    for (const struct command *c = k->parked.first; c; c = c->next)
        if (c->park_until_ms - steady < ms)
            ms = c->park_until_ms - steady;
    if (k->config.housekeep && k->housekeeping_ms - steady < ms)
        ms = k->housekeeping_ms - steady;
    int64_t paused = k->timers_paused_until_ms - steady;
    return ms < paused ? paused : ms;
}

/* Waits for a command or a timer. False when stopping and nothing is left. */
static bool wait_for_work(struct kernel *k, int64_t ms)
{
    pthread_mutex_lock(&k->lock);
    if (!k->queue.first && !k->stopping && ms > 0) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += ms / 1000;
        until.tv_nsec += (ms % 1000) * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        k->sleep_until_ms = steady_now(k) + ms;
        k->sleeping = true;
        while (k->sleeping && !k->stopping && pthread_cond_timedwait(&k->wake, &k->lock, &until) != ETIMEDOUT)
            continue;
        k->sleeping = false;
    }
    bool more = k->queue.first || !k->stopping;
    pthread_mutex_unlock(&k->lock);
    return more;
}

static bool queue_is_empty(struct kernel *k)
{
    pthread_mutex_lock(&k->lock);
    bool empty = !k->queue.first;
    pthread_mutex_unlock(&k->lock);
    return empty;
}

/* From here on nobody takes commands from the queue; kernel_post answers them itself. */
static bool end_if_empty(struct kernel *k)
{
    pthread_mutex_lock(&k->lock);
    k->ended = !k->queue.first;
    pthread_mutex_unlock(&k->lock);
    return k->ended;
}

void kernel_tend(struct kernel *k)
{
    struct err err;
    enum err_code code = k->config.store->ops->tend(k->config.store, queue_is_empty(k), &err);
    if (code == ERR_OK)
        return;
    kernel_log_failure(k, "checkpoint_failed", &err);
    kernel_tell_fatal(k, code, &err);
}

/* A batch and what follows it. Gives how long nothing will happen by itself. */
static int64_t take_turn(struct kernel *k)
{
    pthread_mutex_lock(&k->turn);
    kernel_tell_fatal(k, k->lost.code, &k->lost); /* what a borrower found */
    kernel_step(k);
    kernel_tend(k);
    int64_t ms = kernel_idle_ms(k);
    pthread_mutex_unlock(&k->turn);
    return ms;
}

static void *commit_thread(void *arg)
{
    struct kernel *k = arg;
    int64_t ms = 0;
    while (wait_for_work(k, ms))
        ms = take_turn(k);
    do
        (void)take_turn(k); /* answers what is parked, and what came while it stopped */
    while (!end_if_empty(k));
    return NULL;
}

enum err_code kernel_start_thread(struct kernel *k, struct err *err)
{
    if (pthread_create(&k->thread, NULL, commit_thread, k) != 0)
        return err_set(err, ERR_INTERNAL, "cannot start the commit thread");
    (void)pthread_setname_np(k->thread, "commit"); /* for top, perf and the benchmark */
    k->thread_runs = true;
    return ERR_OK;
}

void kernel_stop_thread(struct kernel *k)
{
    if (!k->thread_runs)
        return;
    pthread_mutex_lock(&k->turn);
    k->housekeeping_ms = 0; /* once more: it may hold something that is to be saved */
    pthread_mutex_unlock(&k->turn);
    pthread_mutex_lock(&k->lock);
    k->stopping = true;
    pthread_mutex_unlock(&k->lock);
    pthread_cond_signal(&k->wake);
    pthread_join(k->thread, NULL);
    k->thread_runs = false;
}
