/* store/bench_former.h - databases of former programs, and what a schema is, in words. For SQLite and
 * PostgreSQL. */
#ifndef WEIR_TESTS_BENCH_FORMER_H
#define WEIR_TESTS_BENCH_FORMER_H

#include "store/bench_store.h"

/* The first schema that there was of this database. */
int bench_first_version(const struct bench *b);
/* Puts an empty database of this former version in the place of the store's, runs `sql` on it (NULL: nothing)
 * and opens the store again, which brings it up to date. Of a SQLite file `sql` finds the database that was
 * there until now attached as `now`. */
void bench_from_version(struct bench *b, int version, const char *sql);
/* The schema of the store: a line for each column, constraint, index and whatever else belongs to it, in an
 * order that does not depend on how it came about. In the arena. */
const char *bench_schema_words(struct bench *b);

#endif
