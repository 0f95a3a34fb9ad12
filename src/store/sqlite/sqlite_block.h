/* store/sqlite/sqlite_block.h - a block: what one commit has of one kind of deferred write, in bytes.
 *
 * Blocks are rows of an append area, a table with one row for each commit that has something of the kind.
 * They are added behind the last one, read oldest first, and dropped from the front (sqlite_deferred.h,
 * sqlite_deferred_rows.h). */
#ifndef WEIR_STORE_SQLITE_BLOCK_H
#define WEIR_STORE_SQLITE_BLOCK_H

#include <sqlite3.h>

#include "base/err.h"
#include "base/str.h"

/* A block with a checksum of its content, which is added to the buffer in between. */
void block_begin(struct strbuf *b);     /* empties the buffer */
struct str block_end(struct strbuf *b); /* the content, borrowed */
/* False: damaged. */
bool block_content(struct str block, struct str *ret_content);

/* False: the block is damaged. */
typedef bool block_fn(int64_t number, struct str block, void *arg);
/* Every row of a SELECT of (number, block). `table` and `what` tell people which one is damaged. */
enum err_code blocks_each(sqlite3 *db, sqlite3_stmt *q, const char *table, const char *what, block_fn *fn,
                          void *arg, struct err *err);

#endif
