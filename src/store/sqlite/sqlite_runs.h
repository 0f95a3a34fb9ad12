/* store/sqlite/sqlite_runs.h - a row of `list`: a run of neighbouring ids of one client and bucket.
 *
 * A listing of a million jobs as a million rows costs a search of the tree for every job that comes or ends,
 * and the tree is deeper the more jobs are stored. As runs it is one search for some hundred neighbours.
 *
 * Of a row, `first` is at most its first id, and every id is below `first` of the next row. `ids` holds the
 * first id against `first`, then each against the one before, as varints: mostly one to four bytes. */
#ifndef WEIR_STORE_SQLITE_RUNS_H
#define WEIR_STORE_SQLITE_RUNS_H

#include <sqlite3.h>

#include "base/err.h"
#include "base/str.h"

/* So many of four bytes each still lie on the row's own page, and several rows beside them. */
enum { RUN_IDS_MAX = 200 };

struct id_run {
    int64_t first;
    size_t count;
    int64_t ids[RUN_IDS_MAX];
};

/* Ids rise, and are at most RUN_IDS_MAX. The buffer is emptied first. */
void run_encode(struct strbuf *b, int64_t first, const int64_t *ids, size_t count);
/* False: damaged. Ids rise from `first` on. */
bool run_decode(int64_t first, struct str bytes, struct id_run *ret_run);

/* The function list_into_runs() for the migration that brings runs. */
enum err_code runs_register(sqlite3 *db, struct err *err);

#endif
