#include "cli/pages.h"

#include "base/must.h"

#include "base/banned.h"

enum { PAGE_MAX = 200 };

void query_add(struct strbuf *path, const char *name, const char *value)
{
    if (!value)
        return;
    strbuf_addf(path, "%c%s=", memchr(path->ptr, '?', path->len) ? '&' : '?', name);
    http_escape(path, str_of(value));
}

static void write_path(const struct pages *p, const struct flags *f, const struct strbuf *cursor,
                       struct strbuf *out)
{
    strbuf_clear(out);
    strbuf_add_str(out, p->path);
    query_add(out, "limit",
              f->value[FLAG_LIMIT]     ? f->value[FLAG_LIMIT]
              : flags_has(f, FLAG_ALL) ? "200"
                                       : NULL);
    query_add(out, "cursor", cursor->len ? cursor->ptr : NULL);
}

static int get_page(const struct invocation *in, const struct pages *p, struct str path,
                    struct server_answer *ret_page)
{
    struct server_call call = {.method = "GET", .path = path, .bearer = p->bearer, .advice = p->advice};
    return p->get ? p->get(p->self, path, ret_page) : server_call(in, &call, ret_page);
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
            printf("%.*s\n", STR_ARG(json_text(item, p->id)));
        else
            columns_row(t, p->columns, p->count, item);
    }
    if (!in->json && !in->quiet && n > before)
        text_table_show(t, stdout);
    return n;
}

static const char *cursor_name(const struct pages *p)
{
    return p->cursor ? p->cursor : "next_cursor";
}

/* A server that gives the same cursor again has no more to give. */
static int print_pages(const struct invocation *in, const struct pages *p, struct text_table *t,
                       struct strbuf *cursor, size_t *ret_count)
{
    struct strbuf path CLEANUP(strbuf_free) = {0};
    bool first = true;
    if (flags_has(in->flags, FLAG_CURSOR))
        strbuf_add_text(cursor, in->flags->value[FLAG_CURSOR]);
    for (bool more = true; more; first = false) {
        struct server_answer page CLEANUP(server_answer_free) = {0};
        write_path(p, in->flags, cursor, &path);
        int code = get_page(in, p, strbuf_str(&path), &page);
        if (code != CLI_OK)
            return code;
        if (in->json && first)
            fputs("{\"items\":[", stdout);
        *ret_count = print_page(in, p, t, page.json, *ret_count);
        struct str next = json_text(page.json, cursor_name(p));
        more = next.ptr && flags_has(in->flags, FLAG_ALL) && !str_equal(next, strbuf_str(cursor));
        strbuf_clear(cursor);
        strbuf_add_str(cursor, next);
    }
    return CLI_OK;
}

static void end_json(const struct invocation *in, const struct pages *p, struct str cursor)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &text);
    jw_str(&w, flags_has(in->flags, FLAG_ALL) || !cursor.len ? STR_ABSENT : cursor);
    printf("],\"%s\":%s}\n", cursor_name(p), text.ptr);
}

int pages_show(const struct invocation *in, const struct pages *p)
{
    struct strbuf cursor CLEANUP(strbuf_free) = {0};
    struct err err;
    int64_t limit;
    size_t count = 0;
    if (flags_int(in->flags, FLAG_LIMIT, 1, PAGE_MAX, &limit, &err) != ERR_OK)
        return cli_err(&err);
    struct text_table *t = columns_table(p->columns, p->count);
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
