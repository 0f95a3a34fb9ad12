/* The commit threads, one a lane: each sleeps until a command or a timer, runs a batch, tends the store. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/must.h"
#include "kernel/kernel_internal.h"

#include "base/banned.h"

enum {
    LOOK_AGAIN_MS = 500, /* longest sleep while timers wait: a clock that was set is noticed */
    SLEEP_MAX_MS = 60000,
};

static int64_t earlier(int64_t ms, int64_t at_ms, int64_t now_ms)
{
    return at_ms < INT64_MAX && at_ms - now_ms < ms ? at_ms - now_ms : ms;
}

/* A shared store's timers are looked for by the lane with the duties, when `lead` says so or one is due. */
static int64_t timers_idle_ms(const struct lane *l, int64_t ms, int64_t steady)
{
    const struct live *live = l->unit.store->live;
    if (is_shared(l))
        return l->has_duties ? earlier(earlier(ms, l->next_due_ms, steady), l->next_lapse_ms, steady) : ms;
    int64_t next_wall = live_next_wall(live), next_timer = timers_next_ms(&l->unit.store->timers);
    if (next_timer < next_wall)
        next_wall = next_timer;
    ms = earlier(ms, live_next_steady(live), steady);
    if (next_wall < INT64_MAX) {
        ms = earlier(ms, next_wall, wall_now_ms(l->kernel));
        if (ms > LOOK_AGAIN_MS)
            ms = LOOK_AGAIN_MS;
    }
    return ms;
}

int64_t lane_idle_ms(const struct lane *l)
{
    struct kernel *k = l->kernel;
    if (l != &k->lanes[0])
        return SLEEP_MAX_MS; /* the first lane has an eye on the time for all */
    int64_t steady = steady_now(k), ms = timers_idle_ms(l, SLEEP_MAX_MS, steady);
    pthread_mutex_lock(&k->lock);
    for (int kind = 0; kind < LANE_KINDS; kind++)
        for (const struct command *c = k->parked[kind].first; c; c = c->next)
            ms = earlier(ms, c->park_until_ms, steady);
    pthread_mutex_unlock(&k->lock);
    if (k->config.housekeep && l->has_duties)
        ms = earlier(ms, l->housekeeping_ms, steady);
    if (k->config.save)
        ms = earlier(ms, l->saving_ms, steady);
    if (l->unit.store->ops->lead)
        ms = earlier(ms, l->lead_ms, steady);
    int64_t paused = l->timers_paused_until_ms - steady;
    return ms < paused ? paused : ms;
}

struct lane *kernel_wake_one(struct kernel *k, bool first)
{
    for (size_t i = first ? 1 : k->lane_count; i-- > 0;) { /* the first one last: it has the time to watch */
        if (!k->lanes[i].sleeping)
            continue;
        k->lanes[i].sleeping = false;
        return &k->lanes[i];
    }
    return NULL;
}

void lane_take_news(struct lane *l)
{
    struct kernel *k = l->kernel;
    if (l != &k->lanes[0])
        return;
    if (k->timer_moved)
        l->next_due_ms = 0; /* it looks now */
    if (k->inbox_filled)
        duties_housekeep_soon(l);
    k->timer_moved = k->inbox_filled = false;
}

/* With the lock held: is there something for this lane, whatever the time is? */
static bool has_work(const struct lane *l)
{
    const struct kernel *k = l->kernel;
    for (int kind = 0; kind < kinds_of(l); kind++)
        if (queue_count(k, (enum lane_kind)kind) || k->look_for_parked[kind])
            return true;
    return k->stopping || ((k->timer_moved || k->inbox_filled) && l == &k->lanes[0] && l->has_duties);
}

/* Waits for a command or a timer. False when stopping and nothing is left. */
static bool wait_for_work(struct lane *l, int64_t ms)
{
    struct kernel *k = l->kernel;
    pthread_mutex_lock(&k->lock);
    if (!has_work(l) && ms > 0) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += ms / 1000;
        until.tv_nsec += (ms % 1000) * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        l->sleep_until_ms = steady_now(k) + ms;
        l->sleeping = true;
        while (l->sleeping && !k->stopping && pthread_cond_timedwait(&l->wake, &k->lock, &until) != ETIMEDOUT)
            continue;
        l->sleeping = false;
    }
    lane_take_news(l);
    bool more = !is_queue_empty(k) || !k->stopping;
    pthread_mutex_unlock(&k->lock);
    return more;
}

static bool queue_is_empty(struct kernel *k)
{
    pthread_mutex_lock(&k->lock);
    bool empty = is_queue_empty(k);
    pthread_mutex_unlock(&k->lock);
    return empty;
}

void lane_tend(struct lane *l)
{
    struct err err;
    struct store *s = l->unit.store;
    heart_waits(l->heart, true);
    enum err_code code = s->ops->tend(s, queue_is_empty(l->kernel), &err);
    heart_waits(l->heart, false);
    if (code == ERR_OK)
        return;
    kernel_log_failure(l->kernel, "checkpoint_failed", &err);
    lane_tell_fatal(l, code, &err);
}

/* A batch and what follows it. Gives how long nothing will happen by itself. */
static int64_t take_turn(struct lane *l)
{
    pthread_mutex_lock(&l->turn);
    lane_tell_fatal(l, l->lost.code, &l->lost); /* the failure of an inline commit */
    lane_step(l);
    if (live_replays_ready(l->unit.store->live)) /* the replay process may be idle: this wakes it */
        bus_publish(BUS_REPLAY, live_replays_ready(l->unit.store->live));
    lane_tend(l);
    int64_t ms = lane_idle_ms(l);
    pthread_mutex_unlock(&l->turn);
    return ms;
}

static void *commit_thread(void *arg)
{
    struct lane *l = arg;
    int64_t ms = 0;
    while (wait_for_work(l, ms > 0 ? heart_sleep_ms(ms) : 0)) { /* below 0: something is due already */
        heart_beat(l->heart);
        ms = take_turn(l);
    }
    heart_close(l->heart);
    return NULL;
}

enum err_code kernel_start_thread(struct kernel *k, struct err *err)
{
    for (size_t i = 0; i < k->lane_count; i++) {
        struct lane *l = &k->lanes[i];
        char name[16] = "commit"; /* for top, perf and the benchmark */
        if (i)
            snprintf(name, sizeof name, "commit.%u", (unsigned)i & 0xFF);
        l->heart = heart_open(name);
        if (pthread_create(&l->thread, NULL, commit_thread, l) != 0) {
            kernel_stop_thread(k);
            return err_set(err, ERR_INTERNAL, "cannot start a commit thread");
        }
        (void)pthread_setname_np(l->thread, name);
        l->thread_runs = true;
    }
    return ERR_OK;
}

/* From here on no thread takes commands from the queue; kernel_post answers them itself. */
static bool end_if_empty(struct kernel *k)
{
    pthread_mutex_lock(&k->lock);
    k->ended = is_queue_empty(k);
    pthread_mutex_unlock(&k->lock);
    return k->ended;
}

void kernel_stop_thread(struct kernel *k)
{
    struct lane *first = &k->lanes[0];
    bool ran = first->thread_runs;
    pthread_mutex_lock(&first->turn);
    first->housekeeping_ms = first->saving_ms = 0; /* once more: it may hold something that is to be saved */
    pthread_mutex_unlock(&first->turn);
    pthread_mutex_lock(&k->lock);
    k->stopping = true;
    pthread_mutex_unlock(&k->lock);
    for (size_t i = 0; i < k->lane_count; i++) {
        struct lane *l = &k->lanes[i];
        if (!l->thread_runs)
            continue;
        pthread_cond_signal(&l->wake);
        pthread_join(l->thread, NULL);
        l->thread_runs = false;
    }
    if (!ran)
        return;
    do
        (void)take_turn(first); /* answers what is parked, and what came while it stopped */
    while (!end_if_empty(k));
}
