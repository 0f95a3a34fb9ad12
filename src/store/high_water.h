/* store/high_water.h - how many commits a SQLite store has had, kept in a small file beside it.
 *
 * SQLite cannot tell a database whose WAL was removed, or that was replaced by an older copy, from one that
 * never had more. So the number of its last commit is also written here, outside of it, after each commit:
 * DATA/weir.mark for DATA/weir.db. A store that has fewer commits than its mark says has lost some, and is
 * not opened for writing unless the caller accepts that (sqlite_options.high_water).
 *
 * Cost:      one pwrite(2) of a line after a commit, no sync.
 * Killed:    the line is in the kernel's memory, so the mark is exact, or one commit behind.
 * Power cut: the mark may be old, never new: a commit is durable before it is noted. An old one notices less.
 * Text:      "weir-mark 1 ID COMMITS", one line of fixed length. ID is a random number that the database has
 *            as well; a database with another one is not the one that the mark is about.
 * Fails:     STORAGE_UNAVAILABLE. A mark that cannot be read as such counts as none. */
#ifndef WEIR_STORE_HIGH_WATER_H
#define WEIR_STORE_HIGH_WATER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct high_water {
    int64_t store;   /* ID of the database; 0: it has none yet */
    int64_t commits; /* it has had */
};

/* The mark in the file; {0, 0} when there is no readable one. */
struct high_water high_water_read(const char *database);
/* Makes or replaces it; durable when this returns. *ret_fd is for high_water_note, the caller's to close. */
MUST_CHECK enum err_code high_water_write(const char *database, const struct high_water *h, int *ret_fd,
                                          struct err *err);
/* After a commit. A line that cannot be written leaves the mark older, which is no loss. */
void high_water_note(int fd, const struct high_water *h);
MUST_CHECK enum err_code high_water_remove(const char *database, struct err *err); /* none is fine */

/* STORE_LOST, and how many commits are missing, when the store is behind its mark or another one. Pure. */
MUST_CHECK enum err_code high_water_judge(const struct high_water *mark, const struct high_water *store,
                                          struct err *err);

#endif
