/* Decision records: by signal, by policy decision, listed. */
#include "api/handlers.h"
#include "api/engine/encode.h"
#include "base/must.h"

#include "base/banned.h"

static void send_decision(struct call *c, const struct run_row *run, const struct decision_row *d)
{
    struct json_writer w;
    call_object(c, 200, &w);
    encode_decision_members(&w, run, d);
    call_send_object(c, &w);
}

static void not_found(struct call *c)
{
    call_fail(c, ERR_SIGNAL_NOT_FOUND, "no decision of your tenant has this id");
}

void handle_get_signal(struct call *c)
{
    struct reader *r;
    struct run_row run;
    struct uuid id = {{0}};
    bool found = call_uuid_param(c, "signal_id", &id);
    if (!call_read_run(c, &r, &run))
        return;
    struct signal_key_row key = {.run = run.num, .signal = uuid_str(&id)};
    if (found && !call_row(c, r, &table_signal_key_row, &key, &found))
        return;
    struct decision_row d = {.id = key.decision};
    if (found && !call_row(c, r, &table_decision_row, &d, &found))
        return;
    if (found)
        send_decision(c, &run, &d);
    else
        not_found(c);
}

void handle_get_decision(struct call *c)
{
    struct uuid id = {{0}};
    bool found = call_uuid_param(c, "policy_decision_id", &id);
    struct policy_key_row key = {.policy = uuid_str(&id)};
    struct reader *r = call_reader(c);
    if (!r || (found && !call_row(c, r, &table_policy_key_row, &key, &found)))
        return;
    struct decision_row d = {.id = key.decision};
    if (found && !call_row(c, r, &table_decision_row, &d, &found))
        return;
    struct run_row run = {.num = d.run};
    if (found && !call_row(c, r, &table_run_row, &run, &found))
        return;
    if (found && claims_admit(c->claims, run.tenant_name, run.project) == TOKEN_OK)
        send_decision(c, &run, &d);
    else
        not_found(c);
}

struct decision_list {
    struct page page;
    struct run_row run;
};

static enum err_code show_decision(struct page *p, int64_t id)
{
    struct decision_row d = {.id = id};
    bool found;
    if (page_row(p, &table_decision_row, &d, &found) != ERR_OK || !found)
        return p->err.code;
    jw_object(&p->w);
    encode_decision_members(&p->w, &CONTAINER_OF(p, struct decision_list, page)->run, &d);
    jw_object_end(&p->w);
    p->given++;
    return ERR_OK;
}

void handle_list_signals(struct call *c)
{
    struct decision_list l = {.page.c = c};
    struct str pending;
    struct list_query q = {.bucket = LIST_DECISIONS};
    if (!call_query(c, "pending", &pending) || !page_limit(&l.page) ||
        !call_cursor(c, INT64_MAX, &q.below_id) || !call_read_run(c, &l.page.r, &l.run) ||
        !page_open(&l.page))
        return;
    if (str_is(pending, "true"))
        q.bucket = LIST_DECISIONS_OPEN;
    q.owner_key = l.run.num;
    page_walk(&l.page, &q, NULL, show_decision);
    page_close(&l.page, "nextCursor", page_number(&l.page, q.below_id));
}
