/* The work of a lane between batches: retention, probing whether a failed store can write again, the duties
 * of all nodes, counts for readers. */
#include "base/log.h"
#include "kernel/kernel_internal.h"

#include "base/banned.h"

enum {
    WORKER_MEMORY_MS = 600000,
    WORKER_COUNT_MS = 100,   /* counting walks all workers: not in every batch */
    WORKER_ALIVE_MS = 40000, /* the longest long poll and a bit */
    PROBE_MS = 1000,
    WATCH_MS = 1000,
    LEAD_MS = 1000,
    PARKED_LOOK_MS = 5000, /* a hint of another node may be lost: now and then every lane looks */
    HOUSEKEEPING_MS = 1000,
    HOUSEKEEPING_SHARED_MS = 10000, /* every look is a query: the store's duties tell of urgent work */
    HOUSEKEEPING_AGAIN_MS = 20,     /* while there is more to do */
};

/* After a failed commit an idle server would never learn that the disk is back: it asks once a second. */
static void probe(struct lane *l)
{
    struct kernel *k = l->kernel;
    struct err err;
    pthread_mutex_lock(&k->lock);
    bool storing = k->stats.storing;
    pthread_mutex_unlock(&k->lock);
    if (storing || steady_now(k) < l->probe_ms)
        return;
    l->probe_ms = steady_now(k) + PROBE_MS;
    enum err_code code = l->unit.store->ops->probe(l->unit.store, &err);
    pthread_mutex_lock(&k->lock);
    k->stats.storing = code == ERR_OK;
    pthread_mutex_unlock(&k->lock);
    lane_tell_fatal(l, code, &err);
}

/* A commit into a removed file would be acknowledged and lost: the store looks once a
 * second whether it is still there. When it is again, the probe finds out. */
static void watch(struct lane *l)
{
    struct kernel *k = l->kernel;
    struct store *s = l->unit.store;
    struct err err;
    if (!s->ops->watch || l != &k->lanes[0] || steady_now(k) < l->watch_ms)
        return;
    l->watch_ms = steady_now(k) + WATCH_MS;
    if (s->ops->watch(s, &err) == ERR_OK)
        return;
    pthread_mutex_lock(&k->lock);
    k->stats.storing = false;
    pthread_mutex_unlock(&k->lock);
    kernel_log_failure(k, "store_files_gone", &err);
}

/* One that could not be had is tried again: without it nothing would ever be purged. */
static bool has_reader(struct lane *l)
{
    struct store *s = l->unit.store;
    struct err err;
    if (l->unit.reader || s->ops->reader_open(s, &l->unit.reader, &err) == ERR_OK)
        return true;
    l->unit.reader = NULL;
    l->housekeeping_ms = l->saving_ms = steady_now(l->kernel) + HOUSEKEEPING_MS;
    return false;
}

static void plan_next(const struct lane *l, bool done, bool again, int64_t later_ms, int64_t *ret_ms)
{
    if (done)
        *ret_ms = l->unit.steady_ms + (again ? HOUSEKEEPING_AGAIN_MS : later_ms);
}

/* A batch of its own: a failed read or write in it fails no command. A conflict is for the next time. */
static void housekeep(struct lane *l)
{
    struct kernel *k = l->kernel;
    const struct kernel_config *c = &k->config;
    int64_t now = steady_now(k);
    bool keeps = c->housekeep && l->has_duties && now >= l->housekeeping_ms;
    bool saves = c->save && l == &k->lanes[0] && now >= l->saving_ms;
    if ((!keeps && !saves) || !has_reader(l))
        return;
    struct command_list none;
    struct err why;
    list_init(&none);
    lane_start_unit(l);
    bool more_to_save = saves && c->save(c->housekeep_self, &l->unit);
    bool more = keeps && c->housekeep(c->housekeep_self, &l->unit);
    enum err_code code = lane_commit(l, &none, &why);
    if (saves && c->saved)
        c->saved(c->housekeep_self, code == ERR_OK);
    if (is_shared(l))
        store_forget(l->unit.store);
    plan_next(l, saves, more_to_save && code == ERR_OK, HOUSEKEEPING_MS, &l->saving_ms);
    bool can_wait = is_shared(l) && code == ERR_OK;
    plan_next(l, keeps, more && code == ERR_OK, can_wait ? HOUSEKEEPING_SHARED_MS : HOUSEKEEPING_MS,
              &l->housekeeping_ms);
    if (keeps)
        l->housekept_ms = l->unit.steady_ms;
    lane_tell_fatal(l, code, &why);
}

void duties_housekeep_soon(struct lane *l)
{
    int64_t soon = l->housekept_ms + HOUSEKEEPING_AGAIN_MS;
    if (l->housekeeping_ms > soon)
        l->housekeeping_ms = soon;
}

static void take_duties(struct lane *l, const struct store_duties *duties)
{
    l->has_duties = duties->leads;
    if (!duties->leads)
        return;
    l->led_ms = steady_now(l->kernel);
    l->next_due_ms = duties->next_due_ms;
    l->next_lapse_ms = duties->next_lapse_ms;
    if (duties->inbox)
        duties_housekeep_soon(l);
}

/* Asks the store who has the duties. A store with one writer has no such question. */
static void lead(struct lane *l)
{
    struct kernel *k = l->kernel;
    struct store *s = l->unit.store;
    bool lost = l->has_duties && !s->leads; /* with the connection: due timers wait for the answer */
    if (!s->ops->lead || l != &k->lanes[0] || (steady_now(k) < l->lead_ms && !lost))
        return;
    struct err err;
    struct store_duties duties = {0};
    struct census_count start;
    bool led = l->has_duties;
    int64_t now = steady_now(k);
    l->lead_ms = now + LEAD_MS;
    census_count_start(&k->census, &start);
    if (s->ops->lead(s, &duties, &err) != ERR_OK) {
        duties = (struct store_duties){0};
        kernel_log_failure(k, "duties_unknown", &err);
    } else {
        census_counted(&k->census, &start, s->jobs_by_state);
    }
    take_duties(l, &duties);
    if (duties.leads != led)
        log_line(LOG_INFO, duties.leads ? "duties_taken" : "duties_lost", NULL);
    if (duties.given_anew)
        log_line(LOG_INFO, "leases_given_anew", "count", LOG_INT(duties.given_anew), NULL);
    pthread_mutex_lock(&k->lock);
    k->stats.leads = duties.leads;
    if (now - l->parked_looked_ms >= PARKED_LOOK_MS) {
        l->parked_looked_ms = now;
        parked_look(k, ALL_QUEUES);
    }
    pthread_mutex_unlock(&k->lock);
}

void duties_before_batch(struct lane *l)
{
    watch(l);
    probe(l);
    lead(l);
    housekeep(l);
}

static void sweep_workers(struct lane *l)
{
    if (l->unit.steady_ms - l->workers_swept_ms < WORKER_MEMORY_MS / 10)
        return;
    l->workers_swept_ms = l->unit.steady_ms;
    live_forget_workers(l->unit.store->live, l->unit.steady_ms - WORKER_MEMORY_MS);
}

/* Jobs by phase: those in memory, or all jobs of the shared store. */
static void count_jobs(struct kernel *k, const struct store *s, struct kernel_stats *stats)
{
    uint32_t phases[TASK_ENDED + 1] = {0}, all = 0;
    for (int i = 0; !s->shared && i < TASK_ENDED; i++)
        phases[i] = live_phase_count(s->live, (enum task_phase)i);
    for (int i = 0; s->shared && i < JOB_STATE_COUNT; i++) {
        if (!job_state_is_final((enum job_state)i))
            phases[job_state_phase((enum job_state)i)] +=
                (uint32_t)census_jobs(&k->census, (enum job_state)i);
    }
    for (int i = 0; i < TASK_ENDED; i++)
        all += phases[i];
    stats->live = all;
    stats->queued = phases[TASK_READY];
    stats->waiting = phases[TASK_WAITING];
    stats->assigned = phases[TASK_LEASED];
    stats->running = phases[TASK_RUNNING];
}

static void refresh_stats(struct lane *l)
{
    struct kernel *k = l->kernel;
    struct store *s = l->unit.store;
    uint32_t workers = l->workers; /* ours to write, under the lock: other lanes read it */
    if (l->unit.steady_ms - l->workers_counted_ms >= WORKER_COUNT_MS) {
        l->workers_counted_ms = l->unit.steady_ms;
        workers = live_worker_count(s->live, l->unit.steady_ms - WORKER_ALIVE_MS);
    }
    pthread_mutex_lock(&k->lock);
    l->workers = workers;
    if (s->shared || l == &k->lanes[0])
        count_jobs(k, s, &k->stats);
    if (l == &k->lanes[0]) /* of a shared store it alone asks */
        k->stats.deliveries = s->shared ? s->deliveries : (int64_t)live_deliveries(s->live);
    k->stats.workers = l->workers; /* a worker is known to the lanes it met: no sum */
    for (size_t i = 0; i < k->lane_count; i++)
        if (k->lanes[i].workers > k->stats.workers)
            k->stats.workers = k->lanes[i].workers;
    k->stats.wal_pages = s->wal_pages;
    if (l->unit.met_share)
        k->share_met_ms = clock_mono_ms(k->config.clock);
    if (l == &k->lanes[0])
        k->stats.clock_in_doubt = !l->unit.may_delete;
    pthread_mutex_unlock(&k->lock);
}

void duties_after_batch(struct lane *l)
{
    sweep_workers(l);
    refresh_stats(l);
}
