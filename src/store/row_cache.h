/* store/row_cache.h - rows of runs that were used lately, so that the next event of a run reads nothing.
 *
 * For a store with one writer, which sees every change: the cached rows are those that the store has
 * committed. A row comes in when it was read or when its commit succeeded, changes with each commit that
 * succeeds, and all rows are forgotten when a commit fails. That a row does not exist is never cached: the
 * store is asked for a missing row each time.
 *
 * Tables:   tenants, run_ids, runs, run_steps. All others are passed over.
 * Threads:  the holder of the kernel's turn; one at a time.
 * Memory:   bounded in bytes; the row that was not used for longest goes first. Rows are kept packed, a run
 *           with its id and a step in about 600 bytes. Large ones (parameters, results) are not kept. */
#ifndef WEIR_STORE_ROW_CACHE_H
#define WEIR_STORE_ROW_CACHE_H

#include <stddef.h>

#include "base/arena.h"
#include "store/change_set.h"

struct row_cache;

struct row_cache *row_cache_new(size_t bytes_max);
struct row_cache *row_cache_free(struct row_cache *c); /* NULL is fine; always returns NULL */

/* The key columns of `row` are set; fills the rest, texts into `a`. False: it has to be read. */
bool row_cache_find(struct row_cache *c, const struct table *t, void *row, struct arena *a);
/* A row as the store has it, whole. */
void row_cache_keep(struct row_cache *c, const struct table *t, const void *row);
/* Follows the rows of a change set that is committed. */
void row_cache_apply(struct row_cache *c, const struct row_change *rows, size_t row_count);
/* Forgets all rows: after a failed commit none of them is certain. */
void row_cache_clear(struct row_cache *c);

size_t row_cache_bytes(const struct row_cache *c); /* in use, all told */
size_t row_cache_rows(const struct row_cache *c);

#endif
