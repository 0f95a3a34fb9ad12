/* One batch: take what waits, load, decide, commit, answer. And what is done between batches: retention, the
 * question whether a failed store can write again, counts for those who ask. */
#include "base/log.h"
#include "base/must.h"
#include "kernel/kernel_internal.h"

#include "base/banned.h"

enum {
    BATCH_COMMANDS_MAX = 2048,
    BATCH_BYTES_MAX = 8 << 20, /* of arena: a batch of large bodies ends early */
    BATCH_TIMERS_MAX = 1024,
    QUICK_COMMIT_US = 1000, /* longer than this, no HTTP thread waits for the disk by itself */
    FAILED_PAUSE_MS = 200,  /* after a failed commit, before timers try again */
    WORKER_MEMORY_MS = 600000,
    WORKER_COUNT_MS = 100,   /* counting walks all workers: not in every batch */
    WORKER_ALIVE_MS = 40000, /* the longest long poll and a bit */
    FAILURE_LOG_MS = 1000,
    PROBE_MS = 1000,
    HOUSEKEEPING_MS = 1000,
    HOUSEKEEPING_AGAIN_MS = 20, /* while there is more to do */
};

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
    list_prepend(&k->queue, rest);
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

/* Long polls: asked again while something can be claimed; ended when their time is over. They are answered
 * before the rest of the batch: a worker can begin while the client hears that its job was taken. */
static void decide_parked(struct kernel *k, struct command_list *decided)
{
    struct command_list still, waited;
    list_init(&still);
    list_init(&waited);
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
        list_add(done ? &waited : &still, c);
        c->parked = !done;
    }
    k->parked = still;
    if (!still.first)
        k->parked.tail = &k->parked.first;
    list_prepend(decided, &waited);
}

static void fail_all(struct command_list *decided, const struct err *err)
{
    for (struct command *c = decided->first; c; c = c->next) {
        c->err = *err;
        c->result = err->code;
    }
}

void kernel_log_failure(struct kernel *k, const char *what, const struct err *err)
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
    int64_t before = clock_mono_us(k->config.clock);
    enum err_code code = k->unit.load_err.code;
    if (code == ERR_OK)
        code = unit_commit(&k->unit, &err);
    else
        err = k->unit.load_err; /* what could not be read may have been half decided */
    if (code == ERR_OK) {
        if (k->unit.wrote) /* before anybody hears of it: kept snapshots are old from now on (api/reads.h) */
            atomic_fetch_add(&k->unit.store->commits, 1);
        if (k->config.watch.committed)
            k->config.watch.committed(k->config.watch.self, &k->unit);
    } else {
        unit_abort(&k->unit);
        fail_all(decided, &err);
        k->timers_paused_until_ms = k->unit.steady_ms + FAILED_PAUSE_MS;
        kernel_log_failure(k, "commit_failed", &err);
    }
    pthread_mutex_lock(&k->lock);
    k->stats.batches++;
    k->stats.commands += decided->count;
    k->stats.commit_errors += code != ERR_OK;
    if (code != ERR_OK || k->unit.wrote) /* an empty batch says nothing about the disk */
        k->stats.storing = code == ERR_OK;
    k->stats.last_commit_us = clock_mono_us(k->config.clock) - before;
    if (code != ERR_OK || k->unit.wrote)
        k->disk_is_quick = code == ERR_OK && k->stats.last_commit_us < QUICK_COMMIT_US;
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
    const struct kernel_watch *w = &k->config.watch;
    void (*end)(void *self) = k->is_lent && w->lent_batch_end ? w->lent_batch_end : w->batch_end;
    if (n && end)
        end(w->self);
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

void kernel_tell_fatal(struct kernel *k, enum err_code code, const struct err *err)
{
    if (code != ERR_STORE_FSYNC || !k->config.watch.fatal)
        return;
    k->lost = *err;
    if (!k->is_lent) /* a borrower still has to send its answers: the commit thread, woken by it, tells */
        k->config.watch.fatal(k->config.watch.self, &k->lost);
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
    kernel_tell_fatal(k, code, &err);
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
    kernel_tell_fatal(k, code, &why);
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
    kernel_tell_fatal(k, code, &why);
    return n;
}
