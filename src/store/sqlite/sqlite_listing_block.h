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

/* A word on a key: an entry of a listing, or the counters of a client. */
struct listing_word {
    struct list_entry entry; /* of counters: the client */
    struct str counts;       /* absent: it is an entry */
    size_t nth;              /* words were before it */
};

typedef void listing_word_fn(const struct listing_word *w, void *arg); /* counts borrowed for the call */

/* Is this change part of a block? Only a counter that is there already; others are rows like any. */
bool counter_is_deferred(const struct row_change *change);

/* The block of a commit; nothing is added when it has neither entries nor counters. */
void listing_block_encode(struct strbuf *b, const struct change_set *c);
/* False: damaged. What was sound before the damage has been told. */
bool listing_block_decode(struct str block, listing_word_fn *fn, void *arg);

/* The statement that listing_blocks_each() steps, for any connection. */
#define LISTING_BLOCKS_SQL "SELECT n,listings FROM deferred WHERE listings IS NOT NULL ORDER BY n"
/* Every word of every block, oldest first. */
enum err_code listing_blocks_each(sqlite3 *db, sqlite3_stmt *blocks, listing_word_fn *fn, void *arg,
                                  struct err *err);

struct listing_words {
    struct listing_word *words;
    size_t count, capacity;
    struct arena *arena;
};

void listing_words_add(const struct listing_word *w, void *words); /* copied */
/* Leaves the last word on each key: entries by client, bucket and id, behind them counters by client. Returns
 * how many are entries. */
size_t listing_words_last(struct listing_words *w);
void listing_words_free(struct listing_words *w);

#endif
