/* The families of jobs, their workers and their deliveries. */
#include <stdio.h>

#include "api/metrics/metrics_internal.h"

#include "base/banned.h"

static void write_jobs(const struct metrics *m, struct strbuf *out)
{
    const _Atomic uint64_t *events = m->events;
    metrics_counter(out, "jobs_submitted_total", "Jobs accepted", metric_get(&events[JOB_EVENT_CREATED]));
    metrics_counter(out, "jobs_queued_total", "Entries into QUEUED", metric_get(&events[JOB_EVENT_QUEUED]));
    metrics_counter(out, "jobs_running_total", "Entries into RUNNING",
                    metric_get(&events[JOB_EVENT_RUNNING]));
    metrics_counter(out, "jobs_succeeded_total", "Entries into SUCCEEDED",
                    metric_get(&events[JOB_EVENT_SUCCEEDED]));
    metrics_counter(out, "jobs_failed_total", "Entries into FAILED",
                    metric_get(&events[JOB_EVENT_FAILED]) + metric_get(&events[JOB_EVENT_TIMED_OUT]));
    metrics_counter(out, "jobs_canceled_total", "Entries into CANCELED",
                    metric_get(&events[JOB_EVENT_CANCELED]));
    metrics_counter(out, "weir_job_timeouts_total", "Jobs that ran longer than they may",
                    metric_get(&events[JOB_EVENT_TIMED_OUT]));
    metrics_counter(out, "weir_job_retries_total", "Retries accepted", metric_get(&m->retries));
    metrics_counter(out, "weir_job_retry_successes_total", "Jobs that succeeded after a retry",
                    metric_get(&m->retry_successes));
    metrics_counter(out, "weir_job_retries_exhausted_total", "Jobs that failed with no retry left",
                    metric_get(&events[JOB_EVENT_RETRIES_EXHAUSTED]));
    metrics_counter(out, "weir_lease_expired_total", "Leases that ended before a start",
                    metric_get(&events[JOB_EVENT_LEASE_EXPIRED]));
    metrics_counter(out, "weir_idempotent_replays_total", "Submits answered from an earlier one",
                    TOTAL(m, replays));
    metrics_histogram(out, "job_queue_wait_seconds", "From claimable to claimed", &shape_seconds,
                      &m->queue_wait);
    metrics_histogram(out, "weir_job_assigned_seconds", "From claimed to started", &shape_seconds,
                      &m->assigned);
    metrics_histogram(out, "job_execution_seconds", "From start to end", &shape_seconds, &m->execution);
}

/* Own kinds are many: together they are "none" of the catalog. */
static const char *scenario_text(int k)
{
    return k < WORK_KIND_COUNT ? work_kind_text((enum work_kind)k) : "none";
}

static void write_scenarios(const struct metrics *m, struct strbuf *out)
{
    char labels[128];
    metrics_head(out, "weir_scenario_submitted_total", "counter", "Jobs accepted by work kind");
    for (int k = 0; k <= WORK_KIND_COUNT; k++) {
        uint64_t n = metric_get(&m->scenario_submitted[k]);
        snprintf(labels, sizeof labels, "scenario=\"%s\"", scenario_text(k));
        if (n)
            metrics_sample(out, "weir_scenario_submitted_total", labels, n);
    }
    metrics_head(out, "weir_scenario_ended_total", "counter", "Jobs ended by work kind and outcome");
    for (int k = 0; k <= WORK_KIND_COUNT; k++)
        for (int s = 0; s < JOB_STATE_COUNT; s++) {
            uint64_t n = metric_get(&m->scenario_ended[k][s]);
            if (!n)
                continue;
            snprintf(labels, sizeof labels, "scenario=\"%s\",outcome=\"%s\"", scenario_text(k),
                     job_outcome_text((enum job_state)s));
            metrics_sample(out, "weir_scenario_ended_total", labels, n);
        }
}

static void write_queue(const struct kernel_stats *k, struct strbuf *out)
{
    static const char *const name = "weir_jobs_in_state";
    metrics_gauge(out, "job_queue_depth", "Jobs in QUEUED", k->queued);
    metrics_head(out, name, "gauge", "Unfinished jobs by state");
    metrics_sample(out, name, "state=\"CREATED\"", k->waiting);
    metrics_sample(out, name, "state=\"QUEUED\"", k->queued);
    metrics_sample(out, name, "state=\"ASSIGNED\"", k->assigned);
    metrics_sample(out, name, "state=\"RUNNING\"", k->running);
    metrics_gauge(out, "weir_workers", "Workers heard of lately", k->workers);
}

static void write_outbound(const struct metrics *m, struct strbuf *out)
{
    metrics_head(out, "weir_outbound_results_total", "counter", "Attempts to deliver, by what became of it");
    for (int hook = 0; hook < 2; hook++)
        for (int class = 0; class < OUTBOUND_CLASS_COUNT; class ++) {
            char labels[96];
            uint64_t count = TOTAL(m, outbound[hook][class]);
            snprintf(labels, sizeof labels, "channel=\"%s\",classification=\"%s\"",
                     hook ? "webhook" : "callback", outbound_class_text((enum outbound_class) class));
            if (count)
                metrics_sample(out, "weir_outbound_results_total", labels, count);
        }
}

static void write_webhooks(const struct metrics *m, struct strbuf *out)
{
    struct histogram_seen s = metrics_see_parts(m, offsetof(struct metric_part, webhook_seconds));
    metrics_counter(out, "webhook_deliveries_total", "Webhook calls the receiver took",
                    TOTAL(m, webhook_deliveries));
    metrics_counter(out, "webhook_failures_total", "Webhook attempts that failed",
                    TOTAL(m, webhook_failures));
    metrics_head(out, "weir_webhook_seconds", "histogram", "Length of a webhook attempt");
    metrics_series(out, "weir_webhook_seconds", "", &shape_seconds, &s);
    metrics_head(out, "weir_webhooks_disabled_total", "counter", "Webhooks that were disabled, by reason");
    for (int why = 0; why < WEBHOOK_FAULT_COUNT; why++) {
        char labels[64];
        snprintf(labels, sizeof labels, "reason=\"%s\"", webhook_fault_text((enum webhook_fault)why));
        metrics_sample(out, "weir_webhooks_disabled_total", labels, metric_get(&m->webhooks_disabled[why]));
    }
}

void metrics_write_jobs(const struct metrics *m, const struct kernel_stats *k,
                        const struct metrics_of_jobs *around, struct strbuf *out)
{
    write_jobs(m, out);
    write_queue(k, out);
    metrics_counter(out, "weir_worker_heartbeats_total", "Heartbeats of tasks that were accepted",
                    TOTAL(m, heartbeats));
    metrics_counter(out, "weir_inbox_taken_total", "Rows of the inbox that became jobs", around->inbox_taken);
    metrics_counter(out, "weir_inbox_refused_total", "Rows of the inbox that stay with an error",
                    around->inbox_refused);
    if (k->leads && around->keys_expiring >= 0) /* one node looks for all */
        metrics_gauge(out, "weir_keys_expiring",
                      "Active API keys that expire within 14 days, as of an hour ago at most",
                      (uint64_t)around->keys_expiring);
    write_webhooks(m, out);
    write_outbound(m, out);
    write_scenarios(m, out);
}
