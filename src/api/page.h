/* api/page.h - lists: every route that gives one goes this way.
 *
 * A handler reads its query, opens the page, lets a walker bring what is to be listed, and closes it. A page
 * has at most `limit` items and looks at PAGE_LOOK_MAX rows at most, so no call scans a whole history: a page
 * may be short and still have a cursor. It has one exactly when something is behind what was looked at.
 *
 *     struct page p = {.c = c};
 *     if (!page_limit(&p) || !call_cursor(c, INT64_MAX, &q.below_id) || !page_open(&p))
 *         return;
 *     page_walk(&p, &q, NULL, show);
 *     page_close(&p, "next_cursor", page_number(&p, q.below_id));
 *
 * A handler with facts of its own puts the page into a struct and takes CONTAINER_OF in its callbacks. */
#ifndef WEIR_API_PAGE_H
#define WEIR_API_PAGE_H

#include "api/api.h"
#include "api/encode_fields.h"

enum { PAGE_ITEMS = 50, PAGE_ITEMS_MAX = 200, PAGE_LOOK_MAX = 2000 };

struct page {
    struct call *c;
    struct reader *r;
    struct json_writer w;
    int64_t limit;         /* items */
    int64_t given, looked; /* `given` is raised by what encodes an item */
    bool more;             /* there is something behind what was looked at */
    struct err err;        /* of a read, told by page_close() */
};

/* A parameter of the query; absent when it was not given. False: answered; so are all below. */
bool call_query(struct call *c, const char *name, struct str *ret);
bool call_limit(struct call *c, int64_t fallback, int64_t max, int64_t *ret_limit);
/* `cursor` as the number that page_number() wrote. */
bool call_cursor(struct call *c, int64_t fallback, int64_t *ret_cursor);
bool call_bad_cursor(struct call *c); /* always false */
bool page_limit(struct page *p);      /* call_limit() with the limits of most lists */

/* The reader, without an answer that is begun; and with {"items":[ */
bool page_read(struct page *p);
bool page_open(struct page *p);
/* ],CURSOR_NAME:CURSOR} when there is more, else null; a name of NULL: the list has no cursor. Sends. */
void page_close(struct page *p, const char *cursor_name, struct str cursor);
struct str page_number(const struct page *p, int64_t cursor);
/* Before each row that is looked at: whether it comes on a later page. */
bool page_is_full(struct page *p);

/* Ids of a listing, newest first; q->below_id, where it begins, is at the end where the next page does.
 * `read` gives the next ids of q; NULL: reader_list. `show` writes one, or passes it over. */
typedef enum err_code page_ids_fn(struct page *p, const struct list_query *q, int64_t *ids,
                                  size_t *ret_count);
typedef enum err_code page_show_fn(struct page *p, int64_t id);
void page_walk(struct page *p, struct list_query *q, page_ids_fn *read, page_show_fn *show);

/* Rows of a table in the order of its key, from `from` on, `block` of them a read. `show` writes a row, or
 * passes it over, and sets `from` behind it. */
typedef enum err_code page_row_fn(struct page *p, const void *row);
void page_walk_rows(struct page *p, const struct table *t, const void *from, size_t block, page_row_fn *show);

/* The row of this key, into the call's arena. */
static inline enum err_code page_row(struct page *p, const struct table *t, void *row, bool *ret_found)
{
    return p->r->ops->reader_row(p->r, t, row, p->c->x->arena, ret_found, &p->err);
}

#endif
