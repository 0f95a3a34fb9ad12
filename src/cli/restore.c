/* weir restore FILE.
 *
 * Order, so that a crash at any point loses nothing:
 *   1  the lock of the data directory: no server runs, none can start;
 *   2  copy to NAME.restoring, sync, verify the copy: a bad backup changes nothing;
 *   3  the old database and its WAL get second names (hard links), sync: they are safe;
 *   4  the mark (store/high_water.h) and the old names go, sync: the old WAL must never meet the new
 *      database;
 *   5  the copy gets the database's name, sync; its mark says how many commits it has had.
 * Between 4 and 5 there is no database; running the command again finishes the work. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_members.h"
#include "cli/durable_file.h"
#include "cli/store_check.h"
#include "runtime/data_lock.h"
#include "store/store.h"

#include "base/banned.h"

enum { NAME_MORE = 64 };

struct restore {
    const char *from;
    char to[PATH_MAX], copy[PATH_MAX + NAME_MORE], aside[PATH_MAX + NAME_MORE];
    bool replaces;
    struct store_check check;
};

static void restore_free(struct restore *r)
{
    store_check_free(&r->check);
}

static void name_with(char out[PATH_MAX + 2 * NAME_MORE], const char *path, const char *ending)
{
    snprintf(out, PATH_MAX + 2 * NAME_MORE, "%s%s", path, ending);
}

static enum err_code remove_with(const char *path, const char *ending, struct err *err)
{
    char name[PATH_MAX + 2 * NAME_MORE];
    name_with(name, path, ending);
    return file_remove(name, err);
}

/* The mistakes that the caller has to correct; told. */
static int refuse(const struct invocation *in, const struct restore *r)
{
    char wal[PATH_MAX + 2 * NAME_MORE];
    name_with(wal, r->from, "-wal");
    if (!file_exists(r->from)) {
        cli_fault("there is no file %s", r->from);
        return CLI_NOT_FOUND;
    }
    if (file_bytes(wal) > 0) { /* made with cp while a server ran: it lacks what its WAL holds */
        cli_fault("%s stands beside it, so it is no finished backup; make one with `weir backup`", wal);
        return CLI_CONFLICT;
    }
    if (r->replaces && !flags_has(in->flags, FLAG_FORCE)) {
        cli_fault("there is a database at %s; --force replaces it and keeps it aside", r->to);
        return CLI_CONFLICT;
    }
    return CLI_OK;
}

static enum err_code copy_and_verify(const struct invocation *in, struct restore *r, struct err *err)
{
    if (remove_with(r->copy, "", err) != ERR_OK || file_copy_synced(r->from, r->copy, err) != ERR_OK ||
        store_check_file(in, r->copy, &r->check, err) != ERR_OK ||
        remove_with(r->copy, "-wal", err) != ERR_OK || remove_with(r->copy, "-shm", err) != ERR_OK)
        return err->code;
    if (r->check.result.problems)
        return err_set(err, ERR_STORE_CORRUPT,
                       "it does not agree with its log: %" PRIu64 " differences; nothing was changed",
                       r->check.result.problems);
    return ERR_OK;
}

static enum err_code link_aside(const struct restore *r, const char *ending, struct err *err)
{
    char old[PATH_MAX + 2 * NAME_MORE], aside[PATH_MAX + 2 * NAME_MORE];
    name_with(old, r->to, ending);
    name_with(aside, r->aside, ending);
    if (link(old, aside) == 0 || errno == ENOENT)
        return ERR_OK;
    return err_set(err, ERR_STORAGE_UNAVAILABLE, "cannot keep %.160s aside: %s", old, strerror(errno));
}

static enum err_code put_in_place(const struct restore *r, struct err *err)
{
    if (r->replaces && (link_aside(r, "", err) != ERR_OK || link_aside(r, "-wal", err) != ERR_OK ||
                        file_sync_directory_of(r->to, err) != ERR_OK))
        return err->code;
    if (high_water_remove(r->to, err) != ERR_OK || remove_with(r->to, "", err) != ERR_OK ||
        remove_with(r->to, "-wal", err) != ERR_OK || remove_with(r->to, "-shm", err) != ERR_OK ||
        file_sync_directory_of(r->to, err) != ERR_OK)
        return err->code;
    return file_publish(r->copy, r->to, err);
}

/* Fewer commits than before are no loss here: they are what was asked for. */
static enum err_code set_mark(const struct restore *r, struct err *err)
{
    struct high_water position;
    int fd;
    if (store_position_sqlite(r->to, &position, err) != ERR_OK)
        return err->code;
    if (!position.store) /* made before there were marks: the next start makes one */
        return ERR_OK;
    if (high_water_write(r->to, &position, &fd, err) != ERR_OK)
        return err->code;
    close(fd);
    return ERR_OK;
}

static void name_files(struct restore *r)
{
    char stamp[32];
    time_t now = (time_t)(clock_wall_ms(&clock_system) / 1000);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
    snprintf(r->copy, sizeof r->copy, "%s.restoring", r->to);
    snprintf(r->aside, sizeof r->aside, "%s.before-restore-%s", r->to, stamp);
}

/* With the lock held. */
static int restore(const struct invocation *in, struct restore *r)
{
    struct err err, ignored;
    r->replaces = file_exists(r->to);
    int refused = refuse(in, r);
    if (refused != CLI_OK)
        return refused;
    name_files(r);
    if (copy_and_verify(in, r, &err) == ERR_OK && put_in_place(r, &err) == ERR_OK &&
        set_mark(r, &err) == ERR_OK)
        return CLI_OK;
    cli_fault("%s: %s", r->from, err.detail);
    (void)!remove_with(r->copy, "", &ignored);
    (void)!remove_with(r->copy, "-wal", &ignored);
    (void)!remove_with(r->copy, "-shm", &ignored);
    return CLI_FAILED;
}

static void show_restore(const struct invocation *in, const struct restore *r)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    if (!in->json) {
        printf("%s: restored, %" PRIu64 " jobs, %" PRIu64 " events, verified\n", r->to, r->check.result.jobs,
               r->check.result.events);
        if (r->replaces)
            printf("the database before it is kept as %s\n", r->aside);
        return;
    }
    jw_start(&w, &text);
    jw_object(&w);
    encode_text(&w, "file", r->to);
    encode_text(&w, "kept_aside", r->replaces ? r->aside : NULL);
    store_check_write(&r->check, &w);
    jw_object_end(&w);
    printf("%s\n", text.ptr);
}

int command_restore(const struct invocation *in)
{
    struct restore r CLEANUP(restore_free) = {.from = in->args[0]};
    struct settings s CLEANUP(settings_free);
    struct err err;
    int lock;
    int code = cli_settings(in, &s);
    if (code != CLI_OK)
        return code;
    if (settings_store_is_postgres(&s)) {
        cli_fault("weir restore is for SQLite; with PostgreSQL use pg_restore (docs/operations/postgres.md)");
        return CLI_USAGE;
    }
    if (settings_store_path(&s, r.to, sizeof r.to, &err) != ERR_OK ||
        data_dir_create(s.data_dir, &err) != ERR_OK)
        return cli_err(&err);
    if (data_lock_take(s.data_dir, 0, &lock, &err) != ERR_OK) {
        cli_fault("%s", err.detail);
        return CLI_CONFLICT;
    }
    code = restore(in, &r);
    data_lock_release(lock);
    if (code == CLI_OK)
        show_restore(in, &r);
    return code;
}
