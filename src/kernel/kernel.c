#include "kernel/kernel.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/must.h"
#include "kernel/kernel_internal.h"
#include "kernel/task_owner.h"

#include "base/banned.h"

enum {
    BATCH_COMMANDS_MAX = 2048,
    BATCH_BYTES_MAX = 8 << 20, /* of arena: a batch of large bodies ends early */
    BATCH_TIMERS_MAX = 1024,
    ARENA_FIRST_BYTES = 1 << 18,
    LOOK_AGAIN_MS = 500,   /* longest sleep while timers wait: a clock that was set is noticed */
    FAILED_PAUSE_MS = 200, /* after a failed commit, before timers try again */
    WORKER_MEMORY_MS = 600000,
    WORKER_COUNT_MS = 100,   /* counting walks all workers: not in every batch */
    WORKER_ALIVE_MS = 40000, /* the longest long poll and a bit */
    FAILURE_LOG_MS = 1000,
    PROBE_MS = 1000,
    HOUSEKEEPING_MS = 1000,
    HOUSEKEEPING_AGAIN_MS = 20, /* while there is more to do */
};

struct command_list {
    struct command *first, **tail;
    size_t count;
};

struct kernel {
    struct unit unit;
    struct kernel_config config;
    struct uuid_v7_source ids;
    struct ghosts ghosts;
    int64_t wall_minus_mono_us; /* fixed at start: steady = mono + this */
    struct command_list parked;
    int64_t timers_paused_until_ms;
    int64_t probe_ms;
    int64_t failure_logged_ms; /* a full disk fails every batch: one line a second tells it */
    int64_t workers_swept_ms, workers_counted_ms, housekeeping_ms;
    bool ending; /* the commit thread's own view of `stopping`, taken with each batch */

    pthread_t thread;
    bool thread_runs;
    pthread_mutex_t lock; /* guards queue, stopping and stats */
    pthread_cond_t wake;
    struct command_list queue;
    bool stopping, sleeping;
    struct kernel_stats stats;
};

static void list_init(struct command_list *l)
{
    *l = (struct command_list){.tail = &l->first};
}

static void list_add(struct command_list *l, struct command *c)
{
    c->next = NULL;
    *l->tail = c;
    l->tail = &c->next;
    l->count++;
}

static struct command *list_take(struct command_list *l)
{
    struct command *c = l->first;
    if (!c)
        return NULL;
    l->first = c->next;
    if (!l->first)
        l->tail = &l->first;
    l->count--;
    return c;
}

void task_leave_ghost(struct unit *u, const struct task *t)
{
    ghosts_add(unit_ghosts(u), t->row.id, t->row.token, t->row.client, t->row.lease_ms);
}

struct ghosts *unit_ghosts(struct unit *u)
{
    return &CONTAINER_OF(u, struct kernel, unit)->ghosts;
}

static int64_t steady_now_us(const struct kernel *k)
{
    return clock_mono_us(k->config.clock) + k->wall_minus_mono_us;
}

static int64_t steady_now(const struct kernel *k)
{
    return steady_now_us(k) / 1000;
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
    struct placing p = {k, must_alloc((live_count(live) + 1) * sizeof *p.tasks), 0};
    live_each(live, gather, &p); /* gathered first: placing changes the table that is walked */
    for (size_t i = 0; i < p.count; i++)
        live_place(live, p.tasks[i], clock_wall_ms(k->config.clock));
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
                            .ids = &k->ids};
    list_init(&k->queue);
    list_init(&k->parked);
    k->stats.storing = true;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&k->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&k->lock, NULL);
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
    free(k);
    return NULL;
}

void kernel_post(struct kernel *k, struct command *c)
{
    pthread_mutex_lock(&k->lock);
    list_add(&k->queue, c);
    bool wake = k->sleeping;
    k->sleeping = false;
    pthread_mutex_unlock(&k->lock);
    if (wake)
        pthread_cond_signal(&k->wake);
}

/* --- one batch --------------------------------------------------------------------------------- */

static void take_batch(struct kernel *k, struct command_list *batch)
{
    pthread_mutex_lock(&k->lock);
    k->ending = k->stopping;
    struct command *c;
    while (batch->count < BATCH_COMMANDS_MAX && (c = list_take(&k->queue)))
        list_add(batch, c);
    pthread_mutex_unlock(&k->lock);
}

/* What did not fit into this batch goes back to the front, in order. */
static void put_back(struct kernel *k, struct command_list *rest)
{
    pthread_mutex_lock(&k->lock);
    if (rest->count) {
        *rest->tail = k->queue.first;
        if (!k->queue.first)
            k->queue.tail = rest->tail;
        k->queue.first = rest->first;
        k->queue.count += rest->count;
    }
    pthread_mutex_unlock(&k->lock);
}

static void decide_one(struct kernel *k, struct command *c)
{
    c->err = (struct err){.code = ERR_OK};
    c->park_until_ms = 0;
    if (k->unit.load_err.code != ERR_OK) {
        c->err = k->unit.load_err;
        c->result = c->err.code;
        return;
    }
    c->result = c->type->decide(&k->unit, c, &c->err);
}

/* Loads and decides; commands that park move to the parked list, the rest to `decided`. */
static void decide_batch(struct kernel *k, struct command_list *batch, struct command_list *decided)
{
    struct command_list loaded;
    list_init(&loaded);
    struct command *c;
    while (batch->first && arena_bytes(k->unit.arena) < BATCH_BYTES_MAX) {
        c = list_take(batch);
        if (c->type->load)
            c->type->load(&k->unit, c);
        list_add(&loaded, c);
    }
    while ((c = list_take(&loaded))) {
        decide_one(k, c);
        list_add(c->park_until_ms ? &k->parked : decided, c);
        c->parked = c->park_until_ms != 0;
    }
}

/* Long polls: asked again while something can be claimed; ended when their time is over. */
static void decide_parked(struct kernel *k, struct command_list *decided)
{
    struct command_list still;
    list_init(&still);
    bool ready = live_has_ready(k->unit.store->live);
    struct command *c;
    while ((c = list_take(&k->parked))) {
        bool over = k->unit.steady_ms >= c->park_until_ms || k->ending;
        bool gone = c->abandoned && c->abandoned(c);
        if (!gone && !over && ready) {
            decide_one(k, c);
            ready = live_has_ready(k->unit.store->live);
        }
        bool done = gone || over || !c->park_until_ms;
        list_add(done ? decided : &still, c);
        c->parked = !done;
    }
    k->parked = still;
    if (!still.first)
        k->parked.tail = &k->parked.first;
}

static void fail_all(struct command_list *decided, const struct err *err)
{
    for (struct command *c = decided->first; c; c = c->next) {
        c->err = *err;
        c->result = err->code;
    }
}

static void log_failure(struct kernel *k, const char *what, const struct err *err)
{
    if (k->unit.steady_ms - k->failure_logged_ms < FAILURE_LOG_MS)
        return;
    k->failure_logged_ms = k->unit.steady_ms;
    log_line(LOG_ERROR, what, "error_code", LOG_TEXT(err_wire(err->code)), "error_message",
             LOG_TEXT(err->detail), NULL);
}

static enum err_code commit(struct kernel *k, struct command_list *decided, struct err *ret_err)
{
    struct err err = {.code = ERR_OK};
    int64_t before = clock_wall_us(k->config.clock);
    enum err_code code = k->unit.load_err.code;
    if (code == ERR_OK)
        code = unit_commit(&k->unit, &err);
    else
        err = k->unit.load_err; /* what could not be read may have been half decided */
    if (code == ERR_OK) {
        if (k->config.watch.committed)
            k->config.watch.committed(k->config.watch.self, &k->unit);
    } else {
        unit_abort(&k->unit);
        fail_all(decided, &err);
        k->timers_paused_until_ms = k->unit.steady_ms + FAILED_PAUSE_MS;
        log_failure(k, "commit_failed", &err);
    }
    pthread_mutex_lock(&k->lock);
    k->stats.batches++;
    k->stats.commands += decided->count;
    k->stats.commit_errors += code != ERR_OK;
    if (code != ERR_OK || k->unit.wrote) /* an empty batch says nothing about the disk */
        k->stats.storing = code == ERR_OK;
    k->stats.last_commit_us = clock_wall_us(k->config.clock) - before;
    pthread_mutex_unlock(&k->lock);
    *ret_err = err;
    return code;
}

static size_t answer(struct kernel *k, struct command_list *decided)
{
    size_t n = decided->count;
    struct command *c;
    while ((c = list_take(decided)))
        c->done(c);
    if (n && k->config.watch.batch_end)
        k->config.watch.batch_end(k->config.watch.self);
    return n;
}

static void refresh_stats(struct kernel *k)
{
    struct live *l = k->unit.store->live;
    bool count_workers = k->unit.steady_ms - k->workers_counted_ms >= WORKER_COUNT_MS;
    uint32_t workers = 0;
    if (count_workers) {
        k->workers_counted_ms = k->unit.steady_ms;
        workers = live_worker_count(l, k->unit.steady_ms - WORKER_ALIVE_MS);
    }
    pthread_mutex_lock(&k->lock);
    k->stats.live = live_count(l);
    k->stats.queued = live_phase_count(l, TASK_READY);
    k->stats.waiting = live_phase_count(l, TASK_WAITING);
    k->stats.assigned = live_phase_count(l, TASK_LEASED);
    k->stats.running = live_phase_count(l, TASK_RUNNING);
    if (count_workers)
        k->stats.workers = workers;
    k->stats.wal_pages = k->unit.store->wal_pages;
    pthread_mutex_unlock(&k->lock);
}

static void sweep_workers(struct kernel *k)
{
    if (k->unit.steady_ms - k->workers_swept_ms < WORKER_MEMORY_MS / 10)
        return;
    k->workers_swept_ms = k->unit.steady_ms;
    live_forget_workers(k->unit.store->live, k->unit.steady_ms - WORKER_MEMORY_MS);
}

static void start_unit(struct kernel *k)
{
    unit_start(&k->unit);
    k->unit.now_us = clock_wall_us(k->config.clock);
    k->unit.now_ms = k->unit.now_us / 1000;
    int64_t steady_us = steady_now_us(k);
    k->unit.steady_ms = steady_us / 1000;
    k->unit.steady_up_ms = (steady_us + 999) / 1000;
}

static void tell_fatal(struct kernel *k, enum err_code code, const struct err *err)
{
    if (code == ERR_STORE_FSYNC && k->config.watch.fatal)
        k->config.watch.fatal(k->config.watch.self, err);
}

/* After a failed commit an idle server would never learn that the disk is back: it asks once a second. */
static void probe(struct kernel *k)
{
    struct err err;
    if (k->stats.storing || steady_now(k) < k->probe_ms)
        return;
    k->probe_ms = steady_now(k) + PROBE_MS;
    enum err_code code = k->config.store->ops->probe(k->config.store, &err);
    pthread_mutex_lock(&k->lock);
    k->stats.storing = code == ERR_OK;
    pthread_mutex_unlock(&k->lock);
    tell_fatal(k, code, &err);
}

/* A batch of its own: what it cannot read or write fails no command. */
static void housekeep(struct kernel *k)
{
    if (!k->config.housekeep || !k->unit.reader || steady_now(k) < k->housekeeping_ms)
        return;
    struct command_list none;
    struct err why;
    list_init(&none);
    start_unit(k);
    bool more = k->config.housekeep(k->config.housekeep_self, &k->unit);
    enum err_code code = commit(k, &none, &why);
    more = more && code == ERR_OK;
    k->housekeeping_ms = k->unit.steady_ms + (more ? HOUSEKEEPING_AGAIN_MS : HOUSEKEEPING_MS);
    tell_fatal(k, code, &why);
}

size_t kernel_step(struct kernel *k)
{
    struct command_list batch, decided;
    struct err why;
    list_init(&batch);
    list_init(&decided);
    probe(k);
    housekeep(k);
    take_batch(k, &batch);
    start_unit(k);
    ghosts_forget(&k->ghosts, k->unit.steady_ms);
    if (k->unit.steady_ms >= k->timers_paused_until_ms)
        timers_decide(&k->unit, BATCH_TIMERS_MAX);
    decide_batch(k, &batch, &decided);
    put_back(k, &batch);
    if (k->parked.count)
        decide_parked(k, &decided);
    enum err_code code = commit(k, &decided, &why);
    sweep_workers(k);
    refresh_stats(k);
    size_t n = answer(k, &decided);
    tell_fatal(k, code, &why);
    return n;
}

/* --- the thread -------------------------------------------------------------------------------- */

/* How long nothing will happen by itself. */
static int64_t idle_ms(const struct kernel *k)
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

static void tend(struct kernel *k)
{
    struct err err;
    enum err_code code = k->config.store->ops->tend(k->config.store, queue_is_empty(k), &err);
    if (code == ERR_OK)
        return;
    log_failure(k, "checkpoint_failed", &err);
    tell_fatal(k, code, &err);
}

static void *commit_thread(void *arg)
{
    struct kernel *k = arg;
    while (wait_for_work(k, idle_ms(k))) {
        kernel_step(k);
        tend(k);
    }
    kernel_step(k); /* answers what is parked */
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
    pthread_mutex_lock(&k->lock);
    k->stopping = true;
    pthread_mutex_unlock(&k->lock);
    pthread_cond_signal(&k->wake);
    pthread_join(k->thread, NULL);
    k->thread_runs = false;
}

void kernel_stats(struct kernel *k, struct kernel_stats *ret_stats)
{
    pthread_mutex_lock(&k->lock);
    *ret_stats = k->stats;
    pthread_mutex_unlock(&k->lock);
}
