/* jobs/creates.h - Idempotency-Key of creates other than jobs: the first one's id is given again, for
 * jobs.retention_seconds. */
#ifndef WEIR_JOBS_CREATES_H
#define WEIR_JOBS_CREATES_H

#include "jobs/client_commands.h"

/* Scope: "clients", "keys:7", "webhooks:7". */
/* NULL: not loaded yet, or not used before. Load step. */
const struct create_row *creates_prefetch(struct unit *u, struct str scope, const struct create_once *once);
/* NULL: not used before. A key used with another body sets ERR_EXEC_IDEMPOTENCY_CONFLICT in err. */
const struct create_row *creates_find(struct unit *u, struct str scope, const struct create_once *once,
                                      struct err *err);
void creates_add(struct unit *u, struct str scope, const struct create_once *once, const struct uuid *id);
/* A bounded part of those that are older leaves; true when there is more. */
bool creates_drop_old(struct unit *u);

#endif
