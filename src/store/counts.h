/* store/counts.h - how many jobs a client has, by state and by work kind; kept in the transaction, so a
 * summary is one row and no statistic scans a table. The commit thread owns the table in memory. */
#ifndef WEIR_STORE_COUNTS_H
#define WEIR_STORE_COUNTS_H

#include "lifecycle/job_lifecycle.h"
#include "lifecycle/work_kinds.h"

struct client_counts {
    int64_t by_state[JOB_STATE_COUNT];
    int64_t by_kind[WORK_KIND_COUNT];
};

struct counts_table {
    struct client_counts **clients; /* by client number; NULL: no job ever */
    size_t capacity;
    int64_t *made; /* numbers of those that are not NULL */
    size_t made_count, made_capacity;
};

struct client_counts *counts_of(struct counts_table *t, int64_t client); /* made when absent */
void counts_clear(
    struct counts_table *t); /* all are absent again; costs what there was, not the largest number */
void counts_free(struct counts_table *t);
/* The stored form borrows the counts' memory; reading back tolerates a shorter (older) form. */
struct str counts_bytes(const struct client_counts *c);
void counts_from_bytes(struct client_counts *c, struct str bytes);
void counts_add(struct client_counts *c, struct str bytes); /* of a stored form: each counter on its own */

#endif
