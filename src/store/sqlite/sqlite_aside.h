/* store/sqlite/sqlite_aside.h - what a commit adds to listings and counters, packed beside its events.
 *
 * A commit that moves one job changes a listing and a counter, each on a page of its own. Written there at
 * once they would be two of five pages. So they ride in the row of the commit's last log chunk
 * (log.aside), and are merged into `list` and `client_stats` many at a time (sqlite_merge.c). Until then
 * readers lay the asides over the tables: the last word on a key counts. */
#ifndef WEIR_STORE_SQLITE_ASIDE_H
#define WEIR_STORE_SQLITE_ASIDE_H

#include <sqlite3.h>

#include "store/store.h"

struct aside_visitor {
    void (*entry)(const struct list_entry *e, void *arg);         /* may be NULL */
    void (*counts)(int64_t client, struct str counts, void *arg); /* may be NULL; borrowed for the call */
    void *arg;
};

/* Does this change ride? Only a counter that is there already; others are rows like any. */
bool aside_takes(const struct row_change *change);

/* The aside of a commit; nothing is added when it has neither entries nor counters. */
void aside_encode(struct strbuf *b, const struct change_set *c);
/* False: damaged. What was sound before the damage has been told. */
bool aside_decode(struct str aside, const struct aside_visitor *v);

/* The statement that aside_each() steps, for any connection. */
#define ASIDES_SQL                                                                                           \
    "SELECT g,aside FROM log WHERE g>=(SELECT value FROM marks WHERE name='merged') AND aside IS NOT NULL "  \
    "ORDER BY g"
/* Every aside that is not merged yet, oldest first; ret_count (may be NULL) is how many. */
enum err_code aside_each(sqlite3 *db, sqlite3_stmt *asides, const struct aside_visitor *v, size_t *ret_count,
                         struct err *err);

#endif
