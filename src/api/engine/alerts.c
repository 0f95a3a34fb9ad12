/* GET /engine/v1/alerts: of a run, or of all runs of the tenant; newest first. */
#include "api/handlers.h"
#include "api/engine/encode.h"

#include "base/banned.h"

struct alerts {
    struct list_query query;
    int64_t limit;
    bool nothing;
};

/* The listing to read: the run's, or the tenant's. False: answered. */
static bool choose(struct call *c, struct reader *r, struct str run_id, struct alerts *a)
{
    struct run_id_row id = {.id = run_id};
    struct tenant_row tenant = {.name = c->claims->tenant_id};
    bool found = false;
    struct err err;
    enum err_code code = run_id.ptr
                             ? r->ops->reader_row(r, &table_run_id_row, &id, c->x->arena, &found, &err)
                             : r->ops->reader_row(r, &table_tenant_row, &tenant, c->x->arena, &found, &err);
    if (code != ERR_OK) {
        call_problem(c, &err);
        return false;
    }
    a->nothing = !found;
    a->query.owner_key = run_id.ptr ? id.run : tenant.num;
    a->query.bucket = run_id.ptr ? LIST_ALERTS_OF_RUN : LIST_ALERTS;
    return true;
}

/* Alerts of another tenant, or of a project that is not the caller's, are passed over. */
static enum err_code encode_one(struct call *c, struct reader *r, int64_t id, struct json_writer *w,
                                struct err *err)
{
    struct alert_row alert = {.id = id};
    struct run_row run;
    bool found;
    if (r->ops->reader_row(r, &table_alert_row, &alert, c->x->arena, &found, err) != ERR_OK || !found)
        return found ? ERR_OK : err->code;
    run = (struct run_row){.num = alert.run};
    if (r->ops->reader_row(r, &table_run_row, &run, c->x->arena, &found, err) != ERR_OK)
        return err->code;
    if (found && claims_admit(c->claims, run.tenant_name, run.project) == TOKEN_OK)
        encode_alert(w, &run, &alert);
    return ERR_OK;
}

void handle_list_alerts(struct call *c)
{
    struct alerts a = {.nothing = false};
    struct str run_id;
    struct err err = {.code = ERR_OK};
    struct json_writer w;
    size_t count = 0;
    if (!call_query(c, "runId", &run_id) || !call_page(c, &a.limit, &a.query.below_id))
        return;
    struct reader *r = api_read_begin(c->api, &err);
    if (!r) {
        call_problem(c, &err);
        return;
    }
    if (!choose(c, r, run_id, &a))
        return;
    a.query.limit = (size_t)a.limit;
    int64_t *ids = ARENA_ARRAY(c->x->arena, int64_t, a.query.limit);
    call_json(c, 200, &w);
    jw_object(&w);
    jw_key(&w, "items");
    jw_array(&w);
    if (!a.nothing)
        (void)r->ops->reader_list(r, &a.query, ids, &count, &err);
    for (size_t i = 0; err.code == ERR_OK && i < count; i++)
        (void)encode_one(c, r, ids[i], &w, &err);
    if (err.code != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    jw_array_end(&w);
    encode_next(c, &w, count == a.query.limit, count ? ids[count - 1] : 0);
    jw_object_end(&w);
    call_send(c);
}
