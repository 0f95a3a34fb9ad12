/* store/sqlite/sqlite_event_pack.h - the events of a commit in bytes: a row of `event_packs`.
 *
 * A pack begins with a checksum of the rest. Then each event: its run, its number, how many bytes follow, and
 * in these its columns (store/row_bytes.h). */
#ifndef WEIR_STORE_SQLITE_EVENT_PACK_H
#define WEIR_STORE_SQLITE_EVENT_PACK_H

#include <sqlite3.h>

#include "base/err.h"
#include "store/rows.h"

void event_pack_begin(struct strbuf *b); /* empties it */
/* Gives the packed columns, borrowed from the buffer until more is added. */
struct str event_pack_add(struct strbuf *b, const struct run_event_row *e);
void event_pack_end(struct strbuf *b);

/* False: it was not welcome, and the pack counts as damaged. */
typedef bool event_pack_fn(int64_t pack, int64_t run, int64_t seq, struct str packed, void *arg);

/* False: damaged. */
bool event_pack_decode(int64_t number, struct str pack, event_pack_fn *fn, void *arg);

/* The statement that event_packs_each() steps, for any connection. */
#define EVENT_PACKS_SQL "SELECT n,events FROM event_packs ORDER BY n"
/* Of every pack, oldest first. */
enum err_code event_packs_each(sqlite3 *db, sqlite3_stmt *packs, event_pack_fn *fn, void *arg,
                               struct err *err);

#endif
