#include "kernel/kernel.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/must.h"
#include "base/random.h"
#include "kernel/kernel_internal.h"
#include "kernel/task_owner.h"
#include "kernel/timer_kind.h"

#include "base/banned.h"

enum { ARENA_FIRST_BYTES = 1 << 18, ARENA_KEPT_BYTES = 4 << 20, SHARE_TOLD_MS = 60000 };

static struct kernel *kernel_of(struct unit *u)
{
    return CONTAINER_OF(u, struct lane, unit)->kernel;
}

void lease_remember_ended(struct unit *u, const struct task *t, enum lease_end how)
{
    struct kernel *k = kernel_of(u);
    struct ended_lease lease = {
        .task = t->row.id, .token = t->row.token, .client = t->row.client, .how = how};
    /* A lease of a shared store ends with the limit of the run: its worker would never hear of a cut. A
     * finish is known for no longer than the lease: should its commit fail, nobody takes it for one later. */
    bool is_longer = how == LEASE_CUT && u->store->shared;
    int64_t until = is_longer ? u->steady_ceil_ms + u->settings->queue_lease_ms : t->row.lease_ms;
    pthread_mutex_lock(&k->lock);
    ended_leases_add(&k->ended_leases, &lease, until);
    pthread_mutex_unlock(&k->lock);
}

bool kernel_find_ended(struct unit *u, const struct ended_lease *key, struct ended_lease *ret_lease)
{
    struct kernel *k = kernel_of(u);
    pthread_mutex_lock(&k->lock);
    const struct ended_lease *e = ended_leases_find(&k->ended_leases, key->task, key->token, key->how);
    if (e)
        *ret_lease = *e;
    pthread_mutex_unlock(&k->lock);
    return e && (!key->client || ret_lease->client == key->client);
}

/* A lease read back from disk is granted anew: the worker could not beat while core was down. */
static void regrant(struct task *t, void *arg)
{
    struct kernel *k = arg;
    if (t->phase != TASK_LEASED && t->phase != TASK_RUNNING)
        return;
    int64_t steady = (steady_now_us(k) + 999) / 1000, wall = wall_now_ms(k);
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
    struct placing p = {k, must_alloc((live_size(live) + 1) * sizeof *p.tasks), 0};
    live_each(live, gather, &p); /* gathered first: placing changes the table that is walked */
    for (size_t i = 0; i < p.count; i++) {
        struct task *t = p.tasks[i], *about = t->row.subject ? live_find(live, t->row.subject) : NULL;
        if (about && t->row.target < 0)
            about->has_callback = true;
        live_place(live, t, wall_now_ms(k));
    }
    free(p.tasks);
}

static void lane_init(struct kernel *k, struct lane *l, struct store *store)
{
    l->kernel = k;
    l->ids.last_key = store->last_id;
    l->unit = (struct unit){.store = store,
                            .arena = arena_new(ARENA_FIRST_BYTES),
                            .settings = k->config.settings,
                            .ids = &l->ids,
                            .owners = k->owners,
                            .timer_kinds = k->timer_kinds,
                            .random = k->config.random ? k->config.random : &random_system,
                            .notices = {.costly = k->config.watch.costly},
                            .census = store->shared ? &k->census : NULL};
    arena_keep(l->unit.arena, ARENA_KEPT_BYTES);
    store->served = true;
    store->lease_ms = k->config.settings->queue_lease_ms;
    store->deliveries_max = k->config.settings->webhooks_outbox_size;
    l->has_duties = !store->ops->lead; /* nobody else could have them */
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&l->turn, NULL);
    live_receiver_slots(store->live, (uint32_t)k->config.settings->webhooks_slots);
}

/* A clock that may be wrong at the start is told as one that jumps later is. */
static void start_wall(struct kernel *k)
{
    int64_t wall_us = raw_wall_us(k), mono_us = clock_mono_us(k->config.clock);
    int64_t known_us = uuid_v7_ms(k->config.store->last_id) * 1000;
    wall_guard_start(&k->wall, wall_us, mono_us, known_us);
    bool is_right = k->wall.state == WALL_RIGHT; /* as far as one can tell */
    if (!is_right || !wall_guard_may_delete(&k->wall, mono_us))
        log_line(LOG_ERROR, "clock", "state",
                 LOG_TEXT(is_right ? "ahead_of_store" : wall_state_text(k->wall.state)), "off_by_ms",
                 LOG_INT((wall_us - known_us) / 1000), "deletes", LOG_INT(0), "advice",
                 LOG_TEXT(wall_advice(is_right ? WALL_AHEAD : k->wall.state)), NULL);
}

static void register_kinds(struct kernel *k)
{
    for (size_t i = 0; i < k->config.owner_count; i++) {
        const struct task_owner *o = k->config.owners[i];
        MUST(o->number >= 0 && o->number < TASK_OWNERS_MAX && !k->owners[o->number]);
        k->owners[o->number] = o;
    }
    for (size_t i = 0; i < k->config.timer_kind_count; i++) {
        const struct timer_kind *t = k->config.timer_kinds[i];
        MUST(t->number >= 0 && t->number < TIMER_KINDS_MAX && !k->timer_kinds[t->number]);
        k->timer_kinds[t->number] = t;
    }
}

struct kernel *kernel_new(const struct kernel_config *config)
{
    struct kernel *k = must_alloc(sizeof *k);
    k->config = *config;
    register_kinds(k);
    start_wall(k);
    k->wall_minus_mono_us = k->wall.offset_us;
    census_init(&k->census);
    k->lane_count = 1 + config->more_lane_count;
    k->lanes = must_alloc(k->lane_count * sizeof *k->lanes);
    for (size_t i = 0; i < k->lane_count; i++)
        lane_init(k, &k->lanes[i], i ? config->more_lanes[i - 1] : config->store);
    for (int kind = 0; kind < LANE_KINDS; kind++) {
        for (int urgency = 0; urgency < URGENCIES; urgency++)
            waiting_init(&k->queue[kind][urgency]);
        list_init(&k->parked[kind]);
    }
    k->stats.storing = true;
    k->stats.leads = k->lanes[0].has_duties;
    pthread_mutex_init(&k->lock, NULL);
    pthread_mutex_init(&k->publish, NULL);
    struct err ignored; /* without a reader only the purge waits until one can be had (duties.c) */
    struct unit *u = &k->lanes[0].unit;
    if (config->store->ops->reader_open(config->store, &u->reader, &ignored) != ERR_OK)
        u->reader = NULL;
    if (!config->store->shared)
        regrant_leases(k);
    return k;
}

static void lane_free(struct lane *l)
{
    MUST(!l->thread_runs);
    if (l->unit.reader)
        l->unit.reader->ops->reader_close(l->unit.reader);
    unit_free_rows(&l->unit);
    arena_free(l->unit.arena);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->turn);
}

struct kernel *kernel_free(struct kernel *k)
{
    if (!k)
        return NULL;
    for (size_t i = 0; i < k->lane_count; i++)
        lane_free(&k->lanes[i]);
    ended_leases_free(&k->ended_leases);
    pthread_mutex_destroy(&k->lock);
    pthread_mutex_destroy(&k->publish);
    census_free(&k->census);
    free(k->lanes);
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

static bool one_sleeps(const struct kernel *k)
{
    for (size_t i = 0; i < k->lane_count; i++)
        if (k->lanes[i].sleeping)
            return true;
    return false;
}

/* All kinds together. One command alone always fits, however large. */
static bool has_room_for(const struct kernel *k, const struct command *c)
{
    const struct settings *s = k->config.settings;
    enum urgency u = urgency_of(c);
    size_t count = k->queue[FOR_ANY][u].count + k->queue[FOR_FIRST][u].count;
    int64_t bytes = k->queue[FOR_ANY][u].bytes + k->queue[FOR_FIRST][u].bytes;
    if (u == CRITICAL)
        return count < (size_t)s->connections_max;
    return !count || (count < (size_t)s->commands_max && bytes + (int64_t)c->bytes <= s->commands_max_bytes);
}

/* Gives the lane to be signalled, if one has to be. False: there is no room for it. */
static bool queue_up(struct kernel *k, struct command *c, bool wakes, struct lane **ret_woken)
{
    *ret_woken = NULL;
    pthread_mutex_lock(&k->lock);
    bool ended = k->ended, fits = has_room_for(k, c);
    if (!ended && fits) {
        c->number = ++k->numbers;
        waiting_add(&k->queue[kind_of(k, c)][urgency_of(c)], c);
        if (wakes)
            *ret_woken = kernel_wake_one(k, kind_of(k, c) == FOR_FIRST);
        else if (one_sleeps(k))
            atomic_store_explicit(&k->unannounced, true, memory_order_relaxed);
    }
    k->stats.refused += !ended && !fits;
    pthread_mutex_unlock(&k->lock);
    if (ended)
        refuse(k, c);
    if (ended || fits)
        return true;
    c->result = err_set(&c->err, ERR_EXEC_QUEUE_FULL, "too many requests wait already; nothing was done");
    c->err.retry_after_s = 1;
    return false;
}

bool kernel_post(struct kernel *k, struct command *c)
{
    struct lane *woken;
    bool taken = queue_up(k, c, true, &woken);
    if (woken)
        pthread_cond_signal(&woken->wake);
    return taken;
}

bool kernel_post_in_round(struct kernel *k, struct command *c)
{
    struct lane *none;
    return queue_up(k, c, false, &none);
}

void kernel_accept_clock(struct kernel *k)
{
    atomic_store(&k->accepts_wall, true);
}

void kernel_set_pressure(struct kernel *k, bool sheds_low_priority, bool defers_retries)
{
    atomic_store_explicit(&k->sheds_low_priority, sheds_low_priority, memory_order_relaxed);
    atomic_store_explicit(&k->defers_retries, defers_retries, memory_order_relaxed);
}

void kernel_stats(struct kernel *k, struct kernel_stats *ret_stats)
{
    pthread_mutex_lock(&k->lock);
    *ret_stats = k->stats;
    ret_stats->client_is_full =
        k->share_met_ms && clock_mono_ms(k->config.clock) - k->share_met_ms < SHARE_TOLD_MS;
    for (int kind = 0; kind < LANE_KINDS; kind++) {
        ret_stats->commands_waiting += (uint32_t)k->queue[kind][ORDINARY].count;
        ret_stats->commands_waiting_bytes += k->queue[kind][ORDINARY].bytes;
        ret_stats->critical_waiting += (uint32_t)k->queue[kind][CRITICAL].count;
    }
    pthread_mutex_unlock(&k->lock);
}
