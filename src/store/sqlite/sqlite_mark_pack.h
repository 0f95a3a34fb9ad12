/* store/sqlite/sqlite_mark_pack.h - marks of run events (run_columns.h) in bytes: a row of `mark_packs`.
 *
 * A pack begins with a checksum of the rest. Then, for each stretch of marks of one run: the run, how many
 * they are, how many bytes their places take, the hashes (eight bytes each), the places against the one
 * before. So who looks for one mark passes over other runs at once, and a mark takes nine bytes as a rule. */
#ifndef WEIR_STORE_SQLITE_MARK_PACK_H
#define WEIR_STORE_SQLITE_MARK_PACK_H

#include <sqlite3.h>

#include "store/store.h"

typedef void mark_fn(const struct run_mark_row *mark, void *arg);

/* Which marks of a pack are wanted. */
struct mark_filter {
    const int64_t *run, *hash; /* NULL: any */
};

/* The marks that a commit inserts, into an emptied buffer; nothing when there are none. */
void mark_pack_encode(struct strbuf *b, const struct change_set *c);
/* False: damaged. */
bool mark_pack_decode(struct str pack, struct mark_filter f, mark_fn *fn, void *arg);

/* The statement that mark_packs_each() steps, for any connection. */
#define MARK_PACKS_SQL "SELECT n,marks FROM mark_packs ORDER BY n"
/* Of every pack, oldest first. The numbers of the first and the last one may go to `ret_first`, `ret_last`
 * (NULL: not wanted); both are 0 when there is none. */
enum err_code mark_packs_each(sqlite3 *db, sqlite3_stmt *packs, struct mark_filter f, mark_fn *fn, void *arg,
                              int64_t *ret_first, int64_t *ret_last, struct err *err);

#endif
