#include "cli/pages.h"

#include "base/must.h"

#include "base/banned.h"

enum { PAGE_MAX = 200 };

static struct str text_of(const struct json *object, const char *name)
{
    const struct json *j = json_get(object, name);
    return j && j->type == JSON_STRING ? j->text : STR_ABSENT;
}

static void write_path(const struct pages *p, const struct flags *f, struct str cursor, struct strbuf *out)
{
    const char *limit = flags_has(f, FLAG_LIMIT) ? f->value[FLAG_LIMIT]
                        : flags_has(f, FLAG_ALL) ? "200"
                                                 : NULL;
    char between = memchr(p->path.ptr, '?', p->path.len) ? '&' : '?';
    strbuf_clear(out);
    strbuf_add_str(out, p->path);
    if (limit) {
        strbuf_addf(out, "%climit=%s", between, limit);
        between = '&';
    }
    if (cursor.ptr) {
        strbuf_addf(out, "%ccursor=", between);
        http_escape(out, cursor);
    }
}

static size_t print_page(const struct invocation *in, const struct pages *p, struct text_table *t,
                         const struct json *page, size_t before)
{
    const struct json *items = json_get(page, "items");
    size_t n = before;
    for (const struct json *item = items ? items->child : NULL; item; item = item->next, n++) {
        if (in->json)
            printf("%s%.*s", n ? "," : "", STR_ARG(item->source));
        else if (in->quiet)
            printf("%.*s\n", STR_ARG(text_of(item, p->id)));
        else
            p->add_row(t, item);
    }
    if (!in->json && !in->quiet && n > before)
        text_table_show(t, stdout);
    return n;
}

/* A server that gives the same cursor again has no more to give. */
static int print_pages(const struct invocation *in, const struct pages *p, struct text_table *t,
                       struct strbuf *cursor, size_t *ret_count)
{
    struct strbuf path CLEANUP(strbuf_free) = {0};
    const char *given = in->flags->value[FLAG_CURSOR];
    struct str at = given ? str_of(given) : STR_ABSENT;
    bool first = true;
    for (bool more = true; more; first = false) {
        struct server_answer page CLEANUP(server_answer_free) = {0};
        write_path(p, in->flags, at, &path);
        int code = p->get(p->self, strbuf_str(&path), &page);
        if (code != CLI_OK)
            return code;
        if (in->json && first)
            fputs("{\"items\":[", stdout);
        *ret_count = print_page(in, p, t, page.json, *ret_count);
        struct str next = text_of(page.json, p->cursor);
        more = next.ptr && flags_has(in->flags, FLAG_ALL) && !str_equal(next, strbuf_str(cursor));
        strbuf_clear(cursor);
        if (next.ptr)
            strbuf_add_str(cursor, next);
        at = strbuf_str(cursor);
    }
    return CLI_OK;
}

static void end_json(const struct invocation *in, const struct pages *p, struct str cursor)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &text);
    jw_str(&w, flags_has(in->flags, FLAG_ALL) || !cursor.len ? STR_ABSENT : cursor);
    printf("],\"%s\":%s}\n", p->cursor, text.ptr);
}

int pages_show(const struct invocation *in, const struct pages *p)
{
    struct strbuf cursor CLEANUP(strbuf_free) = {0};
    struct err err;
    int64_t limit;
    size_t count = 0;
    if (flags_int(in->flags, FLAG_LIMIT, 1, PAGE_MAX, &limit, &err) != ERR_OK)
        return cli_err(&err);
    struct text_table *t = text_table_new(p->headings, p->columns);
    int code = print_pages(in, p, t, &cursor, &count);
    text_table_free(t);
    if (code != CLI_OK)
        return code;
    if (in->json)
        end_json(in, p, strbuf_str(&cursor));
    else if (cursor.len && !flags_has(in->flags, FLAG_ALL))
        cli_note(in, "There are more: --all, or --cursor %.*s", STR_ARG(strbuf_str(&cursor)));
    else if (!count)
        cli_note(in, "%s", p->nothing);
    return CLI_OK;
}
