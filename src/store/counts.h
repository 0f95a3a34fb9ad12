/* store/counts.h - how many jobs a client has, by state and by work kind of the catalog; kept in the
 * transaction, so a summary is one row and no statistic scans a table. The commit thread owns the table in
 * memory.
 *
 * Memory: clients with unfinished jobs, and those whose counters changed lately. Counters of the others are
 * in the store alone and are read back when they move (kernel/unit.h): a client that does nothing costs
 * nothing. */
#ifndef WEIR_STORE_COUNTS_H
#define WEIR_STORE_COUNTS_H

#include "base/map.h"
#include "lifecycle/job_lifecycle.h"
#include "lifecycle/work_kinds.h"

struct client_counts {
    int64_t by_state[JOB_STATE_COUNT];
    int64_t by_kind[WORK_KIND_COUNT];
};

struct counted_client {
    struct map_node node;
    int64_t client;
    struct client_counts counts;
};

struct counts_table {
    struct map by_client;
    struct counted_client **made; /* all of them */
    size_t made_count, made_capacity;
};

struct client_counts *counts_find(const struct counts_table *t, int64_t client); /* NULL: not in memory */
struct client_counts *counts_of(struct counts_table *t, int64_t client);         /* made when absent */
void counts_drop_idle(struct counts_table *t);              /* forgets clients without unfinished jobs */
void counts_remove(struct counts_table *t, int64_t client); /* it may be absent */
void counts_clear(struct counts_table *t);                  /* all are absent again */
void counts_free(struct counts_table *t);
int64_t counts_unfinished(const struct client_counts *c);
/* The stored form borrows the counts' memory; reading back tolerates a shorter (older) form. */
struct str counts_bytes(const struct client_counts *c);
void counts_from_bytes(struct client_counts *c, struct str bytes);
void counts_add(struct client_counts *c, struct str bytes); /* of a stored form: each counter on its own */

#endif
