/* weir store copy --from URL --to URL: a stopped server's store into another, of either kind.
 *
 * Order:  1  no other process uses either: the lock of an SQLite file's directory is held to the end, no
 *            other process has a lane on a PostgreSQL database;
 *         2  store_copy: counts, moves (or goes on where it broke off), counts again;
 *         3  both ends are verified;
 *         4  only then the target's store numbers go, and a server may start on it. */
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/must.h"
#include "base/store_url.h"
#include "cli/durable_file.h"
#include "cli/store_check.h"
#include "cli/table.h"
#include "runtime/data_lock.h"
#include "store/copy.h"
#include "store/store_open.h"

#include "base/banned.h"

enum { COPY_TIMEOUT_MS = 300000, PROGRESS_MS = 1000 }; /* a sort of a large table is one wait */

struct end {
    const char *flag; /* "from", "to" */
    const char *url;
    struct strbuf shown;
    int lock; /* -1: none */
    struct store_check check;
};

struct copy {
    const struct invocation *in;
    struct end from, to;
    struct reader *reader;
    struct store *store;
    struct copy_result result;
    /* progress */
    enum copy_step step;
    bool told;
    uint64_t step_begin;
    int64_t step_begin_ms, next_ms;
};

static void end_free(struct end *e)
{
    strbuf_free(&e->shown);
    store_check_free(&e->check);
    if (e->lock >= 0)
        data_lock_release(e->lock);
}

static void copy_free(struct copy *c)
{
    if (c->reader)
        c->reader->ops->reader_close(c->reader);
    store_close(c->store);
    end_free(&c->from);
    end_free(&c->to);
}

/* --- progress ------------------------------------------------------------------------------------- */

static void progress(void *self, enum copy_step step, int part, uint64_t done, uint64_t total)
{
    static const char *const doing[] = {[COPY_COUNTS_SOURCE] = "counting the source",
                                        [COPY_MOVES] = "copying",
                                        [COPY_COUNTS_TARGET] = "counting the target"};
    struct copy *c = self;
    int64_t now = clock_mono_ms(&clock_system);
    if (!c->told || step != c->step) {
        c->told = true;
        c->step = step;
        c->step_begin = done;
        c->step_begin_ms = c->next_ms = now;
    }
    if (now < c->next_ms)
        return;
    c->next_ms = now + PROGRESS_MS;
    int64_t ms = now - c->step_begin_ms;
    uint64_t rate = ms > 0 ? (done - c->step_begin) * 1000 / (uint64_t)ms : 0;
    if (total)
        cli_note(c->in, "%s: %s, %" PRIu64 " of %" PRIu64 " rows, %" PRIu64 " %%, %" PRIu64 " rows/s",
                 doing[step], copy_part_name(part), done, total, done * 100 / total, rate);
    else
        cli_note(c->in, "%s: %s, %" PRIu64 " rows, %" PRIu64 " rows/s", doing[step], copy_part_name(part),
                 done, rate);
}

/* --- the two ends --------------------------------------------------------------------------------- */

static int end_prepare(struct end *e, const struct invocation *in, enum flag_id flag)
{
    enum store_kind kind;
    e->flag = flag_table[flag].name;
    e->url = in->flags->value[flag];
    e->lock = -1;
    if (!e->url) {
        cli_fault("usage: weir store copy --from URL --to URL");
        return CLI_USAGE;
    }
    if (!store_url_kind(str_of(e->url), &kind)) {
        cli_fault("--%s must be %s", e->flag, STORE_URL_FORM);
        return CLI_USAGE;
    }
    store_url_show(str_of(e->url), &e->shown);
    return CLI_OK;
}

static bool same_directory(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The directory of an SQLite file; false for other stores. */
static bool directory_of(const struct end *e, char out[PATH_MAX])
{
    struct str file = store_url_file(str_of(e->url));
    if (!file.ptr || file.len >= PATH_MAX)
        return false;
    memcpy(out, file.ptr, file.len + 1);
    char *directory = dirname(out); /* points into `out`, or at "." */
    memmove(out, directory, strlen(directory) + 1);
    return true;
}

/* `other`: the end whose lock may be the same one. */
static int end_lock(struct end *e, const struct end *other)
{
    char directory[PATH_MAX], held[PATH_MAX];
    struct err err;
    if (!directory_of(e, directory))
        return CLI_OK;
    if (data_dir_create(directory, &err) != ERR_OK)
        return cli_err(&err);
    if (other->lock >= 0 && directory_of(other, held) && same_directory(directory, held))
        return CLI_OK;
    if (data_lock_take(directory, 0, &e->lock, &err) == ERR_OK)
        return CLI_OK;
    e->lock = -1;
    cli_fault("--%s: %s; stop the server first", e->flag, err.detail);
    return CLI_CONFLICT;
}

static int refuse_used(const struct end *e, struct reader *r)
{
    int64_t others = 0;
    struct err err;
    if (!r->ops->reader_others)
        return CLI_OK;
    enum err_code code = r->ops->reader_begin(r, &err);
    if (code == ERR_OK) {
        code = r->ops->reader_others(r, &others, &err);
        r->ops->reader_end(r);
    }
    if (code != ERR_OK)
        return cli_err(&err);
    if (!others)
        return CLI_OK;
    cli_fault("--%s: %" PRId64 " lanes of running servers use %s; stop them first", e->flag, others,
              e->shown.ptr);
    return CLI_CONFLICT;
}

/* Half a store is no source. */
static int refuse_unfinished(const struct end *e, struct reader *r)
{
    bool unfinished;
    struct err err;
    if (store_copy_is_unfinished(r, &unfinished, &err) != ERR_OK)
        return cli_err(&err);
    if (!unfinished)
        return CLI_OK;
    cli_fault("--%s: a copy into %s broke off; finish it first", e->flag, e->shown.ptr);
    return CLI_CONFLICT;
}

static int open_source(struct copy *c)
{
    struct store_options o = {.url = c->from.url, .timeout_ms = COPY_TIMEOUT_MS};
    struct err err;
    const char *file = store_url_file(str_of(c->from.url)).ptr;
    if (file && !file_exists(file)) {
        cli_fault("--from: there is no database at %s", file);
        return CLI_NOT_FOUND;
    }
    int code = end_lock(&c->from, &c->to);
    if (code != CLI_OK)
        return code;
    if (store_open_reader(&o, &c->reader, &err) != ERR_OK) {
        cli_fault("--from: %s", err.detail);
        return (int)exit_code_of_err(err.code);
    }
    code = refuse_used(&c->from, c->reader);
    return code == CLI_OK ? refuse_unfinished(&c->from, c->reader) : code;
}

static int open_target(struct copy *c)
{
    struct store_options o = {.url = c->to.url,
                              .timeout_ms = COPY_TIMEOUT_MS,
                              .wall_ms = clock_wall_ms(&clock_system),
                              .high_water =
                                  HIGH_WATER_RESET}; /* whatever was there before, now it holds the copy */
    struct err err;
    struct reader *r;
    int code = end_lock(&c->to, &c->from);
    if (code != CLI_OK)
        return code;
    umask(0077); /* it will hold payloads and secrets */
    if (store_open_unfinished(&o, &c->store, &err) != ERR_OK ||
        c->store->ops->reader_open(c->store, &r, &err) != ERR_OK) {
        cli_fault("--to: %s", err.detail);
        return (int)exit_code_of_err(err.code);
    }
    code = refuse_used(&c->to, r);
    r->ops->reader_close(r);
    return code;
}

/* --- what came out -------------------------------------------------------------------------------- */

static bool part_is_equal(const struct copy_result *r, int part)
{
    return r->source[part].rows == r->target[part].rows && r->source[part].digest == r->target[part].digest;
}

static void show_table(const struct copy *c)
{
    static const char *const headings[] = {"PART", ">SOURCE", ">TARGET", "!CHECKSUM", "RESULT"};
    struct text_table *t = text_table_new(headings, LENGTH_OF(headings));
    for (int i = 0; i < COPY_PART_COUNT; i++) {
        bool equal = part_is_equal(&c->result, i);
        text_table_add(t, str_of(copy_part_name(i)));
        text_table_addf(t, "%" PRIu64, c->result.source[i].rows);
        text_table_addf(t, "%" PRIu64, c->result.target[i].rows);
        text_table_addf(t, "%016" PRIx64, c->result.source[i].digest);
        text_table_add_tone(t, equal ? STR("same") : STR("DIFFERS"), equal ? TONE_GOOD : TONE_BAD);
    }
    text_table_show_and_free(t);
}

static void write_end(const struct end *e, const char *name, struct json_writer *w)
{
    jw_key(w, name);
    jw_object(w);
    encode_text(w, "store", e->shown.ptr);
    store_check_write(&e->check, w);
    jw_object_end(w);
}

static void show_json(const struct copy *c, bool good)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &text);
    jw_object(&w);
    encode_bool(&w, "ok", good);
    encode_int(&w, "copied", (int64_t)c->result.copied);
    encode_int(&w, "resumed", (int64_t)c->result.resumed);
    jw_key(&w, "parts");
    jw_array(&w);
    for (int i = 0; i < COPY_PART_COUNT; i++) {
        jw_object(&w);
        encode_text(&w, "part", copy_part_name(i));
        encode_int(&w, "source", (int64_t)c->result.source[i].rows);
        encode_int(&w, "target", (int64_t)c->result.target[i].rows);
        encode_bool(&w, "same", part_is_equal(&c->result, i));
        jw_object_end(&w);
    }
    jw_array_end(&w);
    write_end(&c->from, "from", &w);
    write_end(&c->to, "to", &w);
    jw_object_end(&w);
    printf("%s\n", text.ptr);
}

/* --- the command ---------------------------------------------------------------------------------- */

static enum err_code verify_ends(struct copy *c, struct err *err)
{
    cli_note(c->in, "verifying the source");
    if (store_check_run(c->in, c->from.url, &c->from.check, err) != ERR_OK)
        return err->code;
    cli_note(c->in, "verifying the target");
    return store_check_run(c->in, c->to.url, &c->to.check, err);
}

static int judge(struct copy *c)
{
    struct err err;
    bool good = c->result.equal && !c->from.check.result.problems && !c->to.check.result.problems;
    if (good && store_copy_finish(c->store, &err) != ERR_OK)
        return cli_err(&err);
    if (c->in->json)
        show_json(c, good);
    else
        show_table(c);
    if (!c->result.equal)
        cli_fault("the target differs from the source; it is not usable: empty it and copy again");
    if (c->from.check.result.problems || c->to.check.result.problems)
        cli_fault("%s does not agree with its log, and the copy is not usable; see `weir verify`",
                  c->from.check.result.problems ? c->from.shown.ptr : c->to.shown.ptr);
    if (good)
        cli_note(c->in,
                 "Copied and verified: %" PRIu64 " rows now, %" PRIu64 " before. Start with --store %s",
                 c->result.copied, c->result.resumed, c->to.shown.ptr);
    return good ? CLI_OK : CLI_FAILED;
}

int command_store_copy(const struct invocation *in)
{
    struct copy c CLEANUP(copy_free) = {.in = in, .from.lock = -1, .to.lock = -1};
    struct copy_watch watch = {progress, &c};
    struct err err;
    int code = end_prepare(&c.from, in, FLAG_FROM);
    if (code == CLI_OK)
        code = end_prepare(&c.to, in, FLAG_TO);
    if (code != CLI_OK)
        return code;
    if (str_is(str_of(c.from.url), c.to.url)) {
        cli_fault("--from and --to are the same store");
        return CLI_USAGE;
    }
    code = open_source(&c);
    if (code == CLI_OK)
        code = open_target(&c);
    if (code != CLI_OK)
        return code;
    if (store_copy(c.reader, c.store, &watch, &c.result, &err) != ERR_OK || verify_ends(&c, &err) != ERR_OK)
        return cli_err(&err);
    return judge(&c);
}
