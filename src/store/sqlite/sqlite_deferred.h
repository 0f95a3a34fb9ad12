/* store/sqlite/sqlite_deferred.h - writes that wait: one row of table `deferred` for each commit.
 *
 * Some of what a commit writes belongs on pages all over the file, or is too little for a page. It is packed
 * into the commit's row at the end of `deferred`, which costs one page however many kinds there are, and goes
 * to its place later, with that of many commits. A row's number is that of the commit, counted from the first
 * one of the database (sqlite_position.c), so every commit has a row, and the last row is always there.
 *
 * column             what                                     where it goes
 * listings           listing entries and counters             `list`, `client_stats` (sqlite_listing_block.h)
 * chunk, start, log  a piece of the log's last chunk          `log`, when the chunk is full (sqlite_log.h)
 *
 * After so many rows or entries a commit merges all of them and its own, and drops the rows before it. Merged
 * twice makes no difference: the last word on a key counts, and rows are dropped from the front. */
#ifndef WEIR_STORE_SQLITE_DEFERRED_H
#define WEIR_STORE_SQLITE_DEFERRED_H

#include <sqlite3.h>

#include "store/store.h"

struct sqlite_store;

struct sqlite_deferred {
    size_t rows, entries; /* in the table; listing entries of them */
    bool merges;          /* the commit under way does */
    struct strbuf block;  /* listings of the commit under way */
    sqlite3_stmt *put, *drop, *blocks;
};

enum err_code deferred_prepare(struct sqlite_store *s, struct err *err);
void deferred_close(struct sqlite_store *s);
enum err_code deferred_load(struct sqlite_store *s, struct err *err); /* at open: how much waits */

/* In a commit: its chunks of the log, then its row. */
enum err_code deferred_write(struct sqlite_store *s, const struct change_set *c, struct err *err);
void deferred_committed(struct sqlite_store *s, const struct change_set *c);

#endif
