#include "api/jobs/handlers.h"
#include "base/must.h"

#include "base/banned.h"

/* A table reads best as a table. */
/* clang-format off */
const struct route job_routes[] = {
    ROUTE(POST,   "/v1/clients",                                   createClient,        AUTH_OPTIONAL, SCOPE_ADMIN,               "create_client",   ACCEPT_JSON, false, handle_create_client)
    ROUTE(POST,   "/v1/clients/{client_id}/keys",                  createKey,           AUTH_OPTIONAL, SCOPE_ADMIN,               "create_key",      ACCEPT_JSON, true,  handle_create_key)
    ROUTE(GET,    "/v1/clients/{client_id}/keys",                  listKeys,            AUTH_KEEPER,   SCOPE_ADMIN,               "list_keys",       ACCEPT_JSON, true,  handle_list_keys)
    ROUTE(POST,   "/v1/clients/{client_id}/keys/renew",            renewKey,            AUTH_KEEPER,   SCOPE_ADMIN,               "renew_key",       ACCEPT_JSON, true,  handle_renew_key)
    ROUTE(POST,   "/v1/clients/{client_id}/keys/revoke",           revokeKey,           AUTH_KEEPER,   SCOPE_ADMIN,               "revoke_key",      ACCEPT_JSON, true,  handle_revoke_key)
    ROUTE(POST,   "/v1/clients/{client_id}/webhook-secret:rotate", rotateWebhookSecret, AUTH_KEEPER,   SCOPE_ADMIN | EVERY_QUEUE, "rotate_secret",   ACCEPT_JSON, true,  handle_rotate_secret)
    ROUTE(POST,   "/v1/jobs",                                      submitJob,           AUTH_CLIENT,   SCOPE_SUBMIT,              "submit",          ACCEPT_JSON, true,  handle_submit)
    ROUTE(POST,   "/v1/jobs:batch",                                submitJobBatch,      AUTH_CLIENT,   SCOPE_SUBMIT,              "submit",          ACCEPT_JSON, true,  handle_submit_batch)
    ROUTE(POST,   "/v1/jobs:cancel",                               cancelJobs,          AUTH_CLIENT,   SCOPE_SUBMIT,              "cancel_jobs",     ACCEPT_JSON, true,  handle_cancel_jobs)
    ROUTE(POST,   "/v1/jobs:retry",                                retryJobs,           AUTH_CLIENT,   SCOPE_SUBMIT,              "retry_jobs",      ACCEPT_JSON, true,  handle_retry_jobs)
    ROUTE(GET,    "/v1/jobs",                                      listJobs,            AUTH_CLIENT,   SCOPE_READ,                "list",            ACCEPT_JSON, true,  handle_list_jobs)
    ROUTE(GET,    "/v1/jobs/{job_id}",                             getJob,              AUTH_CLIENT,   SCOPE_READ,                "get",             ACCEPT_JSON, true,  handle_get_job)
    ROUTE(POST,   "/v1/jobs/{job_id}/cancel",                      cancelJob,           AUTH_CLIENT,   SCOPE_SUBMIT,              "cancel",          ACCEPT_JSON, true,  handle_cancel)
    ROUTE(POST,   "/v1/jobs/{job_id}/retry",                       retryJob,            AUTH_CLIENT,   SCOPE_SUBMIT,              "retry",           ACCEPT_JSON, true,  handle_retry)
    ROUTE(GET,    "/v1/jobs/{job_id}/report",                      getReport,           AUTH_CLIENT,   SCOPE_READ,                "report",          ACCEPT_JSON, true,  handle_get_report)
    ROUTE(GET,    "/v1/jobs/{job_id}/events",                      getJobEvents,        AUTH_CLIENT,   SCOPE_READ,                "events",          ACCEPT_JSON | ACCEPT_EVENTS, true, handle_get_events)
    ROUTE(GET,    "/v1/jobs/{job_id}/explain",                     explainJob,          AUTH_CLIENT,   SCOPE_READ,                "explain",         ACCEPT_JSON, true,  handle_explain)
    ROUTE(GET,    "/v1/reports",                                   listReports,         AUTH_CLIENT,   SCOPE_READ,                "list_reports",    ACCEPT_JSON | ACCEPT_CSV, true, handle_list_reports)
    ROUTE(GET,    "/v1/reports/summary",                           getReportSummary,    AUTH_CLIENT,   SCOPE_READ | EVERY_QUEUE,  "summary",         ACCEPT_JSON, true,  handle_report_summary)
    ROUTE(GET,    "/v1/queues",                                    listQueues,          AUTH_CLIENT,   SCOPE_READ,                "list_queues",     ACCEPT_JSON, true,  handle_list_queues)
    ROUTE(GET,    "/v1/queues/{queue}",                            getQueue,            AUTH_CLIENT,   SCOPE_READ,                "get_queue",       ACCEPT_JSON, true,  handle_get_queue)
    ROUTE(POST,   "/v1/queues/{queue}",                            setQueue,            AUTH_CLIENT,   SCOPE_ADMIN,               "set_queue",       ACCEPT_JSON, true,  handle_set_queue)
    ROUTE(POST,   "/v1/queues/{queue}:pause",                      pauseQueue,          AUTH_CLIENT,   SCOPE_ADMIN,               "pause_queue",     ACCEPT_JSON, true,  handle_pause_queue)
    ROUTE(POST,   "/v1/queues/{queue}:resume",                     resumeQueue,         AUTH_CLIENT,   SCOPE_ADMIN,               "resume_queue",    ACCEPT_JSON, true,  handle_resume_queue)
    ROUTE(POST,   "/v1/queues/{queue}:purge",                      purgeQueue,          AUTH_CLIENT,   SCOPE_SUBMIT,              "purge_queue",     ACCEPT_JSON, true,  handle_purge_queue)
    ROUTE(POST,   "/v1/webhooks",                                  createWebhook,       AUTH_CLIENT,   SCOPE_ADMIN | EVERY_QUEUE, "create_webhook",  ACCEPT_JSON, true,  handle_create_webhook)
    ROUTE(GET,    "/v1/webhooks",                                  listWebhooks,        AUTH_CLIENT,   SCOPE_READ | EVERY_QUEUE,  "list_webhooks",   ACCEPT_JSON, true,  handle_list_webhooks)
    ROUTE(DELETE, "/v1/webhooks/{webhook_id}",                     deleteWebhook,       AUTH_CLIENT,   SCOPE_ADMIN | EVERY_QUEUE, "delete_webhook",  ACCEPT_JSON, true,  handle_delete_webhook)
    ROUTE(POST,   "/v1/webhooks/{webhook_id}:test",                testWebhook,         AUTH_CLIENT,   SCOPE_ADMIN | EVERY_QUEUE, "test_webhook",    ACCEPT_JSON, true,  handle_test_webhook)
    ROUTE(POST,   "/v1/webhooks/{webhook_id}:enable",              enableWebhook,       AUTH_CLIENT,   SCOPE_ADMIN | EVERY_QUEUE, "enable_webhook",  ACCEPT_JSON, true,  handle_enable_webhook)
    ROUTE(POST,   "/v1/webhooks/{webhook_id}:rotate-secret",       rotateSecretOfWebhook, AUTH_CLIENT, SCOPE_ADMIN | EVERY_QUEUE, "rotate_secret",   ACCEPT_JSON, true,  handle_rotate_webhook_secret)
    ROUTE(GET,    "/v1/webhooks/{webhook_id}/deliveries",          listDeliveries,      AUTH_CLIENT,   SCOPE_READ | EVERY_QUEUE,  "list_deliveries", ACCEPT_JSON, true,  handle_webhook_deliveries)
    ROUTE(POST,   "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}:redeliver", redeliver, AUTH_CLIENT, SCOPE_ADMIN | EVERY_QUEUE, "redeliver",    ACCEPT_JSON, true,  handle_redeliver)
    ROUTE(GET,    "/v1/jobs/{job_id}/deliveries",                  listJobDeliveries,   AUTH_CLIENT,   SCOPE_READ,                "list_deliveries", ACCEPT_JSON, true,  handle_job_deliveries)
};
/* clang-format on */
const size_t job_route_count = LENGTH_OF(job_routes);
