/* store/copy_internal.h - what the files of the copy share. Not for others. */
#ifndef WEIR_STORE_COPY_INTERNAL_H
#define WEIR_STORE_COPY_INTERNAL_H

#include "store/copy.h"

/* The chunks of the source in their order. */
struct chunk_numbers {
    int64_t *numbers;
    size_t count, capacity;
    bool renumber; /* chunk number i becomes i + 1 */
};

void chunk_numbers_free(struct chunk_numbers *n);
/* The number a chunk gets; 0 for one that is not there: it was purged, and is older than all others. */
int64_t chunk_number_of(const struct chunk_numbers *n, int64_t number);
/* tasks and ends hold positions in the log. The bytes as they are to be, in `a` if they change. */
struct str copy_refs(const struct chunk_numbers *n, struct str refs, struct arena *a);
/* The column of a row that holds such positions, or NULL. */
const struct column *copy_refs_column(const struct table *t, const void *row);

/* Sums every part, in the reader's snapshot. With `numbers` (may be NULL) as it will look in the target:
 * `to_one_writer` says whether gaps have to go; they are noted there. */
MUST_CHECK enum err_code copy_sum(struct reader *r, struct chunk_numbers *numbers, bool to_one_writer,
                                  const struct copy_watch *watch, enum copy_step step, uint64_t total,
                                  struct part_sum ret_sums[COPY_PARTS_MAX], struct err *err);
uint64_t copy_total(const struct part_sum sums[COPY_PARTS_MAX]);

/* Every item of a part, in its order; for the three that are no tables an item is a struct of its own. */
struct copy_chunk {
    int64_t number;
    struct str data;
};
MUST_CHECK enum err_code copy_scan(struct reader *r, int part, store_row_fn *fn, void *arg, struct err *err);

#endif
