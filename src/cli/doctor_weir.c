/* Checks of Weir itself: database, lock, server. */
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "base/must.h"
#include "cli/doctor.h"
#include "cli/durable_file.h"
#include "cli/server_call.h"
#include "store/store_open.h"

#include "base/banned.h"

enum {
    SQLITE_WAL_RESET_FIXED = 3051003,
    QUICK_LOOK_MS = 2000,
    SERVER_TIMEOUT_MS = 3000,
};

struct finding doctor_sqlite(const struct doctor *d)
{
    if (d->on_postgres)
        return (struct finding){.level = FINDING_OK, .advice = ""};
    if (sqlite3_libversion_number() >= SQLITE_WAL_RESET_FIXED)
        return finding(FINDING_OK, "", "%s", sqlite3_libversion());
    return finding(FINDING_WARN,
                   "nothing to do: Weir's checkpoints cannot meet it; never write to the "
                   "database by other means while it runs",
                   "%s has the WAL-reset bug (fixed in 3.51.3)", sqlite3_libversion());
}

static bool no_database(const struct doctor *d, struct finding *ret)
{
    if (d->on_postgres ? d->look_err.code != ERR_OK || d->look.has_tables : file_exists(d->store_path))
        return false;
    *ret = finding(FINDING_OK, "", "no database yet; `weir serve` makes it");
    return true;
}

static enum err_code open_reader(const struct doctor *d, struct reader **ret, struct err *err)
{
    struct store_options options = {.url = d->store_url, .timeout_ms = 2000};
    return store_open_reader(&options, ret, err);
}

struct finding doctor_schema(const struct doctor *d)
{
    struct finding none;
    struct reader *reader;
    struct err err;
    if (no_database(d, &none))
        return none;
    if (open_reader(d, &reader, &err) != ERR_OK)
        return finding(FINDING_FAIL, "run `weir verify`; restore a backup if it is damaged", "%s",
                       err.detail);
    reader->ops->reader_close(reader);
    return finding(FINDING_OK, "", "version %d", STORE_SCHEMA_VERSION);
}

struct quick_look {
    int64_t until_ms;
    uint64_t tasks, chunks, unsound;
    bool cut_short;
};

static bool still_time(struct quick_look *q)
{
    q->cut_short = clock_mono_ms(&clock_system) >= q->until_ms;
    return !q->cut_short;
}

static bool look_at_task(const void *row, void *arg)
{
    struct quick_look *q = arg;
    (void)row;
    q->tasks++;
    return still_time(q);
}

static bool look_at_chunk(int64_t number, struct str chunk, void *arg)
{
    struct quick_look *q = arg;
    (void)number;
    q->chunks++;
    q->unsound += !log_chunk_is_sound(chunk);
    return still_time(q);
}

struct finding doctor_store(const struct doctor *d)
{
    struct finding none;
    struct reader *reader;
    struct err err;
    struct quick_look q = {.until_ms = clock_mono_ms(&clock_system) + QUICK_LOOK_MS};
    if (no_database(d, &none))
        return none;
    if (open_reader(d, &reader, &err) != ERR_OK)
        return finding(FINDING_FAIL, "see the schema above", "not readable");
    enum err_code code = reader->ops->reader_begin(reader, &err);
    if (code == ERR_OK) {
        code = reader->ops->reader_scan(reader, &table_task_row, look_at_task, &q, &err);
        if (code == ERR_OK && !q.cut_short)
            code = reader->ops->reader_scan_log(reader, 0, look_at_chunk, &q, &err);
        reader->ops->reader_end(reader);
    }
    reader->ops->reader_close(reader);
    if (code != ERR_OK)
        return finding(FINDING_FAIL, "run `weir verify`; restore a backup if it is damaged", "%s",
                       err.detail);
    return finding(q.unsound ? FINDING_FAIL : FINDING_OK, "run `weir verify`, then restore a backup",
                   "%" PRIu64 " live tasks, %" PRIu64 " log chunks looked at%s, %" PRIu64
                   " damaged (`weir verify` checks everything)",
                   q.tasks, q.chunks, q.cut_short ? " in 2 s" : "", q.unsound);
}

struct finding doctor_high_water(const struct doctor *d)
{
    struct high_water mark, position;
    struct err err;
    if (d->on_postgres)
        return (struct finding){.level = FINDING_OK, .advice = ""};
    mark = high_water_read(d->store_path); /* first: a server may commit meanwhile */
    if (store_position_sqlite(d->store_path, &position, &err) != ERR_OK)
        return finding(FINDING_FAIL, "see the schema above", "not readable");
    if (high_water_judge(&mark, &position, &err) != ERR_OK)
        return finding(FINDING_FAIL, "put the files back, restore a backup, or `weir serve --accept-loss`",
                       "%s", err.detail);
    if (!mark.store && position.store)
        return finding(FINDING_WARN, "nothing to do: the next `weir serve` makes it anew",
                       "the mark is missing or damaged, so nobody can tell whether commits are missing");
    if (!mark.store)
        return finding(FINDING_OK, "", "no mark yet; `weir serve` makes it");
    return finding(FINDING_OK, "", "%" PRId64 " commits, all there", mark.commits);
}

/* The number in the lock file; 0 when there is none. */
static int64_t lock_pid(const char *path)
{
    char text[24] = "";
    int64_t pid = 0;
    FILE *file = fopen(path, "re");
    if (file && fgets(text, sizeof text, file)) {
        struct str rest = str_of(text);
        if (!str_to_int(str_cut(&rest, '\n'), 1, INT_MAX, &pid))
            pid = 0;
    }
    if (file)
        fclose(file);
    return pid;
}

/* The kernel's list of locks names pid, device and inode, so nothing has to be locked to find out. Some
 * file systems show another device there than stat does; then the pid has to be the one expected. */
static bool lock_is_held(const char *path)
{
    struct stat info;
    char line[256], device[64], inode[32], pid[32];
    bool held = false;
    if (stat(path, &info) != 0)
        return false;
    snprintf(inode, sizeof inode, ":%" PRIu64 " ", (uint64_t)info.st_ino);
    snprintf(device, sizeof device, " %02x:%02x%s", major(info.st_dev), minor(info.st_dev), inode);
    snprintf(pid, sizeof pid, " %" PRId64 " ", lock_pid(path));
    FILE *locks = fopen("/proc/locks", "re");
    while (locks && !held && fgets(line, sizeof line, locks))
        held = strstr(line, "FLOCK") && strstr(line, inode) && (strstr(line, device) || strstr(line, pid));
    if (locks)
        fclose(locks);
    return held;
}

struct finding doctor_lock(const struct doctor *d)
{
    if (!lock_is_held(d->lock_path))
        return finding(FINDING_OK, "", "free: no server uses the data directory");
    return finding(FINDING_OK, "", "held by process %" PRId64, lock_pid(d->lock_path));
}

/* "store ok, workers degraded" */
static void write_checks(const struct json *checks, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (const struct json *c = checks ? checks->child : NULL; c && used < size; c = c->next)
        used += (size_t)snprintf(out + used, size - used, "%s%.*s %.*s", used ? ", " : "", STR_ARG(c->key),
                                 STR_ARG(c->text));
}

/* The warnings that a ready server may report, the worst first: a part of its checks, and the advice. */
static const struct {
    const char *check, *advice;
} server_warnings[] = {
    {"clock warn", "the machine's clock has jumped, and nothing is deleted for an hour: set it right, or "
                   "`weir clock accept` if it is"},
    {"jobs full", "jobs.max_active is reached and submits are refused: start workers, cancel what nobody "
                  "needs, or raise it"},
    {"queue full", "jobs.queue_size is reached and submits are refused: start workers, or raise it"},
    {"client_share full", "a client has its share of the jobs and is refused: start workers for its queues, "
                          "or raise jobs.max_active_per_client"},
    {"pressure shed", "the server sheds load: see what is full in `weir top`"},
    {"pressure degraded", "the server is under pressure: see what is full in `weir top`"},
    {"workers degraded", "no worker is connected: start one, or set runner.processes for the simulated work"},
};

static struct finding judge_ready(const char *checks)
{
    for (size_t i = 0; i < LENGTH_OF(server_warnings); i++)
        if (strstr(checks, server_warnings[i].check))
            return finding(FINDING_WARN, server_warnings[i].advice, "ready: %s", checks);
    return finding(FINDING_OK, "", "ready: %s", checks);
}

struct finding doctor_server(const struct doctor *d)
{
    struct strbuf url CLEANUP(strbuf_free) = {0};
    struct http_answer answer CLEANUP(http_answer_free) = {0};
    struct err err;
    char checks[192];
    server_url(d->in, &url);
    size_t base = url.len;
    strbuf_add_text(&url, "/readyz");
    struct http_call call = {
        .method = "GET", .url = url.ptr, .trust = server_trust(d->in), .timeout_ms = SERVER_TIMEOUT_MS};
    if (http_call(&call, &answer, &err) != ERR_OK) {
        bool held = lock_is_held(d->lock_path);
        return finding(held ? FINDING_FAIL : FINDING_WARN,
                       held ? "a server holds the data directory: give its --url, or read its log"
                            : "start it with `weir serve`, or name another with --url",
                       "%.*s does not answer", (int)(base < 200 ? base : 200), url.ptr);
    }
    struct arena *a = arena_new(4096);
    const struct json *body = NULL;
    if (json_parse(a, strbuf_str(&answer.body), &body, &err) != ERR_OK)
        body = NULL;
    write_checks(json_get(body, "checks"), checks, sizeof checks);
    arena_free(a);
    if (answer.status != 200)
        return finding(FINDING_FAIL, "it starts, drains or lost its store; read its log",
                       "not ready, status %ld: %s", answer.status, checks);
    return judge_ready(checks);
}
