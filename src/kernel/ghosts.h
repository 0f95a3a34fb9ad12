/* kernel/ghosts.h - leases whose task ended under them (a job canceled while running).
 *
 * Until such a lease would have ended, a heartbeat with its token is answered ok with cancel: true, so
 * the worker learns to stop. Memory only: after a restart the worker hears lease_lost and stops too. */
#ifndef WEIR_KERNEL_GHOSTS_H
#define WEIR_KERNEL_GHOSTS_H

#include "base/heap.h"
#include "base/map.h"

struct ghost {
    struct map_node node;
    struct heap_node end; /* key: steady ms */
    int64_t task, token, client;
};

struct ghosts {
    struct map by_task;
    struct heap by_end;
};

void ghosts_add(struct ghosts *g, int64_t task, int64_t token, int64_t client, int64_t until_steady_ms);
/* NULL unless a lease with this token is still remembered. */
const struct ghost *ghosts_find(const struct ghosts *g, int64_t task, int64_t token);
void ghosts_forget(struct ghosts *g, int64_t now_steady_ms);
void ghosts_free(struct ghosts *g);

#endif
