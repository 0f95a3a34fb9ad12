/* weir verify, and the same check for backup and restore. */
#include "cli/store_check.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/must.h"
#include "base/store_url.h"
#include "cli/table.h"
#include "store/store_open.h"

#include "base/banned.h"

enum { CHECK_TIMEOUT_MS = 120000 }; /* PostgreSQL sorts a large table before it gives the first row */

struct running {
    const struct invocation *in;
    struct store_check *check;
    uint64_t seen;
    bool progress;
    int64_t next_ms;
};

static void clear_progress(const struct running *r)
{
    if (r->progress)
        fputs("\r\033[K", stderr);
}

static void take_problem(void *arg, const char *line)
{
    struct running *r = arg;
    struct json_writer w;
    if (r->seen++ >= STORE_CHECK_SHOWN_MAX)
        return;
    if (r->check->differences.len)
        strbuf_add_char(&r->check->differences, ',');
    jw_start(&w, &r->check->differences);
    jw_text(&w, line);
    clear_progress(r);
    fprintf(stderr, "difference: %s\n", line);
}

static void show_progress(void *arg, uint64_t rows)
{
    struct running *r = arg;
    int64_t now = clock_mono_ms(&clock_system);
    if (now < r->next_ms)
        return;
    r->next_ms = now + 100;
    fprintf(stderr, "\r\033[Kverifying: %" PRIu64 " rows", rows);
}

static enum err_code check_reader(struct running *r, struct reader *reader, struct err *err)
{
    return store_verify(reader, take_problem, r->progress ? show_progress : NULL, r, &r->check->result, err);
}

enum err_code store_check_run(const struct invocation *in, const char *url, struct store_check *ret_check,
                              struct err *err)
{
    struct running r = {.in = in, .check = ret_check, .progress = terminal_is(stderr) && !in->quiet};
    struct store_options options = {.url = url, .timeout_ms = CHECK_TIMEOUT_MS};
    struct reader *reader;
    int64_t start = clock_mono_ms(&clock_system);
    *ret_check = (struct store_check){0};
    enum err_code code = store_open_reader(&options, &reader, err);
    if (code != ERR_OK)
        return code;
    code = check_reader(&r, reader, err);
    reader->ops->reader_close(reader);
    clear_progress(&r);
    if (r.seen > STORE_CHECK_SHOWN_MAX)
        fprintf(stderr, "and %" PRIu64 " more differences\n", r.seen - STORE_CHECK_SHOWN_MAX);
    ret_check->duration_ms = clock_mono_ms(&clock_system) - start;
    return code;
}

enum err_code store_check_file(const struct invocation *in, const char *path, struct store_check *ret_check,
                               struct err *err)
{
    struct strbuf url CLEANUP(strbuf_free) = {0};
    strbuf_addf(&url, "sqlite:%s", path);
    return store_check_run(in, url.ptr, ret_check, err);
}

void store_check_free(struct store_check *c)
{
    strbuf_free(&c->differences);
}

void store_check_write(const struct store_check *c, struct json_writer *w)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"jobs", c->result.jobs},         {"live", c->result.live},
        {"ended", c->result.ended},       {"events", c->result.events},
        {"chunks", c->result.chunks},     {"clients", c->result.clients},
        {"runs", c->result.runs},         {"run_events", c->result.run_events},
        {"problems", c->result.problems},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        encode_int(w, numbers[i].name, (int64_t)numbers[i].value);
    encode_int(w, "duration_ms", c->duration_ms);
    jw_key(w, "differences");
    jw_array(w);
    if (c->differences.len)
        jw_raw(w, strbuf_str(&c->differences));
    jw_array_end(w);
}

static void show_table(const struct store_check *c)
{
    static const char *const headings[] = {">JOBS",    ">LIVE", ">ENDED",      ">EVENTS",  ">CHUNKS",
                                           ">CLIENTS", ">RUNS", ">RUN EVENTS", ">PROBLEMS"};
    struct text_table *t = text_table_new(headings, LENGTH_OF(headings));
    const uint64_t values[] = {c->result.jobs,   c->result.live,       c->result.ended,
                               c->result.events, c->result.chunks,     c->result.clients,
                               c->result.runs,   c->result.run_events, c->result.problems};
    for (size_t i = 0; i < LENGTH_OF(values); i++)
        text_table_addf(t, "%" PRIu64, values[i]);
    text_table_show_and_free(t);
}

static void show_json(const struct store_check *c, const char *url)
{
    struct strbuf text CLEANUP(strbuf_free) = {0}, shown CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    store_url_show(str_of(url), &shown);
    jw_start(&w, &text);
    jw_object(&w);
    encode_text(&w, "store", shown.ptr);
    encode_text(&w, "file", store_url_file(str_of(url)).ptr);
    store_check_write(c, &w);
    jw_object_end(&w);
    printf("%s\n", text.ptr);
}

int store_check_url(const struct invocation *in, char ret_url[SETTINGS_STORE_URL_MAX])
{
    struct settings s CLEANUP(settings_free);
    struct stat info;
    struct err err;
    int code = cli_settings(in, &s);
    if (code != CLI_OK)
        return code;
    if (settings_store_url(&s, ret_url, SETTINGS_STORE_URL_MAX, &err) != ERR_OK)
        return cli_err(&err);
    const char *file = store_url_file(str_of(ret_url)).ptr;
    if (!file || stat(file, &info) == 0)
        return CLI_OK;
    cli_fault("there is no database at %s; `weir serve` makes one, --data DIR names another place", file);
    return CLI_NOT_FOUND;
}

int store_check_path(const struct invocation *in, const char *doing, char *ret_path, size_t size)
{
    char url[SETTINGS_STORE_URL_MAX];
    int code = store_check_url(in, url);
    if (code != CLI_OK)
        return code;
    struct str file = store_url_file(str_of(url));
    if (!file.ptr) {
        cli_fault("weir %s is for SQLite; with PostgreSQL use pg_dump and pg_restore, or pg_basebackup "
                  "(docs/operations/postgres.md)",
                  doing);
        return CLI_USAGE;
    }
    if (file.len >= size) {
        cli_fault("the path of the database is too long");
        return CLI_USAGE;
    }
    memcpy(ret_path, file.ptr, file.len + 1);
    return CLI_OK;
}

/* The mark is read first: it never says more than the store has, also while a server commits. */
static enum err_code judge_mark(const char *file, struct err *ret_loss)
{
    struct high_water mark = high_water_read(file), position;
    struct err err; /* the check itself reports an unreadable one */
    *ret_loss = (struct err){.code = ERR_OK};
    if (store_position_sqlite(file, &position, &err) != ERR_OK)
        return ERR_OK;
    return high_water_judge(&mark, &position, ret_loss);
}

static void add_loss(struct store_check *c, const struct err *loss)
{
    struct running r = {.check = c};
    c->result.problems++;
    take_problem(&r, loss->detail);
}

int command_verify(const struct invocation *in)
{
    char url[SETTINGS_STORE_URL_MAX];
    struct strbuf shown CLEANUP(strbuf_free) = {0};
    struct store_check check CLEANUP(store_check_free) = {0};
    struct err err, loss;
    int code = store_check_url(in, url);
    if (code != CLI_OK)
        return code;
    const char *file = store_url_file(str_of(url)).ptr;
    store_url_show(str_of(file ? file : url), &shown);
    bool is_lost = file && judge_mark(file, &loss) != ERR_OK;
    enum err_code ran = store_check_run(in, url, &check, &err);
    if (is_lost)
        add_loss(&check, &loss);
    if (ran != ERR_OK) {
        cli_fault("%s: %s", shown.ptr, err.detail);
        return CLI_FAILED;
    }
    if (in->json)
        show_json(&check, url);
    else
        show_table(&check);
    if (check.result.problems)
        cli_fault("%s does not agree with its log; keep a copy and restore a backup", shown.ptr);
    else if (!in->json)
        cli_note(in, "Everything agrees; took %" PRId64 " ms.", check.duration_ms);
    return check.result.problems ? CLI_FAILED : CLI_OK;
}
