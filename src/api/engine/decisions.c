/* Decision records: by signal, by policy decision, listed. */
#include "api/handlers.h"
#include "api/engine/encode.h"

#include "base/banned.h"

static enum err_code read_decision(struct call *c, struct reader *r, int64_t id, struct decision_row *ret,
                                   bool *ret_found, struct err *err)
{
    *ret = (struct decision_row){.id = id};
    return r->ops->reader_row(r, &table_decision_row, ret, c->x->arena, ret_found, err);
}

static void send_decision(struct call *c, const struct run_row *run, const struct decision_row *d)
{
    struct json_writer w;
    call_json(c, 200, &w);
    encode_decision(&w, run, d);
    call_send(c);
}

static void not_found(struct call *c)
{
    call_fail(c, ERR_SIGNAL_NOT_FOUND, "no decision of your tenant has this id");
}

void handle_get_signal(struct call *c)
{
    struct reader *r;
    struct run_row run;
    struct decision_row d;
    struct uuid id;
    bool found = false;
    struct err err = {.code = ERR_OK};
    if (!call_read_run(c, &r, &run))
        return;
    if (!call_uuid_param(c, "signal_id", &id)) {
        not_found(c);
        return;
    }
    struct signal_key_row key = {.run = run.num, .signal = {(const char *)id.bytes, sizeof id.bytes}};
    enum err_code code = r->ops->reader_row(r, &table_signal_key_row, &key, c->x->arena, &found, &err);
    if (code == ERR_OK && found)
        code = read_decision(c, r, key.decision, &d, &found, &err);
    if (code != ERR_OK)
        call_problem(c, &err);
    else if (!found)
        not_found(c);
    else
        send_decision(c, &run, &d);
}

void handle_get_decision(struct call *c)
{
    struct decision_row d = {.id = 0};
    struct uuid id;
    bool found = false;
    struct err err = {.code = ERR_OK};
    struct reader *r = api_read_begin(c->api, &err);
    if (!r) {
        call_problem(c, &err);
        return;
    }
    if (!call_uuid_param(c, "policy_decision_id", &id)) {
        not_found(c);
        return;
    }
    struct policy_key_row key = {.policy = {(const char *)id.bytes, sizeof id.bytes}};
    struct run_row run = {.num = 0};
    enum err_code code = r->ops->reader_row(r, &table_policy_key_row, &key, c->x->arena, &found, &err);
    if (code == ERR_OK && found)
        code = read_decision(c, r, key.decision, &d, &found, &err);
    if (code == ERR_OK && found) {
        run.num = d.run;
        code = r->ops->reader_row(r, &table_run_row, &run, c->x->arena, &found, &err);
    }
    if (code != ERR_OK)
        call_problem(c, &err);
    else if (!found || claims_admit(c->claims, run.tenant_name, run.project) != TOKEN_OK)
        not_found(c);
    else
        send_decision(c, &run, &d);
}

void handle_list_signals(struct call *c)
{
    struct reader *r;
    struct run_row run;
    struct str pending;
    struct json_writer w;
    struct err err = {.code = ERR_OK};
    struct list_query q = {.bucket = LIST_DECISIONS};
    int64_t limit;
    size_t count = 0;
    if (!call_query(c, "pending", &pending) || !call_page(c, &limit, &q.below_id) ||
        !call_read_run(c, &r, &run))
        return;
    if (str_is(pending, "true"))
        q.bucket = LIST_DECISIONS_OPEN;
    q.owner_key = run.num;
    q.limit = (size_t)limit;
    int64_t *ids = ARENA_ARRAY(c->x->arena, int64_t, q.limit);
    call_json(c, 200, &w);
    jw_object(&w);
    jw_key(&w, "items");
    jw_array(&w);
    (void)r->ops->reader_list(r, &q, ids, &count, &err);
    for (size_t i = 0; err.code == ERR_OK && i < count; i++) {
        struct decision_row d;
        bool found;
        if (read_decision(c, r, ids[i], &d, &found, &err) == ERR_OK && found)
            encode_decision(&w, &run, &d);
    }
    if (err.code != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    jw_array_end(&w);
    encode_next(c, &w, count == q.limit, count ? ids[count - 1] : 0);
    jw_object_end(&w);
    call_send(c);
}
