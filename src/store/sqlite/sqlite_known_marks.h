/* store/sqlite/sqlite_known_marks.h - is a mark surely not in `run_marks`?
 *
 * Nearly every event is new, so nearly every mark that is looked for is not there, and to learn that from
 * the table takes a page of it, one that is in no cache once a run is long. This is a Bloom filter of all
 * that the table holds: what it does not know is not there. It has a fixed size, made when first needed:
 * hardly a mark is looked up for nothing while there are a few million, about one in fifty at 13 million; far
 * beyond that it is of no use and does no harm.
 *
 * A table that is there when it is opened is read a part at a time; until that is done nothing is sure. */
#ifndef WEIR_STORE_SQLITE_KNOWN_MARKS_H
#define WEIR_STORE_SQLITE_KNOWN_MARKS_H

#include <sqlite3.h>

#include "base/err.h"
#include "store/rows.h"

struct known_block;

struct known_marks {
    struct known_block *blocks; /* NULL: none was added yet */
    uint64_t seed;
    bool complete;            /* the table has been read to its end */
    struct run_mark_row last; /* and so far until now */
    bool has_last;
};

void known_marks_add(struct known_marks *k, const struct run_mark_row *m);
bool known_marks_lack(const struct known_marks *k, const struct run_mark_row *m); /* true: surely */
void known_marks_free(struct known_marks *k);

/* The statement that known_marks_read() steps. */
#define KNOWN_MARKS_SQL "SELECT run,hash FROM run_marks WHERE (run,hash)>=(?1,?2) ORDER BY run,hash LIMIT ?3"
/* Reads some thousand marks more, unless it is complete. */
enum err_code known_marks_read(struct known_marks *k, sqlite3 *db, sqlite3_stmt *q, struct err *err);

#endif
