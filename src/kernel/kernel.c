#include "kernel/kernel.h"

#include <stdlib.h>

#include "base/must.h"
#include "kernel/kernel_internal.h"
#include "kernel/task_owner.h"

#include "base/banned.h"

enum { ARENA_FIRST_BYTES = 1 << 18, ARENA_KEPT_BYTES = 4 << 20 };

void task_leave_ghost(struct unit *u, const struct task *t)
{
    ghosts_add(unit_ghosts(u), t->row.id, t->row.token, t->row.client, t->row.lease_ms);
}

struct ghosts *unit_ghosts(struct unit *u)
{
    return &CONTAINER_OF(u, struct kernel, unit)->ghosts;
}

/* A lease read back from disk is granted anew: the worker could not beat while core was down. */
static void regrant(struct task *t, void *arg)
{
    struct kernel *k = arg;
    if (t->phase != TASK_LEASED && t->phase != TASK_RUNNING)
        return;
    int64_t steady = (steady_now_us(k) + 999) / 1000, wall = clock_wall_ms(k->config.clock);
    t->row.lease_ms = steady + k->config.settings->queue_lease_ms;
    if (t->phase == TASK_RUNNING) {
        int64_t left = task_runtime_limit_ms(k->config.settings, t) - (wall - t->row.started_ms);
        t->run_until_ms = steady + (left > 0 ? left : 0);
    }
}

struct placing {
    struct kernel *k;
    struct task **tasks;
    size_t count;
};

static void gather(struct task *t, void *arg)
{
    struct placing *p = arg;
    regrant(t, p->k);
    p->tasks[p->count++] = t;
}

static void regrant_leases(struct kernel *k)
{
    struct live *live = k->config.store->live;
    live_target_slots(live, (uint32_t)k->config.settings->webhooks_slots);
    struct placing p = {k, must_alloc((live_size(live) + 1) * sizeof *p.tasks), 0};
    live_each(live, gather, &p); /* gathered first: placing changes the table that is walked */
    for (size_t i = 0; i < p.count; i++) {
        struct task *t = p.tasks[i], *about = t->row.subject ? live_find(live, t->row.subject) : NULL;
        if (about && t->row.target < 0)
            about->has_callback = true;
        live_place(live, t, clock_wall_ms(k->config.clock));
    }
    free(p.tasks);
}

struct kernel *kernel_new(const struct kernel_config *config)
{
    struct kernel *k = must_alloc(sizeof *k);
    k->config = *config;
    k->wall_minus_mono_us = clock_wall_us(config->clock) - clock_mono_us(config->clock);
    k->ids.last_key = config->store->last_id;
    k->unit = (struct unit){.store = config->store,
                            .arena = arena_new(ARENA_FIRST_BYTES),
                            .settings = config->settings,
                            .ids = &k->ids,
                            .tells_attempts = config->watch.attempts};
    arena_keep(k->unit.arena, ARENA_KEPT_BYTES);
    list_init(&k->queue);
    list_init(&k->parked);
    k->stats.storing = true;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&k->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&k->lock, NULL);
    pthread_mutex_init(&k->turn, NULL);
    struct err ignored; /* without a reader only the purge rests; the next start tries again */
    if (config->store->ops->reader_open(config->store, &k->unit.reader, &ignored) != ERR_OK)
        k->unit.reader = NULL;
    regrant_leases(k);
    return k;
}

struct kernel *kernel_free(struct kernel *k)
{
    if (!k)
        return NULL;
    MUST(!k->thread_runs);
    if (k->unit.reader)
        k->unit.reader->ops->reader_close(k->unit.reader);
    unit_free_rows(&k->unit);
    arena_free(k->unit.arena);
    ghosts_free(&k->ghosts);
    pthread_cond_destroy(&k->wake);
    pthread_mutex_destroy(&k->lock);
    pthread_mutex_destroy(&k->turn);
    free(k);
    return NULL;
}

static void refuse(struct kernel *k, struct command *c)
{
    c->result = err_set(&c->err, ERR_STORAGE_UNAVAILABLE, "the server is stopping; nothing was done");
    c->done(c);
    if (k->config.watch.batch_end)
        k->config.watch.batch_end(k->config.watch.self);
}

static bool queue_up(struct kernel *k, struct command *c, bool wakes)
{
    pthread_mutex_lock(&k->lock);
    bool ended = k->ended, asleep = k->sleeping;
    if (!ended) {
        list_add(&k->queue, c);
        if (wakes)
            k->sleeping = false;
        else if (asleep)
            atomic_store_explicit(&k->unannounced, true, memory_order_relaxed);
    }
    pthread_mutex_unlock(&k->lock);
    if (ended)
        refuse(k, c);
    return !ended && wakes && asleep;
}

void kernel_post(struct kernel *k, struct command *c)
{
    if (queue_up(k, c, true))
        pthread_cond_signal(&k->wake);
}

void kernel_post_in_round(struct kernel *k, struct command *c)
{
    (void)queue_up(k, c, false);
}

void kernel_stats(struct kernel *k, struct kernel_stats *ret_stats)
{
    pthread_mutex_lock(&k->lock);
    *ret_stats = k->stats;
    pthread_mutex_unlock(&k->lock);
}
