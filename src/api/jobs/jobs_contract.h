/* api/jobs/jobs_contract.h - jobs as a contract, with all that stands around them: clients, keys, queues,
 * webhooks, deliveries, and the worker API that tasks of every contract go out by. */
#ifndef WEIR_API_JOBS_JOBS_CONTRACT_H
#define WEIR_API_JOBS_JOBS_CONTRACT_H

#include "api/api.h"
#include "api/metrics/queues.h"
#include "api/queue_flows.h"
#include "api/worker/recent_jobs.h"
#include "jobs/inbox.h"
#include "jobs/purge.h"

extern const struct contract jobs_contract;

/* Items that the worker API checks one by one. X(name, the schema's name in the contract) */
#define WORKER_FORMS(X)                                                                                      \
    X(START, "TaskRef") X(HEARTBEAT, "Heartbeat") X(FINISH, "Finish") X(RELEASE, "Release")
#define X(name, schema) WORKER_FORM_##name,
enum worker_form { WORKER_FORMS(X) WORKER_FORM_COUNT };
#undef X

/* The parts of the API that are there for jobs alone. */
struct jobs_api {
    struct api *api;
    const struct schema *submit_schema; /* of one job in a body */
    const struct schema *worker_forms[WORKER_FORM_COUNT];
    struct queue_flows *queue_flows;
    struct queue_metrics *queue_metrics;
    struct recent_jobs *recent_jobs;
    bool logs_transitions;
    struct inbox inbox;
    struct purge purge;
    int64_t purged_ms; /* steady */
};

static inline struct jobs_api *jobs_api(const struct api *a)
{
    return contract_set_self(&a->contracts, &jobs_contract);
}

/* jobs_committed.c: what is told of a batch to logs, counters, traces and caches. */
void jobs_committed(void *self, const struct unit *u);

#endif
