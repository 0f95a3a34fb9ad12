/* The commit thread's part of jobs: who hears of what a batch did. */
#include "api/jobs/jobs_contract.h"
#include "base/log.h"
#include "jobs/deliver.h"
#include "jobs/job_notices.h"
#include "lifecycle/work_kinds.h"
#include "runtime/event_names.h"
#include "runtime/partition.h"

#include "base/banned.h"

enum { RECENT_READY_MAX = 1000 }; /* ready tasks up to which new jobs are remembered for their claim */

static enum log_level transition_level(const struct jobs_api *j, const struct job_notice *n)
{
    return n->event.next == JOB_FAILED || j->logs_transitions ? LOG_INFO : LOG_DEBUG;
}

static void log_transition(const struct jobs_api *j, const struct job_notice *n)
{
    const struct event *e = &n->event;
    struct uuid id = uuid_from_v7(e->job, n->low), client;
    char text[UUID_TEXT_LEN + 1], client_id[UUID_TEXT_LEN + 1];
    uuid_text(&id, text);
    bool known = client_ids_find(j->api->client_ids, n->client, &client);
    if (known)
        uuid_text(&client, client_id);
    log_line(transition_level(j, n), job_event_text(e->event), "job_id", LOG_TEXT(text), "client_id",
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
static void remember_jobs(const struct jobs_api *j, const struct unit *u)
{
    const struct live *live = u->store->live;
    struct remembering r = {j->recent_jobs, live, live_phase_count(live, TASK_READY) <= RECENT_READY_MAX};
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

static void tell_keys(struct api *a, const struct unit *u)
{
    for (size_t i = 0; i < u->notices.count; i++)
        if (u->notices.list[i].kind == &key_change_notices) {
            api_keys_changed(a);
            return;
        }
}

static void tell_notice(const struct jobs_api *j, const struct notice *n)
{
    const struct job_notice *job = notice_row(n, &job_notices);
    const struct webhook_row *disabled = notice_row(n, &disabled_webhook_notices);
    const struct delivery_end_notice *ended = notice_row(n, &delivery_end_notices);
    if (job && log_enabled(transition_level(j, job)))
        log_transition(j, job);
    if (disabled)
        tell_disabled(j->api, disabled);
    if (ended)
        overload_delivery(j->api->overload, ended->delivered);
}

void jobs_committed(void *self, const struct unit *u)
{
    struct jobs_api *j = self;
    struct api *a = j->api;
    remember_jobs(j, u);
    tell_keys(a, u);
    metrics_jobs_committed(a->metrics, u);
    queue_flows_committed(j->queue_flows, u);
    queue_metrics_committed(j->queue_metrics, u);
    traces_committed(a->traces, u);
    tell_deliveries(a, u);
    for (size_t i = 0; i < u->notices.count; i++)
        tell_notice(j, &u->notices.list[i]);
}
