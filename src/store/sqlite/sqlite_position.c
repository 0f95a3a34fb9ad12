/* How many commits the database has had, and which one it is; its mark outside (store/high_water.h); and
 * whether the files that are open are still those at their paths.
 *
 * Every commit writes a row of `deferred` under its number, and the last one stays (sqlite_deferred.h). */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

#define NUMBER_OR_ZERO(name) "coalesce((SELECT value FROM marks WHERE name='" name "'),0)"
#define POSITION_SQL         "SELECT (SELECT max(n) FROM deferred)," NUMBER_OR_ZERO("store_id")
/* Up to schema 20 most commits wrote one chunk of the log; the others changed the difference. */
#define FORMER_POSITION_SQL                                                                                  \
    "SELECT max(coalesce((SELECT max(g) FROM log),0)," NUMBER_OR_ZERO("next_chunk") "-1)+" NUMBER_OR_ZERO(   \
        "commit_offset") "," NUMBER_OR_ZERO("store_id")

/* Of a database of any version; one without tables has had no commit. */
static enum err_code read_position(sqlite3 *db, struct high_water *ret, struct err *err)
{
    sqlite3_stmt *q = NULL;
    int64_t known;
    *ret = (struct high_water){0, 0};
    if (sqlite_number(db, "SELECT count(*) FROM sqlite_schema WHERE name IN('marks','deferred')", &known,
                      err) != ERR_OK)
        return err->code;
    if (!known)
        return ERR_OK;
    if (sqlite_prepare(db, known == 1 ? FORMER_POSITION_SQL : POSITION_SQL, &q, err) != ERR_OK)
        return err->code;
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW) {
        ret->commits = sqlite3_column_int64(q, 0);
        ret->store = sqlite3_column_int64(q, 1);
    }
    sqlite3_finalize(q);
    return rc == SQLITE_ROW ? ERR_OK : sqlite_err(db, rc, "position", err);
}

enum err_code store_position_sqlite(const char *path, struct high_water *ret, struct err *err)
{
    struct sqlite_connection c;
    struct stat info;
    *ret = (struct high_water){0, 0};
    if (stat(path, &info) != 0 || !info.st_size) /* a WAL without its database is nothing */
        return ERR_OK;
    if (connection_open(&c, path, NULL, false, 10000, err) != ERR_OK)
        return err->code;
    enum err_code code = read_position(c.db, ret, err);
    connection_close(&c);
    return code;
}

/* Read-only, before anything is made or written: a store that is refused stays as it was found. */
enum err_code position_check(const struct sqlite_options *o, struct err *ret_loss, struct err *err)
{
    struct high_water store, mark;
    *ret_loss = (struct err){.code = ERR_OK};
    if (o->high_water == HIGH_WATER_NONE)
        return ERR_OK;
    mark = high_water_read(o->path);
    if (!mark.commits)
        return ERR_OK;
    if (store_position_sqlite(o->path, &store, err) != ERR_OK)
        return err->code;
    if (high_water_judge(&mark, &store, ret_loss) == ERR_OK || o->high_water == HIGH_WATER_RESET)
        return ERR_OK;
    *err = *ret_loss;
    return err->code;
}

/* --- the open store ------------------------------------------------------------------------------ */

static bool file_of(const char *path, const char *ending, struct sqlite_file_id *ret)
{
    char name[4096];
    struct stat info;
    int n = snprintf(name, sizeof name, "%s%s", path, ending);
    if (n < 0 || (size_t)n >= sizeof name || stat(name, &info) != 0)
        return false;
    *ret = (struct sqlite_file_id){(uint64_t)info.st_dev, (uint64_t)info.st_ino};
    return true;
}

static enum err_code name_store(struct sqlite_store *s, struct err *err)
{
    char sql[120];
    int64_t id = (int64_t)(random_u64() >> 1) | 1;
    snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO marks(name,value) VALUES('store_id',%lld)",
             (long long)id);
    s->position.store = id;
    return sqlite_run(s->writer.db, sql, err);
}

enum err_code position_open(struct sqlite_store *s, enum high_water_mode mode, struct err *err)
{
    if (read_position(s->writer.db, &s->position, err) != ERR_OK)
        return err->code;
    if (mode == HIGH_WATER_NONE)
        return ERR_OK;
    s->base.mark_missing = s->position.store && !high_water_read(s->path).store;
    if (!s->position.store && name_store(s, err) != ERR_OK)
        return err->code;
    if (high_water_write(s->path, &s->position, &s->mark_fd, err) != ERR_OK)
        return err->code;
    s->watches = file_of(s->path, "", &s->database_file) && file_of(s->path, "-wal", &s->wal_file);
    return ERR_OK;
}

void position_committed(struct sqlite_store *s)
{
    s->position.commits++;
    high_water_note(s->mark_fd, &s->position);
}

void position_close(struct sqlite_store *s)
{
    if (s->mark_fd < 0)
        return;
    (void)!fdatasync(s->mark_fd); /* or the kernel does, later */
    close(s->mark_fd);
}

/* --- the files ------------------------------------------------------------------------------------- */

static bool is_still(const char *path, const char *ending, const struct sqlite_file_id *opened)
{
    struct sqlite_file_id now;
    return file_of(path, ending, &now) && now.device == opened->device && now.number == opened->number;
}

enum err_code sqlite_is_gone(const struct sqlite_store *s, struct err *err)
{
    return s->is_gone ? err_set(err, ERR_STORE_LOST,
                                "the database or its WAL was removed or replaced under the running server")
                      : ERR_OK;
}

enum err_code sqlite_watch(struct store *base, struct err *err)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    if (!s->watches)
        return ERR_OK;
    s->is_gone = !is_still(s->path, "", &s->database_file) || !is_still(s->path, "-wal", &s->wal_file);
    return sqlite_is_gone(s, err);
}
