/* store/sqlite/sqlite_mark_set.h - marks of run events in memory, found by run and hash. */
#ifndef WEIR_STORE_SQLITE_MARK_SET_H
#define WEIR_STORE_SQLITE_MARK_SET_H

#include "store/rows.h"

struct mark_set {
    struct run_mark_row *rows; /* in the order in which they came */
    uint32_t *slots;           /* open addressing: index into rows + 1, 0 is free */
    size_t count, slot_count;  /* slot_count is a power of two, or 0 */
    uint64_t seed;             /* so that nobody outside can make them collide */
};

void mark_set_put(struct mark_set *s, const struct run_mark_row *m); /* one that is there already stays */
const struct run_mark_row *mark_set_find(const struct mark_set *s, int64_t run, int64_t hash);
void mark_set_free(struct mark_set *s); /* empty afterwards, and good to use */

/* Marks brought into order (by run, then hash) a part at a time: all at once would delay a commit. */
enum { MARK_SORT_DEPTH = 48 };
struct mark_sort {
    struct run_mark_row *rows;
    size_t count, sorted;
    size_t ends[MARK_SORT_DEPTH]; /* a stack: what lies before an end is smaller than what lies behind it */
    size_t depth;
};

int mark_order(const struct run_mark_row *x, const struct run_mark_row *y);
void mark_sort_start(struct mark_sort *s, const struct mark_set *of); /* copies them */
void mark_sort_until(struct mark_sort *s, size_t count);              /* at least so many are in order */
void mark_sort_free(struct mark_sort *s);

#endif
