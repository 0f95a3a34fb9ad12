#include "api/jobs/jobs_contract.h"

#include <stdlib.h>

#include "api/worker/encode_delivery.h"
#include "base/must.h"
#include "jobs/deliver.h"
#include "jobs/job_move.h"
#include "store/verify_rules.h"

#include "base/banned.h"

enum { PURGE_WAITS_MS = 60000 };

/* --- its state ------------------------------------------------------------------------------------- */

static void body_fingerprint(const struct json *body, uint8_t out[16])
{
    call_body_fingerprint(body, "idempotency_key", out);
}

/* The parts of bodies that handlers check one by one. */
static void find_parts(struct jobs_api *j, const struct route_bodies *bodies)
{
    j->submit_schema = route_bodies_schema(bodies, "jobs", "#/components/schemas/SubmitJob");
#define X(name, schema)                                                                                      \
    j->worker_forms[WORKER_FORM_##name] =                                                                    \
        route_bodies_schema(bodies, "worker", "#/components/schemas/" schema);
    WORKER_FORMS(X)
#undef X
}

static enum err_code jobs_open(struct api *a, void **ret_self, struct err *err)
{
    const struct settings *s = a->config.settings;
    struct jobs_api *j = must_alloc(sizeof *j);
    (void)err;
    j->api = a;
    j->queue_flows = queue_flows_new();
    j->queue_metrics = queue_metrics_new((size_t)s->metrics_queues_max);
    j->recent_jobs = recent_jobs_new(RECENT_JOBS_BYTES, RECENT_JOBS_MAX);
    j->logs_transitions = settings_is_on(s->log_transitions);
    j->inbox.fingerprint = body_fingerprint;
    j->purge.keys_expiring = -1;
    find_parts(j, a->bodies);
    *ret_self = j;
    return ERR_OK;
}

static void jobs_close(void *self)
{
    struct jobs_api *j = self;
    queue_flows_free(j->queue_flows);
    queue_metrics_free(j->queue_metrics);
    recent_jobs_free(j->recent_jobs);
    free(j);
}

/* --- other nodes, housekeeping --------------------------------------------------------------------- */

static void hinted(void *self, unsigned hints)
{
    const struct jobs_api *j = self;
    if (hints & HINT_KEYS)
        api_keys_changed(j->api);
}

/* Under pressure the purge waits, but not so long that the disk fills. */
static bool housekeep(void *self, struct unit *u)
{
    struct jobs_api *j = self;
    bool more = inbox_drain(&j->inbox, u);
    if (u->defers_retries && u->steady_ms - j->purged_ms < PURGE_WAITS_MS)
        return more;
    j->purged_ms = u->steady_ms;
    return purge_housekeep(&j->purge, u) || more;
}

static bool save(void *self, struct unit *u)
{
    return queue_flows_save(((struct jobs_api *)self)->queue_flows, u);
}

static void saved(void *self, bool stored)
{
    queue_flows_saved(((struct jobs_api *)self)->queue_flows, stored);
}

/* --- figures --------------------------------------------------------------------------------------- */

static void measure(void *self, struct overload_queues *q)
{
    const struct jobs_api *j = self;
    if (!settings_store_is_postgres(j->api->config.settings))
        return; /* no other process writes the inbox */
    q->inbox = j->inbox.found;
    q->inbox_capacity = INBOX_ROWS_A_TURN;
}

/* What cannot be read now is shown as it was read last. */
static void write_queue_metrics(const struct jobs_api *j, struct call *c)
{
    struct api *a = c->api;
    int64_t now_ms = c->x->received_us / 1000, told_ms = queue_metrics_told_ms(j->queue_metrics);
    bool is_shared = settings_store_is_postgres(a->config.settings);
    bool is_fresh = is_shared && now_ms >= told_ms && now_ms - told_ms < QUEUE_GAUGES_MS;
    struct err err;
    struct queue_views views;
    struct reader *r = !atomic_load(&a->opened) || is_fresh ? NULL : api_read_begin(a, &err);
    if (r && queue_views_read(j->queue_flows, r, c->x->arena, 0, STR_ABSENT, now_ms, &views, &err) == ERR_OK)
        queue_metrics_tell(j->queue_metrics, &views, now_ms);
    else if (r)
        reads_end(a->reads);
    queue_metrics_write(j->queue_metrics, now_ms, &c->x->reply_body);
}

static void write_metrics(void *self, struct call *c, const struct kernel_stats *k)
{
    const struct jobs_api *j = self;
    const struct metrics_of_jobs around = {.inbox_taken = j->inbox.taken,
                                           .inbox_refused = j->inbox.refused,
                                           .keys_expiring = j->purge.keys_expiring};
    metrics_write_jobs(j->api->metrics, k, &around, &c->x->reply_body);
    write_queue_metrics(j, c);
}

/* --- the descriptor -------------------------------------------------------------------------------- */

#define POINTER(row, ...) &table_##row,
static const struct table *const jobs_tables[] = {CLIENT_TABLES(POINTER) JOB_TABLES(POINTER) NULL};
#undef POINTER
static const struct contract_task jobs_tasks[] = {
    {.owner = &job_task_owner},
    {&delivery_task_owner, encode_delivery_task},
    {.owner = NULL},
};
static const char *const jobs_openapi[] = {"jobs", "worker", NULL};

const struct contract jobs_contract = {
    .name = "jobs",
    .tables = jobs_tables,
    .verify = &verify_jobs,
    .tasks = jobs_tasks,
    .openapi = jobs_openapi,
    .open = jobs_open,
    .close = jobs_close,
    .committed = jobs_committed,
    .hinted = hinted,
    .housekeep = housekeep,
    .save = save,
    .saved = saved,
    .measure = measure,
    .write_metrics = write_metrics,
};
