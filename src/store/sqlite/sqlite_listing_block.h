/* store/sqlite/sqlite_listing_block.h - what a commit adds to listings and counters, in bytes.
 *
 * A commit that moves one job changes a listing and a counter, each on a page of its own. Written there at
 * once they would be two of five pages. So they are a block of the commit's row in `deferred` (column
 * `listings`), and are merged into `list` and `client_stats` many at a time (sqlite_deferred.h). Until then
 * readers lay the blocks over the tables: the last word on a key counts. */
#ifndef WEIR_STORE_SQLITE_LISTING_BLOCK_H
#define WEIR_STORE_SQLITE_LISTING_BLOCK_H

#include <sqlite3.h>

#include "store/store.h"

struct listing_visitor {
    void (*entry)(const struct list_entry *e, void *arg);         /* may be NULL */
    void (*counts)(int64_t client, struct str counts, void *arg); /* may be NULL; borrowed for the call */
    void *arg;
};

/* Is this change part of a block? Only a counter that is there already; others are rows like any. */
bool counter_is_deferred(const struct row_change *change);

/* The block of a commit; nothing is added when it has neither entries nor counters. */
void listing_block_encode(struct strbuf *b, const struct change_set *c);
/* False: damaged. What was sound before the damage has been told. */
bool listing_block_decode(struct str block, const struct listing_visitor *v);

/* The statement that listing_blocks_each() steps, for any connection. */
#define LISTING_BLOCKS_SQL "SELECT n,listings FROM deferred WHERE listings IS NOT NULL ORDER BY n"
/* Every block, oldest first. */
enum err_code listing_blocks_each(sqlite3 *db, sqlite3_stmt *blocks, struct listing_visitor *v,
                                  struct err *err);

#endif
