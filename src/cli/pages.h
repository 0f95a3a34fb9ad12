/* cli/pages.h - lists that the server gives by pages: one of them, or all as they come (--all).
 *
 * --limit, --cursor and --all are the caller's flags; -o json joins the items of all pages into one array. */
#ifndef WEIR_CLI_PAGES_H
#define WEIR_CLI_PAGES_H

#include "cli/columns.h"
#include "cli/server_call.h"

struct pages {
    struct str path;     /* may have a query; limit and cursor are added */
    const char *id;      /* the member that --quiet prints */
    const char *cursor;  /* the member that names the next page; NULL: next_cursor */
    const char *nothing; /* said of an empty list */
    const struct list_column *columns;
    size_t count;
    const char *bearer;
    server_advice_fn *advice;
    /* Gets one page, instead of a plain call with the bearer. A result other than CLI_OK has been told. */
    int (*get)(void *self, struct str path, struct server_answer *ret_page);
    void *self;
};

/* Adds "?NAME=VALUE", or "&...", to a path; nothing when the value is NULL. */
void query_add(struct strbuf *path, const char *name, const char *value);
/* Gives the exit code. */
int pages_show(const struct invocation *in, const struct pages *p);

#endif
