/* api/ops/operators.h - what operators ask about all clients: clients, their jobs, queues, and what operators
 * did. */
#ifndef WEIR_API_OPS_OPERATORS_H
#define WEIR_API_OPS_OPERATORS_H

#include "api/api.h"

void handle_ops_clients(struct call *c);
void handle_ops_suspend(struct call *c);
void handle_ops_resume(struct call *c);
void handle_ops_purge_jobs(struct call *c);
void handle_ops_delete(struct call *c);
void handle_ops_jobs(struct call *c);   /* api/jobs/list.c */
void handle_ops_queues(struct call *c); /* api/jobs/queues.c */
void handle_ops_audit(struct call *c);

/* "client_id" of a client's number; null when there is no such client any more. */
MUST_CHECK enum err_code encode_client_id(struct json_writer *w, struct reader *r, struct arena *a,
                                          int64_t client, struct err *err);
/* The client of the query's client_id. Absent: *ret_client is 0. False: answered. */
bool call_query_client(struct call *c, struct reader *r, int64_t *ret_client);

#endif
