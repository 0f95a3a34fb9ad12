/* store/sqlite/sqlite_index_block.h - the run index entries of one commit in bytes: a row of `mark_packs`.
 *
 * A block begins with a checksum of the rest. Then, for each stretch of entries of one run: the run, how many
 * entries, how many bytes their places take, the hashes (eight bytes each), the places as differences. A
 * search for one entry therefore skips other runs at once, and most entries take nine bytes. */
#ifndef WEIR_STORE_SQLITE_INDEX_BLOCK_H
#define WEIR_STORE_SQLITE_INDEX_BLOCK_H

#include <sqlite3.h>

#include "store/store.h"

typedef void index_fn(const struct run_index_row *entry, void *arg);

/* Which entries of a block are wanted. */
struct index_filter {
    const int64_t *run, *hash; /* NULL: any */
};

/* The entries that a commit inserts, into an emptied buffer; nothing when there are none. */
void index_block_encode(struct strbuf *b, const struct change_set *c);
/* False: damaged. */
bool index_block_decode(struct str block, struct index_filter f, index_fn *fn, void *arg);

/* The statement that index_blocks_each() steps, for any connection. */
#define INDEX_BLOCKS_SQL "SELECT n,marks FROM mark_packs ORDER BY n"
/* Of every block, oldest first. The numbers of the first and the last one may go to `ret_first`, `ret_last`
 * (NULL: not wanted); both are 0 when there is none. */
enum err_code index_blocks_each(sqlite3 *db, sqlite3_stmt *blocks, struct index_filter f, index_fn *fn,
                                void *arg, int64_t *ret_first, int64_t *ret_last, struct err *err);

#endif
