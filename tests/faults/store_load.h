/* tests/faults/store_load.h - batches as the kernel makes them, from a seed and without a kernel.
 *
 * Submits, claims, starts, finishes, cancels and retries of many jobs in one batch: all tables of
 * the write path, the log, idempotency, listing and counters. The same seed gives the same batches,
 * and a batch that is refused is offered again unchanged, so two runs with the same batches end
 * with the same database. */
#ifndef WEIR_TESTS_STORE_LOAD_H
#define WEIR_TESTS_STORE_LOAD_H

#include "store/store.h"

struct store_load;

struct store_load *store_load_new(uint64_t seed, unsigned jobs_per_batch);
void store_load_free(struct store_load *l);
/* One batch, one commit. On an error nothing has moved and the next call offers the same batch. */
enum err_code store_load_step(struct store_load *l, struct store *s, struct err *err);
uint64_t store_load_batches(const struct store_load *l); /* committed so far */

#endif
