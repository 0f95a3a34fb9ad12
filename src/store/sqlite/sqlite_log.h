/* store/sqlite/sqlite_log.h - the chunks of the log (store/log.h) in SQLite.
 *
 * A row of `log` is one chunk and never changes: a page of its own. A commit rarely has events for a page, so
 * its last chunk stays open. What the commit adds to it is a piece: bytes of the commit's row in `deferred`
 * (columns `chunk`, `start`, `log`), which is written anyway. The commit that fills the chunk writes it to
 * `log` as a whole; its pieces go with their rows (sqlite_deferred.h). So a page of the log is full however
 * small commits are, and an event costs the same disk at every load.
 *
 * A piece is the checksum of the chunk as far as it goes, eight bytes, then the chunk's bytes from `start`
 * on. The first piece of a chunk starts behind the checksum. Pieces of a chunk that is in `log` are of no
 * account. */
#ifndef WEIR_STORE_SQLITE_LOG_H
#define WEIR_STORE_SQLITE_LOG_H

#include <sqlite3.h>

#include "store/store.h"

struct sqlite_store;

/* The last chunk, as long as it is open. */
struct open_chunk {
    bool is_open;
    int64_t number;
    size_t len;
    char bytes[LOG_CHUNK_BYTES];
};

/* What a commit adds to the open chunk; `chunk` 0: nothing. */
struct log_piece {
    int64_t chunk;
    size_t start;
    struct strbuf bytes;
};

struct sqlite_log {
    struct open_chunk open, next; /* as it is committed; as the commit under way leaves it */
    struct log_piece piece;       /* of the commit under way */
    sqlite3_stmt *put, *drop, *count_on, *pieces;
};

enum err_code log_prepare(struct sqlite_store *s, struct err *err);
void log_close(struct sqlite_store *s);
enum err_code log_load(struct sqlite_store *s,
                       struct err *err); /* at open: next_chunk, first_chunk, open_bytes */

/* In a commit: whole chunks and what is dropped. Leaves its piece; `whole`: the pieces before it are dropped
 * with this commit, so it is all that the open chunk has. */
enum err_code log_write(struct sqlite_store *s, const struct change_set *c, bool whole, struct err *err);
void log_committed(struct sqlite_store *s, const struct change_set *c);

/* The open chunk of a connection's snapshot. One with a damaged or missing piece has no sound checksum. */
#define LOG_PIECES_SQL                                                                                       \
    "SELECT chunk,start,log FROM deferred WHERE chunk>coalesce((SELECT max(g) FROM log),0) ORDER BY n "      \
    "DESC"
enum err_code open_chunk_read(sqlite3 *db, sqlite3_stmt *pieces, struct open_chunk *ret, struct err *err);

/* Where the log's numbers go on: they do not start over when it was purged empty. */
#define NEXT_CHUNK_SQL                                                                                       \
    "SELECT max(coalesce((SELECT max(g) FROM log),0)+1,coalesce((SELECT max(chunk) FROM deferred),0)+1,"     \
    "coalesce((SELECT value FROM marks WHERE name='next_chunk'),0))"

#endif
