/* store/sqlite/sqlite_event_block.h - the run events of one commit in bytes: a row of `event_packs`.
 *
 * A block begins with a checksum of the rest. Then each event: its run, its number, how many bytes follow,
 * and in these its columns (store/row_bytes.h). */
#ifndef WEIR_STORE_SQLITE_EVENT_BLOCK_H
#define WEIR_STORE_SQLITE_EVENT_BLOCK_H

#include <sqlite3.h>

#include "base/err.h"
#include "store/rows.h"

void event_block_begin(struct strbuf *b); /* empties it */
/* Gives the packed columns, borrowed from the buffer until more is added. */
struct str event_block_add(struct strbuf *b, const struct run_event_row *e);
void event_block_end(struct strbuf *b);

/* False: it was not welcome, and the block counts as damaged. */
typedef bool event_block_fn(int64_t block, int64_t run, int64_t seq, struct str packed, void *arg);

/* False: damaged. */
bool event_block_decode(int64_t number, struct str block, event_block_fn *fn, void *arg);

/* The statement that event_blocks_each() steps, for any connection. */
#define EVENT_BLOCKS_SQL "SELECT n,events FROM event_packs ORDER BY n"
/* Of every block, oldest first. */
enum err_code event_blocks_each(sqlite3 *db, sqlite3_stmt *blocks, event_block_fn *fn, void *arg,
                                struct err *err);

#endif
