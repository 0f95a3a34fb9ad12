/* store/sqlite/sqlite_id_blocks.h - a row of `list`: a block of neighbouring ids of one client and bucket.
 *
 * A listing of a million jobs as a million rows costs a search of the tree for every job that comes or ends,
 * and the tree is deeper the more jobs are stored. As blocks it is one search for some hundred neighbours.
 *
 * Of a row, `first` is at most its first id, and every id is below `first` of the next row. `ids` holds the
 * first id against `first`, then each against the one before, as varints: mostly one to four bytes. */
#ifndef WEIR_STORE_SQLITE_ID_BLOCKS_H
#define WEIR_STORE_SQLITE_ID_BLOCKS_H

#include <sqlite3.h>

#include "base/err.h"
#include "base/str.h"

/* So many of four bytes each still lie on the row's own page, and several rows beside them. */
enum { ID_BLOCK_MAX = 200 };

struct id_block {
    int64_t first;
    size_t count;
    int64_t ids[ID_BLOCK_MAX];
};

/* Ids rise, and are at most ID_BLOCK_MAX. The buffer is emptied first. */
void id_block_encode(struct strbuf *b, int64_t first, const int64_t *ids, size_t count);
/* False: damaged. Ids rise from `first` on. */
bool id_block_decode(int64_t first, struct str bytes, struct id_block *ret_block);

/* The function list_into_runs() for the migration that brings runs. */
enum err_code id_blocks_register(sqlite3 *db, struct err *err);

#endif
