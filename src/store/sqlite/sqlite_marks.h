/* store/sqlite/sqlite_marks.h - marks of run events on their way into `run_marks`.
 *
 * A mark is a digest, so the marks of a commit belong on pages all over those of its run: written there at
 * once, each costs a page, and the more the longer the run. So the marks of a commit go, packed, into one row
 * at the end of `mark_packs`, and are kept in memory, where the writer finds them. When a group has gathered
 * it is merged into `run_marks` in its order, a slice with each commit of marks that follows, so that a page
 * takes many and no commit waits for all; then its packs are dropped, a few with each commit. Meanwhile the
 * next group gathers.
 *
 * After a crash all packs that are left are one group: marks never change, so those that had been merged are
 * merged again and make no difference. Readers look into the table, then into the packs. */
#ifndef WEIR_STORE_SQLITE_MARKS_H
#define WEIR_STORE_SQLITE_MARKS_H

#include "store/sqlite/sqlite_known_marks.h"
#include "store/sqlite/sqlite_mark_pack.h"
#include "store/sqlite/sqlite_mark_set.h"

struct sqlite_store;
struct sqlite_connection;

struct sqlite_marks {
    size_t group;                  /* so many are merged together */
    struct mark_set young, old;    /* that gather; that are being merged */
    struct mark_sort sort;         /* of the old ones */
    size_t merged;                 /* of `sort`, from its beginning on */
    int64_t first_pack, next_pack; /* packs in [first_pack, next_pack) are there */
    int64_t old_below;             /* those under it are of the old ones */
    struct known_marks known;      /* that `run_marks` has */
    /* The commit under way: its pack, how many old marks it merges, which packs it drops. */
    struct strbuf pack;
    size_t slice;
    int64_t drop_below;
    bool all_at_once; /* it deletes a mark: nothing may wait that would bring it back */
    sqlite3_stmt *packs, *put, *drop, *merge, *read_known;
};

enum err_code marks_prepare(struct sqlite_store *s, struct err *err);
void marks_close(struct sqlite_store *s);
enum err_code marks_load(struct sqlite_store *s, struct err *err); /* at open */

/* In a commit, before its rows; those that ride are then no rows to be written. */
enum err_code marks_write(struct sqlite_store *s, const struct change_set *c, struct err *err);
bool marks_ride(const struct sqlite_store *s, const struct row_change *r);
void marks_committed(struct sqlite_store *s, const struct change_set *c);

/* Between commits: what `run_marks` has is read a little further, until all of it is known. */
enum err_code marks_tend(struct sqlite_store *s, struct err *err);

/* The writer's fetch. */
enum err_code marks_of_writer(struct sqlite_store *s, struct run_mark_row *row, bool *ret_found,
                              struct err *err);
/* A connection's, of what is committed: one by its key; and in order all of them, or at most `max` of a run
 * from a hash on (`from`, or NULL). */
enum err_code marks_fetch(struct sqlite_connection *c, sqlite3_stmt *packs, struct run_mark_row *row,
                          bool *ret_found, struct err *err);
enum err_code marks_scan(struct sqlite_connection *c, sqlite3_stmt *packs, const struct run_mark_row *from,
                         size_t max, store_row_fn *fn, void *arg, struct err *err);

#endif
