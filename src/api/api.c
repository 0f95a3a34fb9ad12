/* Set-up: routes, contracts; the work after a commit, and at the end of a loop's round. */
#include "api/api.h"

#include <stdlib.h>

#include "api/engine/audit.h"
#include "api/engine/policy_point.h"
#include "api/engine/signal_limits.h"
#include "base/log.h"
#include "base/must.h"
#include "jobs/deliver.h"
#include "jobs/inbox.h"
#include "jobs/job_notices.h"
#include "lifecycle/work_kinds.h"
#include "schema/embedded.h"
#include "runtime/event_names.h"
#include "runtime/partition.h"

#include "base/banned.h"

enum { RECENT_READY_MAX = 1000 }; /* ready tasks up to which new jobs are remembered for their claim */

/* The parts of bodies that handlers check one by one. */
static void find_parts(struct api *a)
{
    a->submit_schema = contracts_schema(a->contracts, "jobs", "#/components/schemas/SubmitJob");
#define X(name, schema)                                                                                      \
    a->worker_forms[WORKER_FORM_##name] =                                                                    \
        contracts_schema(a->contracts, "worker", "#/components/schemas/" schema);
    WORKER_FORMS(X)
#undef X
}

enum err_code api_new(const struct api_config *config, struct api **ret_api, struct err *err)
{
    struct api *a = must_alloc(sizeof *a);
    a->config = *config;
    a->router = router_new(api_routes, api_route_count);
    a->key_uses = key_uses_new();
    a->logs_transitions = settings_is_on(config->settings->log_transitions);
    a->is_dev = strcmp(config->settings->environment, "dev") == 0;
    a->auth = auth_new(config->settings, a->key_uses);
    a->rate_limit = rate_limit_new(config->settings);
    a->address_limits = address_limits_new(config->settings, config->clock);
    a->metrics = metrics_new(api_routes, api_route_count);
    a->overload = overload_new(config->settings, config->clock, a->metrics);
    a->signal_limits = signal_limits_new(config->settings);
    a->traces = traces_new(config->clock, config->settings->traces_sample_ratio);
    a->client_ids = client_ids_new();
    a->followers = followers_new();
    a->queue_flows = queue_flows_new();
    a->queue_metrics = queue_metrics_new((size_t)config->settings->metrics_queues_max);
    a->topology = topology_new(config->topology_path);
    a->recent_jobs = recent_jobs_new(RECENT_JOBS_BYTES, RECENT_JOBS_MAX);
    a->keys = key_ring_new(&(struct key_place){.data_dir = config->settings->data_dir,
                                               .environment = config->settings->environment});
    if (contracts_new(&a->contracts, err) != ERR_OK ||
        signal_schemas_new(embedded_signal_schemas, &a->signal_schemas, err) != ERR_OK ||
        token_auth_new(config->settings, a->keys, clock_wall_ms(config->clock), &a->token_auth, err) !=
            ERR_OK) {
        api_free(a);
        return err->code;
    }
    find_parts(a);
    a->policy_point = policy_point_new(a);
    *ret_api = a;
    return ERR_OK;
}

void api_open(struct api *a, struct store *store, struct kernel *kernel)
{
    a->reads = reads_new(store);
    a->kernel = kernel;
    atomic_store(&a->opened, true);
}

void api_stop(struct api *a)
{
    if (a)
        policy_point_stop(a->policy_point);
}

struct api *api_free(struct api *a)
{
    if (!a)
        return NULL;
    reads_free(a->reads);
    recent_jobs_free(a->recent_jobs);
    token_auth_free(a->token_auth);
    key_ring_free(a->keys);
    contracts_free(a->contracts);
    signal_schemas_free(a->signal_schemas);
    router_free(a->router);
    auth_free(a->auth);
    rate_limit_free(a->rate_limit);
    key_uses_free(a->key_uses);
    address_limits_free(a->address_limits);
    signal_limits_free(a->signal_limits);
    policy_point_free(a->policy_point);
    overload_free(a->overload);
    metrics_free(a->metrics);
    traces_free(a->traces);
    client_ids_free(a->client_ids);
    followers_free(a->followers);
    queue_flows_free(a->queue_flows);
    queue_metrics_free(a->queue_metrics);
    topology_free(a->topology);
    free(a);
    return NULL;
}

/* --- after a commit ------------------------------------------------------------------------------ */

static enum log_level transition_level(const struct api *a, const struct job_notice *n)
{
    return n->event.next == JOB_FAILED || a->logs_transitions ? LOG_INFO : LOG_DEBUG;
}

static void log_transition(struct api *a, const struct job_notice *n)
{
    const struct event *e = &n->event;
    struct uuid id = uuid_from_v7(e->job, n->low), client;
    char text[UUID_TEXT_LEN + 1], client_id[UUID_TEXT_LEN + 1];
    uuid_text(&id, text);
    bool known = client_ids_find(a->client_ids, n->client, &client);
    if (known)
        uuid_text(&client, client_id);
    log_line(transition_level(a, n), job_event_text(e->event), "job_id", LOG_TEXT(text), "client_id",
             LOG_TEXT(known ? client_id : NULL), "client", LOG_INT(n->client), "current_state",
             LOG_TEXT(job_state_text(e->prev)), "next_state", LOG_TEXT(job_state_text(e->next)), "attempt",
             LOG_INT(e->attempt), "scenario", LOG_TEXT(work_kind_text((enum work_kind)e->kind)), "worker_id",
             LOG_STR(n->worker), "detail", LOG_STR(e->extra.len ? e->extra : STR_ABSENT), NULL);
}

/* No call is told that deliveries have ended: the log, the counter and the client's other webhooks
 * do. */
static void tell_disabled(struct api *a, const struct webhook_row *h)
{
    enum webhook_fault why = (enum webhook_fault)h->disabled_why;
    struct uuid id = uuid_from_v7(h->id, (uint64_t)h->low), client;
    char text[UUID_TEXT_LEN + 1], client_id[UUID_TEXT_LEN + 1];
    bool known = client_ids_find(a->client_ids, h->client, &client);
    uuid_text(&id, text);
    if (known)
        uuid_text(&client, client_id);
    metrics_webhook_disabled(a->metrics, why);
    log_line(LOG_WARN, "webhook_disabled", "webhook_id", LOG_TEXT(text), "client_id",
             LOG_TEXT(known ? client_id : NULL), "client", LOG_INT(h->client), "reason",
             LOG_TEXT(webhook_fault_text(why)), "failing_ms", LOG_INT(h->disabled_ms - h->failing_since_ms),
             NULL);
}

struct remembering {
    struct recent_jobs *jobs;
    const struct live *live;
    bool all;
};

static void remember_job(const void *row, void *arg)
{
    const struct remembering *r = arg;
    const struct task *t = r->all ? NULL : live_find(r->live, ((const struct job_row *)row)->id);
    if (r->all || (t && t->phase == TASK_LEASED))
        recent_jobs_add(r->jobs, row);
}

/* Behind a backlog a job would be forgotten before a worker gets to it, and the copy costs this thread; but
 * one whose queue is empty is claimed by a waiting worker in the commit that stores it. */
static void remember_jobs(struct api *a, const struct unit *u)
{
    const struct live *live = u->store->live;
    struct remembering r = {a->recent_jobs, live, live_phase_count(live, TASK_READY) <= RECENT_READY_MAX};
    if (r.all || live_phase_count(live, TASK_LEASED))
        unit_each_inserted(u, &table_job_row, remember_job, &r);
}

struct enqueued {
    const struct live *live;
    uint32_t partitions;
};

/* The instance is the receiver as the store numbers it (`target`): a webhook's, or that of a callback's
 * origin, which is negative. */
static void log_enqueued(const void *row, void *arg)
{
    const struct delivery_row *d = row;
    const struct enqueued *e = arg;
    const struct task *s = live_find(e->live, deliver_stream_id(d->webhook, d->job));
    struct str slot = s ? s->row.queue : STR("");
    struct uuid id = uuid_from_v7(d->id, (uint64_t)d->low);
    char id_text[UUID_TEXT_LEN + 1];
    int64_t number = 0;
    (void)str_cut(&slot, '.'); /* ~deliver.N */
    (void)str_to_int(slot, 0, PARTITION_SLOTS - 1, &number);
    uuid_text(&id, id_text);
    log_line(LOG_DEBUG, EVENT_OUTBOUND_ENQUEUED, "instance_id", LOG_INT(s ? s->row.target : d->webhook),
             "partition", LOG_INT(number % e->partitions), "operation",
             LOG_TEXT(d->webhook ? "webhook" : "callback"), "message_id", LOG_TEXT(id_text), NULL);
}

static void log_all_enqueued(struct api *a, const struct unit *u)
{
    struct partition_counts counts;
    struct err err;
    const struct settings *s = a->config.settings;
    if (partition_count_all(s, partition_cpus(s), &counts, &err) != ERR_OK)
        return; /* the program does not start like that */
    struct enqueued e = {u->store->live, counts.of[PARTITION_OF_OUTBOUND]};
    unit_each_inserted(u, &table_delivery_row, log_enqueued, &e);
}

/* How long they took from the first request of their batch: never less than it was. */
static void tell_deliveries(struct api *a, const struct unit *u)
{
    uint32_t count = u->inserted[TABLE_NUMBER_delivery_row];
    if (!count)
        return;
    int64_t us = clock_wall_us(a->config.clock) - (u->oldest_us ? u->oldest_us : u->now_us);
    for (uint32_t i = 0; i < count; i++)
        overload_sample(a->overload, SLO_ENQUEUE, us);
    if (log_enabled(LOG_DEBUG))
        log_all_enqueued(a, u);
}

/* Streams look whether they were opened with one of those. */
static void keys_changed(struct api *a)
{
    auth_keys_changed(a->auth);
    if (a->server)
        http_server_tick(a->server);
}

static void tell_keys(struct api *a, const struct unit *u)
{
    for (size_t i = 0; i < u->notices.count; i++)
        if (u->notices.list[i].kind == &key_change_notices) {
            keys_changed(a);
            return;
        }
}

static void tell_notice(struct api *a, const struct notice *n)
{
    const struct job_notice *job = notice_row(n, &job_notices);
    const struct webhook_row *disabled = notice_row(n, &disabled_webhook_notices);
    const struct delivery_end_notice *ended = notice_row(n, &delivery_end_notices);
    if (job && log_enabled(transition_level(a, job)))
        log_transition(a, job);
    if (disabled)
        tell_disabled(a, disabled);
    if (ended)
        overload_delivery(a->overload, ended->delivered);
}

void api_committed(void *self, const struct unit *u)
{
    struct api *a = self;
    reads_log_pages(a->reads, u->store->wal_pages);
    remember_jobs(a, u);
    tell_keys(a, u);
    metrics_committed(a->metrics, u);
    queue_flows_committed(a->queue_flows, u);
    queue_metrics_committed(a->queue_metrics, u);
    traces_committed(a->traces, u);
    engine_committed(a, u);
    tell_deliveries(a, u);
    for (size_t i = 0; i < u->notices.count; i++)
        tell_notice(a, &u->notices.list[i]);
    if (followers_publish(a->followers, u) && a->server)
        http_server_tick(a->server);
}

void api_hint(struct api *a, unsigned hints)
{
    if (hints & HINT_KEYS)
        keys_changed(a);
    if ((hints & HINT_EVENTS) && followers_look_again(a->followers) && a->server)
        http_server_tick(a->server);
}

/* --- load ------------------------------------------------------------------------------------------ */

static void measure(struct api *a, const struct kernel_stats *stats)
{
    struct overload_queues q = {.kernel = *stats};
    if (a->server) {
        q.connections = http_server_connections(a->server);
        q.connections_max = http_server_connections_max(a->server);
        q.held_bytes = http_server_held_bytes(a->server);
    }
    policy_point_depth(a->policy_point, &q.policy_questions, &q.policy_capacity);
    traces_depth(a->traces, &q.spans, &q.span_capacity);
    if (a->config.inbox && settings_store_is_postgres(a->config.settings)) {
        q.inbox = a->config.inbox->found;
        q.inbox_capacity = INBOX_ROWS_A_TURN;
    }
    overload_measure(a->overload, &q);
    if (settings_store_is_postgres(a->config.settings))
        overload_store(a->overload, stats->storing, stats->commit_errors);
    enum pressure_level level = overload_level(a->overload);
    kernel_set_pressure(a->kernel, level >= PRESSURE_DEGRADED, level >= PRESSURE_SHED);
}

/* A token's key may have been revoked: calls that wait with a token of it wait no longer. */
static void look_at_token_keys(struct api *a)
{
    uint64_t changes = key_ring_changes(a->keys, clock_wall_ms(a->config.clock) / 1000);
    if (changes == a->token_key_changes)
        return;
    a->token_key_changes = changes;
    keys_changed(a);
    kernel_hint(a->kernel, HINT_READY); /* claims that wait are looked through */
}

void api_tick(struct api *a, struct heart *heart)
{
    struct kernel_stats stats;
    struct overload_cascades cascades;
    kernel_stats(a->kernel, &stats);
    measure(a, &stats);
    heart_waits(heart, true); /* files */
    topology_cascades(a->topology, &cascades);
    look_at_token_keys(a);
    heart_waits(heart, false);
    overload_tick(a->overload, &cascades);
    address_limits_tick(a->address_limits);
}

static void count_batch(struct api *a)
{
    struct kernel_stats stats;
    kernel_stats(a->kernel, &stats);
    metrics_batch(a->metrics, &stats);
    measure(a, &stats);
}

void api_batch_end(void *self)
{
    struct api *a = self;
    count_batch(a);
    if (a->server)
        http_wake(a->server);
}

void api_inline_batch_end(void *self)
{
    struct api *a = self;
    http_answer_resumed(a->server);
    count_batch(a);
    reads_end(a->reads); /* the snapshot of the answers; this round has ended its own already */
}

void api_inline_commit_begins(void *self)
{
    (void)self;
    http_round_waits();
}

/* --- reading ------------------------------------------------------------------------------------- */

struct reader *api_read_begin(struct api *a, struct err *err)
{
    return reads_begin(a->reads, err);
}

void api_on_round_end(void *context)
{
    struct api *a = context;
    if (!atomic_load(&a->opened))
        return;
    reads_end(a->reads);
    kernel_round_end(a->kernel);
}
