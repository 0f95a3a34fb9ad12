/* store/sqlite/sqlite_known_index.h - is an entry certainly not in `run_index`?
 *
 * Nearly every event is new, so nearly every entry that is looked for is absent. To learn that from the table
 * takes one of its pages, which is in no cache once a run is long. This is a Bloom filter of all entries in
 * the table: an entry that is not in the filter is not in the table. Its size is fixed; it is allocated when
 * first needed. With a few million entries hardly a search is in vain, with 13 million about one in fifty;
 * far beyond that the filter is useless and harmless.
 *
 * An existing table is read a part at a time after opening; until all of it is read nothing is certain. */
#ifndef WEIR_STORE_SQLITE_KNOWN_INDEX_H
#define WEIR_STORE_SQLITE_KNOWN_INDEX_H

#include <sqlite3.h>

#include "base/err.h"
#include "store/rows.h"

struct known_block;
struct sqlite_store;

struct known_index {
    struct known_block *blocks; /* NULL: none was added yet */
    uint64_t seed;
    bool complete;             /* the table has been read to its end */
    struct run_index_row last; /* and so far until now */
    bool has_last;
    sqlite3_stmt *read;
};

void known_index_add(struct known_index *k, const struct run_index_row *m);
bool known_index_lacks(const struct known_index *k, const struct run_index_row *m); /* true: certainly */
void known_index_free(struct known_index *k);

/* Of the writer, between commits: the table is read a little further, until all of it is known. */
enum err_code known_index_prepare(struct sqlite_store *s, struct err *err);
enum err_code known_index_tend(struct sqlite_store *s, struct err *err);

#endif
