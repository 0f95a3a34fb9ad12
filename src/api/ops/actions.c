/* GET /ops/v1/audit: actions of operators, newest first. */
#include "api/handlers.h"
#include "api/page.h"
#include "base/must.h"
#include "fields/operator_fields.h"
#include "lifecycle/client_lifecycle.h"

#include "base/banned.h"

struct action_list {
    struct page page;
    struct operator_action_row from; /* -back is the number: the newest stands first */
};

static const char *action_of(const struct operator_action_row *a)
{
    bool is_known = a->action >= 0 && a->action < OPERATOR_ACTION_COUNT;
    return is_known ? operator_action_text((enum operator_action)a->action) : NULL;
}

static enum err_code show_action(struct page *p, const void *row)
{
    const struct operator_action_row *a = row;
    struct json_writer *w = &p->w;
    jw_object(w);
    ACTION_FIELDS(ENCODE_FIELD)
    jw_object_end(w);
    p->given++;
    CONTAINER_OF(p, struct action_list, page)->from.back = a->back + 1;
    return ERR_OK;
}

void handle_list_operator_actions(struct call *c)
{
    struct action_list l = {.page.c = c};
    int64_t cursor;
    if (!page_limit(&l.page) || !call_cursor(c, INT64_MAX, &cursor) || !page_open(&l.page))
        return;
    l.from.back = -cursor;
    page_walk_rows(&l.page, &table_operator_action_row, &l.from, (size_t)l.page.limit + 1, show_action);
    page_close(&l.page, "next_cursor", page_number(&l.page, -l.from.back));
}
