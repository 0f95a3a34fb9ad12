/* cli/pages.h - lists that the server gives by pages: one of them, or all as they come (--all).
 *
 * --limit, --cursor and --all are the caller's flags; -o json joins the items of all pages into one array. */
#ifndef WEIR_CLI_PAGES_H
#define WEIR_CLI_PAGES_H

#include "cli/server_call.h"
#include "cli/table.h"

struct pages {
    struct str path;     /* may have a query; limit and cursor are added */
    const char *id;      /* the member that --quiet prints */
    const char *cursor;  /* the member that names the next page */
    const char *nothing; /* said of an empty list */
    const char *const *headings;
    size_t columns;
    void (*add_row)(struct text_table *t, const struct json *item);
    /* Gets one page. A result other than CLI_OK has been told. */
    int (*get)(void *self, struct str path, struct server_answer *ret_page);
    void *self;
};

/* Gives the exit code. */
int pages_show(const struct invocation *in, const struct pages *p);

#endif
