/* GET /ops/v1/audit: actions of operators, newest first. */
#include "api/handlers.h"
#include "api/jobs/encode.h"
#include "api/jobs/list_filter.h"
#include "api/ops/operators.h"
#include "lifecycle/client_lifecycle.h"

#include "base/banned.h"

struct audit_page {
    struct json_writer w;
    int64_t limit, shown;
    int64_t next; /* 0: this was the last page */
};

static bool show_action(const void *row, void *arg)
{
    struct audit_page *p = arg;
    const struct operator_action_row *a = row;
    char text[UUID_TEXT_LEN + 1];
    struct uuid id = {{0}};
    if (p->shown == p->limit) {
        p->next = -a->back;
        return false;
    }
    if (a->client.len == sizeof id.bytes)
        memcpy(id.bytes, a->client.ptr, sizeof id.bytes);
    uuid_text(&id, text);
    jw_object(&p->w);
    encode_uuid_v7(&p->w, "action_id", -a->back, (uint64_t)a->low);
    encode_time_ms(&p->w, "at", a->at_ms);
    jw_key(&p->w, "actor");
    jw_str(&p->w, a->actor);
    jw_key(&p->w, "action");
    jw_text(&p->w, a->action >= 0 && a->action < OPERATOR_ACTION_COUNT
                       ? operator_action_text((enum operator_action)a->action)
                       : NULL);
    jw_key(&p->w, "client_id");
    jw_text(&p->w, text);
    jw_key(&p->w, "changed");
    jw_int(&p->w, a->changed);
    jw_object_end(&p->w);
    p->shown++;
    return true;
}

void handle_list_operator_actions(struct call *c)
{
    struct audit_page p = {.shown = 0};
    struct operator_action_row from = {.part = 0, .back = INT64_MIN};
    struct err err = {.code = ERR_OK};
    struct str cursor;
    int64_t next;
    if (!call_limit(c, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, &p.limit))
        return;
    if (http_query(c->x, "cursor", &cursor, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    if (cursor.ptr && !str_to_int(cursor, 1, INT64_MAX, &next)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "cursor is not one that a page gave");
        return;
    }
    if (cursor.ptr)
        from.back = -next;
    struct reader *r = api_read_begin(c->api, &err);
    call_json(c, 200, &p.w);
    jw_object(&p.w);
    jw_key(&p.w, "items");
    jw_array(&p.w);
    if (!r || r->ops->reader_range(r, &table_operator_action_row, &from, (size_t)p.limit + 1, show_action, &p,
                                   &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    jw_array_end(&p.w);
    jw_key(&p.w, "next_cursor");
    jw_str(&p.w, p.next ? arena_printf(c->x->arena, "%lld", (long long)p.next) : STR_ABSENT);
    jw_object_end(&p.w);
    call_send(c);
}
