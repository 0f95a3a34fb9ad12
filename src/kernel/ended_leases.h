/* kernel/ended_leases.h - leases that are over and whose workers may still ask about them.
 *
 * CUT: the task ended under its worker (a job canceled while running). Until the lease would have ended, a
 * heartbeat with its token is answered ok with cancel: true, so the worker learns to stop.
 * SUCCEEDED, FAILED: the worker finished the task, and no row says so: the same finish again is ok again.
 * Memory only: after a restart the worker hears lease_lost and stops too. */
#ifndef WEIR_KERNEL_ENDED_LEASES_H
#define WEIR_KERNEL_ENDED_LEASES_H

#include "base/heap.h"
#include "base/map.h"

enum lease_end { LEASE_CUT, LEASE_SUCCEEDED, LEASE_FAILED };

struct ended_lease {
    struct map_node node;
    struct heap_node until; /* key: steady ms */
    int64_t task, token, client;
    enum lease_end how;
};

struct ended_leases {
    struct map by_task;
    struct heap by_end;
};

/* Copies task, token, client and how. */
void ended_leases_add(struct ended_leases *e, const struct ended_lease *lease, int64_t until_steady_ms);
/* NULL unless a lease with this token that ended so is still remembered. */
const struct ended_lease *ended_leases_find(const struct ended_leases *e, int64_t task, int64_t token,
                                            enum lease_end how);
void ended_leases_forget(struct ended_leases *e, int64_t now_steady_ms);
void ended_leases_free(struct ended_leases *e);

#endif
