/* store/sqlite/sqlite_index_set.h - run index entries in memory, found by run and hash. */
#ifndef WEIR_STORE_SQLITE_INDEX_SET_H
#define WEIR_STORE_SQLITE_INDEX_SET_H

#include "store/rows.h"

struct index_set {
    struct run_index_row *rows; /* in the order in which they came */
    uint32_t *slots;            /* open addressing: index into rows + 1, 0 is free */
    size_t count, slot_count;   /* slot_count is a power of two, or 0 */
    uint64_t seed;              /* so that no caller can make them collide */
};

void index_set_put(struct index_set *s, const struct run_index_row *m); /* one that is there already stays */
const struct run_index_row *index_set_find(const struct index_set *s, int64_t run, int64_t hash);
void index_set_free(struct index_set *s); /* empty afterwards, and good to use */

/* Index entries brought into order (by run, then hash) a part at a time: all at once would delay a commit. */
enum { INDEX_SORT_DEPTH = 48 };
struct index_sort {
    struct run_index_row *rows;
    size_t count, sorted;
    size_t ends[INDEX_SORT_DEPTH]; /* a stack: what lies before an end is smaller than what lies behind it */
    size_t depth;
};

int index_order(const struct run_index_row *x, const struct run_index_row *y);
void index_sort_start(struct index_sort *s, const struct index_set *of); /* copies them */
void index_sort_until(struct index_sort *s, size_t count);               /* at least so many are in order */
void index_sort_free(struct index_sort *s);

#endif
