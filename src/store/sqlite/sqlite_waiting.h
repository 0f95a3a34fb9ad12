/* store/sqlite/sqlite_waiting.h - rows in memory that are not in their table yet (sqlite_deferred_rows.h).
 *
 * A set is found by (run, key), lives and dies as one, and knows which block brought which rows: a reader
 * sees those of its snapshot, and a commit that fails takes its own back. Its owner sees to threads. */
#ifndef WEIR_STORE_SQLITE_WAITING_H
#define WEIR_STORE_SQLITE_WAITING_H

#include "base/arena.h"
#include "base/str.h"

struct waiting_row {
    int64_t run, key;
    union { /* its other columns, as its kind has it */
        int64_t number;
        const char *bytes; /* uint32_t: how many; then these */
    };
};

struct str waiting_bytes(const char *bytes);

struct waiting_block {
    int64_t number;
    size_t begin, bytes; /* its first row; of the rows before it */
};

struct waiting_set {
    bool has_bytes;           /* rows do, not numbers */
    bool rises;               /* keys of a run only rise; its rows are found from the newest back */
    struct waiting_row *rows; /* in the order in which they came */
    uint32_t *slots;          /* open addressing by run and key: index into rows + 1, 0 is free */
    uint32_t *before; /* of a set that rises, whose slots have the newest row of each run: the one before */
    size_t count, slot_count; /* slot_count is a power of two, or 0 */
    size_t bytes;
    uint64_t seed; /* so that no caller can make them collide */
    struct waiting_block *blocks;
    size_t block_count, block_capacity;
    struct arena *arena; /* what `bytes` of rows point to */
};

void waiting_begin(struct waiting_set *s, int64_t block); /* what is put now comes from this block */
/* Copies its bytes. A row that is there already stays. False: the set rises, and the run has this key or a
 * larger one. */
bool waiting_put(struct waiting_set *s, const struct waiting_row *r);
void waiting_take_back(struct waiting_set *s, int64_t block); /* if it is the last one */
void waiting_free(struct waiting_set *s);                     /* empty afterwards, and good to use */

/* How many rows came in blocks up to `last`. */
size_t waiting_until(const struct waiting_set *s, int64_t last);
/* Of the first `until` rows; NULL: not there. */
const struct waiting_row *waiting_find(const struct waiting_set *s, int64_t run, int64_t key, size_t until);

/* Rows copied out of sets, their bytes too. */
struct waiting_list {
    struct waiting_row *rows;
    size_t count, capacity;
    struct arena *arena;
};
/* Of the first `until` rows of the set: this one, if it is there. */
void waiting_copy(struct waiting_list *l, const struct waiting_set *s, int64_t run, int64_t key,
                  size_t until);
/* Those of a run that have at least this key. If the set rises: in their order, as many as bring the list to
 * `max`. */
void waiting_copy_run(struct waiting_list *l, const struct waiting_set *s, int64_t run, int64_t key,
                      size_t until, size_t max);
void waiting_list_free(struct waiting_list *l);

/* By run, then key. */
static inline int waiting_order(const struct waiting_row *x, const struct waiting_row *y)
{
    if (x->run != y->run)
        return x->run < y->run ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}
int waiting_compare(const void *x, const void *y); /* the same, for qsort */

/* Rows of a set brought into order a part at a time: all at once would delay a commit. */
enum { WAITING_SORT_DEPTH = 48 };
struct waiting_sort {
    struct waiting_row *rows;
    size_t count, sorted;
    size_t ends[WAITING_SORT_DEPTH]; /* a stack: what lies before an end is smaller than what lies behind */
    size_t depth;
};

void waiting_sort_start(struct waiting_sort *s, const struct waiting_set *of); /* copies them */
void waiting_sort_until(struct waiting_sort *s, size_t count);                 /* at least so many */
void waiting_sort_free(struct waiting_sort *s);

#endif
