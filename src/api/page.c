#include "api/page.h"

#include "api/jobs/list_filter.h"

#include "base/banned.h"

enum { IDS_A_READ = 256 };

/* --- the query -------------------------------------------------------------------------------------- */

bool call_query(struct call *c, const char *name, struct str *ret)
{
    struct err err;
    if (http_query(c->x, name, ret, &err) == ERR_OK)
        return true;
    call_problem(c, &err);
    return false;
}

bool call_limit(struct call *c, int64_t fallback, int64_t max, int64_t *ret_limit)
{
    struct err err;
    struct str text;
    if (!call_query(c, "limit", &text))
        return false;
    if (list_limit_parse(text, fallback, max, ret_limit, &err) == ERR_OK)
        return true;
    call_problem(c, &err);
    return false;
}

bool call_bad_cursor(struct call *c)
{
    call_fail(c, ERR_REQUEST_MALFORMED, "cursor is not one this server gave");
    return false;
}

bool call_cursor(struct call *c, int64_t fallback, int64_t *ret_cursor)
{
    struct str text;
    *ret_cursor = fallback;
    return call_query(c, "cursor", &text) &&
           (!text.ptr || str_to_int(text, 1, INT64_MAX, ret_cursor) || call_bad_cursor(c));
}

bool page_limit(struct page *p)
{
    return call_limit(p->c, PAGE_ITEMS, PAGE_ITEMS_MAX, &p->limit);
}

/* --- the answer ------------------------------------------------------------------------------------- */

bool page_read(struct page *p)
{
    p->err.code = ERR_OK;
    p->r = call_reader(p->c);
    return p->r != NULL;
}

bool page_open(struct page *p)
{
    if (!page_read(p))
        return false;
    call_object(p->c, 200, &p->w);
    jw_key(&p->w, "items");
    jw_array(&p->w);
    return true;
}

void page_close(struct page *p, const char *cursor_name, struct str cursor)
{
    if (p->err.code != ERR_OK) {
        call_problem(p->c, &p->err);
        return;
    }
    jw_array_end(&p->w);
    if (cursor_name)
        encode_str(&p->w, cursor_name, p->more ? cursor : STR_ABSENT);
    call_send_object(p->c, &p->w);
}

struct str page_number(const struct page *p, int64_t cursor)
{
    return arena_printf(p->c->x->arena, "%lld", (long long)cursor);
}

bool page_is_full(struct page *p)
{
    p->more = p->given == p->limit || p->looked++ == PAGE_LOOK_MAX;
    return p->more;
}

/* --- walking ---------------------------------------------------------------------------------------- */

static enum err_code read_list(struct page *p, const struct list_query *q, int64_t *ids, size_t *ret_count)
{
    return p->r->ops->reader_list(p->r, q, ids, ret_count, &p->err);
}

void page_walk(struct page *p, struct list_query *q, page_ids_fn *read, page_show_fn *show)
{
    int64_t ids[IDS_A_READ];
    size_t count = IDS_A_READ;
    q->limit = IDS_A_READ;
    while (count == IDS_A_READ && !p->more) {
        if ((read ? read : read_list)(p, q, ids, &count) != ERR_OK)
            return;
        for (size_t i = 0; i < count && !page_is_full(p); i++) {
            if (show(p, ids[i]) != ERR_OK)
                return;
            q->below_id = ids[i];
        }
    }
}

struct walking {
    struct page *page;
    page_row_fn *show;
    size_t read;
};

static bool show_row(const void *row, void *arg)
{
    struct walking *walk = arg;
    walk->read++;
    return !page_is_full(walk->page) && walk->show(walk->page, row) == ERR_OK;
}

void page_walk_rows(struct page *p, const struct table *t, const void *from, size_t block, page_row_fn *show)
{
    struct walking walk = {.page = p, .show = show};
    do {
        void *at = arena_alloc(p->c->x->arena, t->row_size); /* `from` moves on meanwhile */
        memcpy(at, from, t->row_size);
        walk.read = 0;
        if (p->r->ops->reader_range(p->r, t, at, block, show_row, &walk, &p->err) != ERR_OK)
            return;
    } while (walk.read == block && !p->more && p->err.code == ERR_OK);
}
