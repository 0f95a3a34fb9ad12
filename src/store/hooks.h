/* store/hooks.h - the webhooks of each client in memory: one look finds the receivers of an event.
 *
 * Owner:  the holder of the kernel's turn, as with all memory of the store that deciders read. Follows the
 *         `webhooks` rows: read at start, changed after the commit that changed a row. */
#ifndef WEIR_STORE_HOOKS_H
#define WEIR_STORE_HOOKS_H

#include "base/heap.h"
#include "base/map.h"
#include "lifecycle/job_lifecycle.h"
#include "store/rows.h"

/* It gets the event of another webhook of its client that is disabled. */
#define HOOK_HEARS_DISABLED (UINT32_C(1) << JOB_EVENT_COUNT)

struct hook {
    int64_t id;
    uint32_t events; /* bit per enum job_event, and HOOK_HEARS_DISABLED */
    bool enabled;
};

struct client_hooks {
    struct map_node node;
    int64_t client;
    struct hook *hooks; /* oldest first */
    size_t count, capacity;
};

struct hooks {
    struct map by_client;
};

/* NULL: the client has none. */
const struct client_hooks *hooks_of(const struct hooks *h, int64_t client);
void hooks_put(struct hooks *h, const struct webhook_row *row); /* a new one, or what has become of it */
void hooks_remove(struct hooks *h, const struct webhook_row *row);
void hooks_free(struct hooks *h);

/* The names of a webhook's row ("*", "job.*", "job.failed,webhook.disabled") as bits. */
uint32_t hook_event_bits(struct str events);

#endif
