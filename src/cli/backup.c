/* weir backup FILE: a copy that has been checked before it gets its name. */
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_members.h"
#include "cli/durable_file.h"
#include "cli/store_check.h"

#include "base/banned.h"

struct backup {
    char from[PATH_MAX], to[PATH_MAX], partial[PATH_MAX + 32];
    struct store_check check;
    int64_t bytes, duration_ms;
};

static void backup_free(struct backup *b)
{
    store_check_free(&b->check);
}

/* A reader of a WAL database leaves these beside it. */
static void remove_sidecars(const char *path)
{
    static const char *const endings[] = {"-wal", "-shm", "-journal"};
    char name[PATH_MAX + 48];
    struct err ignored; /* a file more is no loss */
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        (void)!file_remove(name, &ignored);
    }
}

static enum err_code write_partial(const struct invocation *in, struct backup *b, struct err *err)
{
    /* SQLite fills the empty file; made here because it holds secrets and would be open to all. */
    if (file_create_private(b->partial, err) != ERR_OK ||
        store_backup_sqlite(b->from, b->partial, err) != ERR_OK || file_sync(b->partial, err) != ERR_OK ||
        store_check_file(in, b->partial, &b->check, err) != ERR_OK)
        return err->code;
    remove_sidecars(b->partial);
    if (b->check.result.problems)
        return err_set(err, ERR_STORE_CORRUPT,
                       "the copy does not agree with its log: %" PRIu64
                       " differences; run `weir verify` on the source",
                       b->check.result.problems);
    return ERR_OK;
}

static enum err_code make_backup(const struct invocation *in, struct backup *b, struct err *err)
{
    struct err ignored;
    int64_t start = clock_mono_ms(&clock_system);
    enum err_code code = write_partial(in, b, err);
    if (code == ERR_OK)
        code = file_publish(b->partial, b->to, err);
    if (code != ERR_OK) {
        remove_sidecars(b->partial);
        (void)!file_remove(b->partial, &ignored);
    }
    b->bytes = file_bytes(b->to);
    b->duration_ms = clock_mono_ms(&clock_system) - start;
    return code;
}

static void show_backup(const struct invocation *in, const struct backup *b)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    if (!in->json) {
        printf("%s: %" PRId64 " bytes, %" PRIu64 " jobs, %" PRIu64 " events, verified, %" PRId64 " ms\n",
               b->to, b->bytes, b->check.result.jobs, b->check.result.events, b->duration_ms);
        return;
    }
    jw_start(&w, &text);
    jw_object(&w);
    encode_text(&w, "file", b->to);
    encode_int(&w, "bytes", b->bytes);
    encode_int(&w, "backup_ms", b->duration_ms);
    store_check_write(&b->check, &w);
    jw_object_end(&w);
    printf("%s\n", text.ptr);
}

int command_backup(const struct invocation *in)
{
    struct backup b CLEANUP(backup_free) = {0};
    struct err err;
    int code = store_check_path(in, "backup", b.from, sizeof b.from);
    if (code != CLI_OK)
        return code;
    int n = snprintf(b.to, sizeof b.to, "%s", in->args[0]);
    if (n <= 0 || (size_t)n >= sizeof b.to) {
        cli_fault("the name of the backup is empty or too long");
        return CLI_USAGE;
    }
    if (file_exists(b.to)) { /* before the work; file_publish looks again */
        cli_fault("%s exists; it is not overwritten", b.to);
        return CLI_CONFLICT;
    }
    snprintf(b.partial, sizeof b.partial, "%s.partial-%d", b.to, (int)getpid());
    if (make_backup(in, &b, &err) != ERR_OK) {
        cli_fault("%s", err.detail);
        return CLI_FAILED;
    }
    show_backup(in, &b);
    cli_note(in, "To go back to it: stop the server, then weir restore %s", b.to);
    return CLI_OK;
}
