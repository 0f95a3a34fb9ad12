/* store/sqlite/sqlite_feed.h - many rows into a table by one statement.
 *
 * A statement that is bound, stepped and reset for each row spends half its time on beginning and ending.
 * The feed is a virtual table of the writer's connection whose rows are C structs; INSERT ... SELECT takes
 * them all at once, and SQLite keeps its place in the b-tree from one row to the next (docs/performance.md).
 * For a few rows the plain statement is as good. */
#ifndef WEIR_STORE_SQLITE_FEED_H
#define WEIR_STORE_SQLITE_FEED_H

#include <sqlite3.h>

#include "store/store.h"

enum { FEED_COLUMNS = TABLE_COLUMNS_MAX, FEED_ROWS_MIN = 4 };

struct feed {
    const struct table *table;
    const void *const *rows;
    size_t count;
};

/* The connection's table "feed" has columns c0, c1, ... and shows what `feed` holds at that moment. */
MUST_CHECK enum err_code feed_connect(sqlite3 *db, struct feed *feed, struct err *err);
/* "VERB INTO t(...) SELECT c0,c1,... FROM feed"; the verb is INSERT, INSERT OR IGNORE or REPLACE. */
MUST_CHECK enum err_code feed_prepare(sqlite3 *db, const char *verb, const struct table *t,
                                      sqlite3_stmt **ret, struct err *err);
/* Runs it over the rows, which are structs of the table. */
MUST_CHECK enum err_code feed_write(sqlite3 *db, struct feed *feed, sqlite3_stmt *q, const struct table *t,
                                    const void *const *rows, size_t count, struct err *err);

#endif
