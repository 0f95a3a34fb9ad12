/* api/worker/worker_items.h - the calls of a worker that name its tasks: start, heartbeat, finish, release.
 *
 * Batches in, item results out, in request order. What is wrong with an item is told in its result, never by
 * the status, and disturbs no other: one that does not fit the contract's schema of the item is `malformed`,
 * and `detail` says why. The body is checked up to the items before (x-weir-check in the contract). */
#ifndef WEIR_API_WORKER_WORKER_ITEMS_H
#define WEIR_API_WORKER_WORKER_ITEMS_H

#include "api/api.h"
#include "kernel/worker_commands.h"

/* The client whose tasks the caller may touch; 0: any client's (a process of ours). */
int64_t worker_client_of(const struct call *c);
int64_t worker_integer(const struct json *object, const char *key, int64_t fallback);

#endif
