/* api/ops/operators.h - what operators ask about all clients: clients, their jobs, queues, and what operators
 * did. */
#ifndef WEIR_API_OPS_OPERATORS_H
#define WEIR_API_OPS_OPERATORS_H

#include "api/api.h"

/* "client_id" of a client's number; null when there is no such client any more. */
MUST_CHECK enum err_code encode_client_id(struct json_writer *w, struct reader *r, struct arena *a,
                                          int64_t client, struct err *err);
/* The client of the query's client_id. Absent: *ret_client is 0. False: answered. */
bool call_query_client(struct call *c, struct reader *r, int64_t *ret_client);

#endif
