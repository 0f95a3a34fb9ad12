/* GET /engine/v1/alerts: of a run, or of all runs of the tenant; newest first. */
#include "api/handlers.h"
#include "api/engine/encode.h"

#include "base/banned.h"

/* The listing to read: the run's, or the tenant's. False: answered. */
static bool choose(struct call *c, struct reader *r, struct list_query *q, bool *ret_found)
{
    struct run_id_row id;
    if (!call_query(c, "runId", &id.id))
        return false;
    q->bucket = id.id.ptr ? LIST_ALERTS_OF_RUN : LIST_ALERTS;
    if (!id.id.ptr)
        return call_tenant(c, r, &q->owner_key, ret_found);
    if (!call_row(c, r, &table_run_id_row, &id, ret_found))
        return false;
    q->owner_key = id.run;
    return true;
}

/* Alerts of another tenant, or of a project that is not the caller's, are passed over. */
static enum err_code show_alert(struct page *p, int64_t id)
{
    struct alert_row alert = {.id = id};
    bool found;
    if (page_row(p, &table_alert_row, &alert, &found) != ERR_OK || !found)
        return p->err.code;
    struct run_row run = {.num = alert.run};
    if (page_row(p, &table_run_row, &run, &found) != ERR_OK || !found ||
        claims_admit(p->c->claims, run.tenant_name, run.project) != TOKEN_OK)
        return p->err.code;
    encode_alert(&p->w, &run, &alert);
    p->given++;
    return ERR_OK;
}

void handle_list_alerts(struct call *c)
{
    struct page p = {.c = c};
    struct list_query q = {.owner_key = 0};
    bool found;
    if (!page_limit(&p) || !call_cursor(c, INT64_MAX, &q.below_id) || !page_read(&p) ||
        !choose(c, p.r, &q, &found) || !page_open(&p))
        return;
    if (found)
        page_walk(&p, &q, NULL, show_alert);
    page_close(&p, "nextCursor", page_number(&p, q.below_id));
}
