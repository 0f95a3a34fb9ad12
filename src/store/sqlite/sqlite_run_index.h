/* store/sqlite/sqlite_run_index.h - the run index on its way into `run_marks`.
 *
 * The key of an index entry is a digest, so the entries of a commit belong on pages all over those of their
 * run: each would cost a page, and more pages the longer the run is. The entries of a commit therefore go,
 * packed, into one block at the end of `mark_packs`, and stay in memory, where the writer finds them. When a
 * group of entries has gathered, it is merged into `run_marks` in key order, a slice with each later commit,
 * so that one page takes many entries and no commit waits for the whole merge. Then the blocks of the group
 * are dropped, a few with each commit. Meanwhile the next group gathers.
 *
 * After a crash all remaining blocks are one group. Entries never change, so merging some of them again makes
 * no difference. Readers look into the table first, then into the blocks. */
#ifndef WEIR_STORE_SQLITE_RUN_INDEX_H
#define WEIR_STORE_SQLITE_RUN_INDEX_H

#include "store/sqlite/sqlite_known_index.h"
#include "store/sqlite/sqlite_index_block.h"
#include "store/sqlite/sqlite_index_set.h"

struct sqlite_store;
struct sqlite_connection;

struct sqlite_run_index {
    size_t group;                    /* so many are merged together */
    struct index_set young, old;     /* the group that gathers; the one that is being merged */
    struct index_sort sort;          /* of the old ones */
    size_t merged;                   /* of `sort`, from its beginning on */
    int64_t first_block, next_block; /* blocks in [first_block, next_block) are there */
    int64_t old_below;               /* those under it are of the old ones */
    struct known_index known;        /* that `run_marks` has */
    /* The commit under way: its block, how many old entries it merges, which blocks it drops. */
    struct strbuf block;
    size_t slice;
    int64_t drop_below;
    bool all_at_once; /* it deletes an entry: nothing may wait that would bring it back */
    sqlite3_stmt *blocks, *put, *drop, *merge, *read_known;
};

enum err_code run_index_prepare(struct sqlite_store *s, struct err *err);
void run_index_close(struct sqlite_store *s);
enum err_code run_index_load(struct sqlite_store *s, struct err *err); /* at open */

/* In a commit, before its rows; deferred ones are then no rows to be written. */
enum err_code run_index_write(struct sqlite_store *s, const struct change_set *c, struct err *err);
bool run_index_defers(const struct sqlite_store *s, const struct row_change *r);
void run_index_committed(struct sqlite_store *s, const struct change_set *c);

/* Between commits: what `run_marks` has is read a little further, until all of it is known. */
enum err_code run_index_tend(struct sqlite_store *s, struct err *err);

/* The writer's fetch. */
enum err_code run_index_of_writer(struct sqlite_store *s, struct run_index_row *row, bool *ret_found,
                                  struct err *err);
/* A connection's, of what is committed: one by its key; and in order all of them, or at most `max` of a run
 * from a hash on (`from`, or NULL). */
enum err_code run_index_fetch(struct sqlite_connection *c, sqlite3_stmt *blocks, struct run_index_row *row,
                              bool *ret_found, struct err *err);
enum err_code run_index_scan(struct sqlite_connection *c, sqlite3_stmt *blocks,
                             const struct run_index_row *from, size_t max, store_row_fn *fn, void *arg,
                             struct err *err);

#endif
