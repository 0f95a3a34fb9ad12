/* The frames of a commit reach the disk in large pieces. SQLite writes each page to its WAL with two calls,
 * 24 bytes and 4096; a commit of thirty changes had more than a hundred calls. The pieces follow each other
 * in the file, so they are gathered here and written as one when the sync comes, which a commit waits for
 * anyway.
 *
 * Why that is safe: no other connection looks at a frame before the index in shared memory names it, and with
 *                   synchronous=FULL SQLite changes the index after the sync. Our own connection may read
 *                   bytes it has just written, and other questions about the file must see its full length:
 *                   so the gathered bytes are written before any call but a write that follows the last one.
 *                   A failed write is reported by the sync, and SQLite takes the commit back as after any
 *                   other failed write. */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum { GATHERED_MAX = 120 * 1024 }; /* SQLite's own files take less than 128 KiB at a time */

/* Stands in for the methods of the WAL's file; the file itself is SQLite's. */
struct wal_writes {
    sqlite3_io_methods methods; /* first: the methods that the file points to */
    const sqlite3_io_methods *under;
    sqlite3_int64 at; /* where `bytes` belong */
    int count;
    char bytes[GATHERED_MAX];
};

static struct wal_writes *of(sqlite3_file *f)
{
    return (struct wal_writes *)(void *)(uintptr_t)f->pMethods;
}

/* Failed bytes are dropped: SQLite has the error, and writes those frames again when it wants them. */
static int write_gathered(sqlite3_file *f)
{
    struct wal_writes *w = of(f);
    int count = w->count;
    w->count = 0;
    return count ? w->under->xWrite(f, w->bytes, count, w->at) : SQLITE_OK;
}

static int wal_write(sqlite3_file *f, const void *bytes, int count, sqlite3_int64 at)
{
    struct wal_writes *w = of(f);
    bool follows = w->count && at == w->at + w->count && count <= GATHERED_MAX - w->count;
    int rc = follows ? SQLITE_OK : write_gathered(f);
    if (rc != SQLITE_OK)
        return rc;
    if (count > GATHERED_MAX)
        return w->under->xWrite(f, bytes, count, at);
    if (!follows)
        w->at = at;
    memcpy(w->bytes + w->count, bytes, (size_t)count);
    w->count += count;
    return SQLITE_OK;
}

static int wal_read(sqlite3_file *f, void *bytes, int count, sqlite3_int64 at)
{
    int rc = write_gathered(f);
    return rc == SQLITE_OK ? of(f)->under->xRead(f, bytes, count, at) : rc;
}

static int wal_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    int rc = write_gathered(f);
    return rc == SQLITE_OK ? of(f)->under->xTruncate(f, size) : rc;
}

static int wal_sync(sqlite3_file *f, int flags)
{
    int rc = write_gathered(f);
    return rc == SQLITE_OK ? of(f)->under->xSync(f, flags) : rc;
}

static int wal_size(sqlite3_file *f, sqlite3_int64 *ret_size)
{
    int rc = write_gathered(f);
    return rc == SQLITE_OK ? of(f)->under->xFileSize(f, ret_size) : rc;
}

static int wal_control(sqlite3_file *f, int what, void *arg)
{
    int rc = write_gathered(f);
    return rc == SQLITE_OK ? of(f)->under->xFileControl(f, what, arg) : rc;
}

static int wal_close(sqlite3_file *f)
{
    struct wal_writes *w = of(f);
    int rc = write_gathered(f);
    f->pMethods = w->under;
    int closed = f->pMethods->xClose(f);
    free(w);
    return rc == SQLITE_OK ? closed : rc;
}

enum err_code wal_gather_writes(sqlite3 *db, struct err *err)
{
    sqlite3_file *wal = NULL;
    int rc = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, (void *)&wal);
    if (rc != SQLITE_OK)
        return sqlite_err(db, rc, "the WAL", err);
    if (!wal || !wal->pMethods)
        return ERR_OK; /* it has none */
    struct wal_writes *w = must_alloc(sizeof *w);
    w->under = wal->pMethods;
    w->methods = *w->under;
    w->methods.xClose = wal_close;
    w->methods.xRead = wal_read;
    w->methods.xWrite = wal_write;
    w->methods.xTruncate = wal_truncate;
    w->methods.xSync = wal_sync;
    w->methods.xFileSize = wal_size;
    w->methods.xFileControl = wal_control;
    wal->pMethods = &w->methods;
    return ERR_OK;
}
