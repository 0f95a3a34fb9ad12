/* Connections: pragmas, errors, prepared statements.
 *
 * Of a database that is served exactly one connection writes. It checkpoints too, and so does the one of the
 * checkpoint thread; never both at a time (sqlite_checkpoint.c says why that is safe with SQLite before
 * 3.51.3). All other connections, those of `weir verify`, `backup`, `doctor` and the like in other processes
 * too, are read-only and make no checkpoint, not even when they are the last one to close. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum { WRITER_CACHE_KIB = 8192, READER_CACHE_KIB = 2048 };

/* Not only writes need room: to open a WAL its index is made first. */
static bool is_full(sqlite3 *db, int rc)
{
    int kind = rc & 0xFF;
    int reason = db && (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN) ? sqlite3_system_errno(db) : 0;
    return kind == SQLITE_FULL || reason == ENOSPC || reason == EDQUOT;
}

enum err_code sqlite_err(sqlite3 *db, int rc, const char *doing, struct err *err)
{
    int extended = db ? sqlite3_extended_errcode(db) : rc;
    const char *text = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
    if (extended == SQLITE_IOERR_FSYNC || extended == SQLITE_IOERR_DIR_FSYNC)
        return err_set(err, ERR_STORE_FSYNC, "%s: the disk refused to sync", doing);
    if (is_full(db, rc)) {
        err_set(err, ERR_STORAGE_DB_ERROR, "the disk is full; nothing was written");
        err->retry_after_s = 5;
        err->no_room = true;
        return err->code;
    }
    switch (rc & 0xFF) {
    case SQLITE_BUSY:
        return err_set(err, ERR_STORAGE_DB_ERROR, "%s: the database is locked by another program", doing);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return err_set(err, ERR_STORE_CORRUPT, "%s: %s", doing, text);
    case SQLITE_CANTOPEN:
        return err_set(err, ERR_STORAGE_UNAVAILABLE, "%s: %s", doing, text);
    }
    return err_set(err, ERR_STORAGE_DB_ERROR, "%s: %s (%d)", doing, text, extended);
}

enum err_code sqlite_run(sqlite3 *db, const char *sql, struct err *err)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? ERR_OK : sqlite_err(db, rc, "sqlite", err);
}

enum err_code sqlite_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct err *err)
{
    int rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
    return rc == SQLITE_OK ? ERR_OK : sqlite_err(db, rc, "prepare", err);
}

enum err_code sqlite_number(sqlite3 *db, const char *sql, int64_t *ret, struct err *err)
{
    sqlite3_stmt *q = NULL;
    if (sqlite_prepare(db, sql, &q, err) != ERR_OK)
        return err->code;
    int rc = sqlite3_step(q);
    *ret = rc == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : sqlite_err(db, rc, "read", err);
}

enum err_code sqlite_step_done(sqlite3 *db, sqlite3_stmt *q, const char *doing, struct err *err)
{
    int rc = sqlite3_step(q);
    enum err_code code = rc == SQLITE_DONE ? ERR_OK : sqlite_err(db, rc, doing, err);
    sqlite3_reset(q);
    return code;
}

static enum err_code set_up_writer(sqlite3 *db, struct err *err)
{
    char sql[160];
    snprintf(sql, sizeof sql,
             "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=-%d;"
             "PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=OFF;",
             WRITER_CACHE_KIB);
    return sqlite_run(db, sql, err);
}

static enum err_code set_up_reader(sqlite3 *db, struct err *err)
{
    char sql[120];
    snprintf(sql, sizeof sql, "PRAGMA query_only=1; PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=-%d;",
             READER_CACHE_KIB);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return sqlite_run(db, sql, err);
}

enum err_code connection_open(struct sqlite_connection *c, const char *path, const char *vfs, bool writer,
                              int64_t timeout_ms, struct err *err)
{
    int flags =
        SQLITE_OPEN_NOMUTEX | (writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
    memset(c, 0, sizeof *c);
    int rc = sqlite3_open_v2(path, &c->db, flags, vfs);
    if (rc != SQLITE_OK) {
        sqlite_err(c->db, rc, writer ? path : "open", err); /* a reader's error reaches clients: no path */
        connection_close(c);
        return err->code;
    }
    sqlite3_extended_result_codes(c->db, 1);
    sqlite3_busy_timeout(c->db, (int)timeout_ms);
    enum err_code code = writer ? set_up_writer(c->db, err) : set_up_reader(c->db, err);
    if (code != ERR_OK)
        connection_close(c);
    return code;
}

void connection_close(struct sqlite_connection *c)
{
    for (unsigned i = 0; i < table_count; i++) {
        struct row_statements *r = &c->rows[i];
        sqlite3_stmt *all[] = {r->select, r->insert, r->insert_fed, r->update,
                               r->delete, r->scan,   r->of_client,  r->range};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            sqlite3_finalize(all[k]);
    }
    sqlite3_close(c->db);
    memset(c, 0, sizeof *c);
}
