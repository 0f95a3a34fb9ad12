/* api/jobs/handlers.h - the handlers of the Jobs API; routes.c lists them, dispatch.c calls them. */
#ifndef WEIR_API_JOBS_HANDLERS_H
#define WEIR_API_JOBS_HANDLERS_H

#include "api/api.h"

void handle_create_client(struct call *c);
void handle_create_key(struct call *c);
void handle_list_keys(struct call *c);
void handle_renew_key(struct call *c);
void handle_revoke_key(struct call *c);
void handle_rotate_secret(struct call *c);
void handle_submit(struct call *c);
void handle_submit_batch(struct call *c);
void handle_cancel(struct call *c);
void handle_retry(struct call *c);
void handle_get_job(struct call *c);
void handle_get_report(struct call *c);
void handle_get_events(struct call *c);
void handle_explain(struct call *c);
void handle_cancel_jobs(struct call *c);
void handle_retry_jobs(struct call *c);
void handle_list_jobs(struct call *c);
void handle_list_reports(struct call *c);
void handle_report_summary(struct call *c);
void handle_list_queues(struct call *c);
void handle_get_queue(struct call *c);
void handle_set_queue(struct call *c);
void handle_pause_queue(struct call *c);
void handle_resume_queue(struct call *c);
void handle_purge_queue(struct call *c);
void handle_create_webhook(struct call *c);
void handle_list_webhooks(struct call *c);
void handle_delete_webhook(struct call *c);
void handle_webhook_deliveries(struct call *c);
void handle_job_deliveries(struct call *c);
void handle_redeliver(struct call *c);
void handle_test_webhook(struct call *c);
void handle_enable_webhook(struct call *c);
void handle_rotate_webhook_secret(struct call *c);

/* Of the handlers that make something, or change what belongs to a client; false: answered. */
bool call_create_once(struct call *c, struct create_once *ret_once);
void call_mark_replay(struct call *c, bool replayed);
bool call_needs_caller(struct call *c);
/* The {queue} of the path, which the caller's key may touch. False: answered. */
bool call_queue_param(struct call *c, struct str *ret_queue);

#endif
