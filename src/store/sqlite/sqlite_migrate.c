/* A new database is made from the descriptions of the tables; one of a former program gets the numbered
 * files of store/migrations that it lacks. Either happens in one transaction: whole or not at all, and for
 * one sync. PRAGMA user_version holds the number of the last file. A database from a newer program is
 * refused. */
#include <stdio.h>

#include "store/migrations/migrations.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

static enum err_code read_version(sqlite3 *db, int *ret_version, struct err *err)
{
    sqlite3_stmt *q = NULL;
    if (sqlite_prepare(db, "PRAGMA user_version", &q, err) != ERR_OK)
        return err->code;
    int rc = sqlite3_step(q);
    *ret_version = rc == SQLITE_ROW ? sqlite3_column_int(q, 0) : 0;
    sqlite3_finalize(q);
    if (rc != SQLITE_ROW)
        return sqlite_err(db, rc, "user_version", err);
    if (*ret_version < 0)
        return err_set(err, ERR_STORE_CORRUPT, "the database has schema version %d", *ret_version);
    return ERR_OK;
}

static enum err_code refuse_newer(int version, struct err *err)
{
    return err_set(err, ERR_CONFIG_INVALID,
                   "the database has schema version %d, this program knows up to %d; "
                   "run a newer weir, or restore a backup made before the upgrade",
                   version, STORE_SCHEMA_VERSION);
}

enum err_code sqlite_check_version(sqlite3 *db, struct err *err)
{
    int version = 0;
    if (read_version(db, &version, err) != ERR_OK)
        return err->code;
    if (version > STORE_SCHEMA_VERSION)
        return refuse_newer(version, err);
    if (version < STORE_SCHEMA_VERSION)
        return err_set(err, ERR_CONFIG_INVALID,
                       "the database has schema version %d, this program needs %d; start `weir serve` once",
                       version, STORE_SCHEMA_VERSION);
    return ERR_OK;
}

static enum err_code bring_up_from(sqlite3 *db, int version, struct err *err)
{
    char set_version[64];
    if (!version && sqlite_schema_make(db, err) != ERR_OK)
        return err->code;
    for (int n = version; version && n < STORE_SCHEMA_VERSION; n++)
        if (store_migrations[n].sqlite && sqlite_run(db, store_migrations[n].sqlite, err) != ERR_OK)
            return err->code;
    snprintf(set_version, sizeof set_version, "PRAGMA user_version=%d; COMMIT", STORE_SCHEMA_VERSION);
    return sqlite_run(db, set_version, err);
}

enum err_code sqlite_migrate(sqlite3 *db, struct err *err)
{
    int version = 0;
    if (read_version(db, &version, err) != ERR_OK)
        return err->code;
    if (version > STORE_SCHEMA_VERSION)
        return refuse_newer(version, err);
    if (version == STORE_SCHEMA_VERSION)
        return ERR_OK;
    if (id_blocks_register(db, err) != ERR_OK || sqlite_run(db, "BEGIN IMMEDIATE", err) != ERR_OK)
        return err->code;
    if (bring_up_from(db, version, err) == ERR_OK)
        return ERR_OK;
    struct err ignored; /* the first failure is the one to tell */
    (void)!sqlite_run(db, "ROLLBACK", &ignored);
    return err->code;
}
