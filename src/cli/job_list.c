/* weir job list: one page, or all of them as they come. */
#include "base/must.h"
#include "cli/job_internal.h"

#include "base/banned.h"

/* "?state=QUEUED&limit=5"; what the flags do not say is left to the server. */
static void write_query(const struct flags *f, struct str cursor, struct strbuf *out)
{
    static const struct {
        enum flag_id flag;
        const char *name;
    } filters[] = {
        {FLAG_STATE, "state"}, {FLAG_TYPE, "type"},       {FLAG_KIND, "work_kind"},
        {FLAG_QUEUE, "queue"}, {FLAG_OUTCOME, "outcome"}, {FLAG_LIMIT, "limit"},
    };
    strbuf_clear(out);
    strbuf_add_text(out, "/v1/jobs?");
    for (size_t i = 0; i < LENGTH_OF(filters); i++) {
        if (!flags_has(f, filters[i].flag))
            continue;
        strbuf_addf(out, "%s=", filters[i].name);
        http_escape(out, str_of(f->value[filters[i].flag]));
        strbuf_add_char(out, '&');
    }
    if (flags_has(f, FLAG_ALL) && !flags_has(f, FLAG_LIMIT))
        strbuf_add_text(out, "limit=200&");
    if (cursor.ptr) {
        strbuf_add_text(out, "cursor=");
        http_escape(out, cursor);
        strbuf_add_char(out, '&');
    }
    out->ptr[--out->len] = 0; /* the '?' or '&' at the end */
}

static struct str text_of(const struct json *object, const char *name)
{
    const struct json *j = json_get(object, name);
    return j && j->type == JSON_STRING ? j->text : STR_ABSENT;
}

static void add_row(struct text_table *t, const struct json *job)
{
    struct str kind = text_of(job, "work_kind");
    struct str state = text_of(job, "state");
    text_table_add_json(t, json_get(job, "job_id"));
    text_table_add_tone(t, state, tone_of_state(state));
    text_table_add(t, kind.ptr ? kind : text_of(json_get(job, "definition"), "work_kind"));
    text_table_add_json(t, json_get(job, "queue"));
    text_table_add_json(t, json_get(job, "attempt"));
    text_table_add_json(t, json_get(job, "created_at"));
}

/* Prints one page; JSON items are joined into one array over all pages. */
static size_t print_page(const struct invocation *in, struct text_table *t, const struct json *page,
                         size_t before)
{
    const struct json *items = json_get(page, "items");
    size_t n = before;
    for (const struct json *job = items ? items->child : NULL; job; job = job->next, n++) {
        if (in->json)
            printf("%s%.*s", n ? "," : "", STR_ARG(job->source));
        else if (in->quiet)
            printf("%.*s\n", STR_ARG(text_of(job, "job_id")));
        else
            add_row(t, job);
    }
    if (!in->json && !in->quiet)
        text_table_show(t, stdout);
    return n;
}

static int list_pages(const struct invocation *in, struct text_table *t, struct strbuf *cursor,
                      size_t *ret_count)
{
    struct strbuf path CLEANUP(strbuf_free) = {0};
    const char *given = in->flags->value[FLAG_CURSOR];
    struct str at = given ? str_of(given) : STR_ABSENT;
    for (bool more = true; more;) {
        struct server_answer page CLEANUP(server_answer_free) = {0};
        write_query(in->flags, at, &path);
        struct server_call call = {.method = "GET", .path = strbuf_str(&path), .bearer = server_key(in)};
        int code = server_call(in, &call, &page);
        if (code != CLI_OK)
            return code;
        if (in->json && !*ret_count)
            fputs("{\"items\":[", stdout);
        *ret_count = print_page(in, t, page.json, *ret_count);
        struct str next = text_of(page.json, "next_cursor");
        more = next.ptr && flags_has(in->flags, FLAG_ALL) && !str_equal(next, strbuf_str(cursor));
        strbuf_clear(cursor);
        strbuf_add_str(cursor, next);
        at = strbuf_str(cursor);
    }
    return CLI_OK;
}

static void end_json(const struct invocation *in, struct str cursor)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &text);
    jw_str(&w, flags_has(in->flags, FLAG_ALL) || !cursor.len ? STR_ABSENT : cursor);
    printf("],\"next_cursor\":%s}\n", text.ptr);
}

int command_job_list(const struct invocation *in)
{
    /* What tells jobs apart at a glance and fits a terminal; -o json has everything. */
    static const char *const headings[] = {"!JOB ID", "!STATE", "KIND", "QUEUE", ">TRY", "CREATED"};
    struct strbuf cursor CLEANUP(strbuf_free) = {0};
    struct err err;
    int64_t limit;
    size_t count = 0;
    if (flags_int(in->flags, FLAG_LIMIT, 1, 200, &limit, &err) != ERR_OK)
        return cli_err(&err);
    struct text_table *t = text_table_new(headings, LENGTH_OF(headings));
    int code = list_pages(in, t, &cursor, &count);
    text_table_free(t);
    if (code != CLI_OK)
        return code;
    if (in->json)
        end_json(in, strbuf_str(&cursor));
    else if (!count)
        cli_note(in, "No job matches.");
    else if (cursor.len && !flags_has(in->flags, FLAG_ALL))
        cli_note(in, "There are more: --all, or --cursor %.*s", STR_ARG(strbuf_str(&cursor)));
    return CLI_OK;
}
