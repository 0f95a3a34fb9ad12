#include "api/engine/encode.h"

#include "base/must.h"
#include "engine/alert.h"
#include "lifecycle/signals.h"
#include "runs/event_key.h"

#include "base/banned.h"

void encode_run_event(struct json_writer *w, const struct run_row *run, const struct run_event_row *e)
{
    struct event_key_parts parts = {.run_id = run->id,
                                    .step_id = e->step,
                                    .logical_attempt = e->attempt,
                                    .event_type = run_event_name(e),
                                    .plan_id = run_event_plan(run, e),
                                    .plan_version = run_event_version(run, e)};
    char text[EVENT_KEY_LEN + 1];
    const struct str key = {text, EVENT_KEY_LEN};
    event_key(&parts, text);
    jw_object(w);
    RUN_EVENT_FIELDS(ENCODE_FIELD)
    jw_object_end(w);
}

void encode_step(struct json_writer *w, struct str name, enum step_status status, int64_t attempt,
                 const struct run_step_row *s)
{
    jw_object(w);
    STEP_FIELDS(ENCODE_FIELD)
    if (s) {
        STEP_NOW_FIELDS(ENCODE_FIELD)
    }
    jw_object_end(w);
}

static void put_result(struct json_writer *w, const struct decision_row *d)
{
    jw_object(w);
    ENGINE_RESULT_FIELDS(ENCODE_FIELD)
    jw_object_end(w);
}

static void put_audit(struct json_writer *w, const struct run_row *run, const struct decision_row *d)
{
    jw_object(w);
    DECISION_AUDIT_FIELDS(ENCODE_FIELD)
    jw_object_end(w);
}

void encode_decision_members(struct json_writer *w, const struct run_row *run, const struct decision_row *d)
{
    DECISION_FIELDS(ENCODE_FIELD)
}

void encode_alert(struct json_writer *w, const struct run_row *run, const struct alert_row *a)
{
    bool of_signal = a->category == ALERT_DESTRUCTIVE_SIGNAL || a->category == ALERT_SECURITY;
    jw_object(w);
    ALERT_FIELDS(ENCODE_FIELD)
    jw_object_end(w);
}

/* --- what handlers share ---------------------------------------------------------------------------- */

bool call_project(struct call *c, struct str project)
{
    if (claims_admit(c->claims, STR_ABSENT, project) == TOKEN_OK)
        return true;
    call_fail(c, ERR_AUTHZ_DENIED, "the project is not in the token's project_scope");
    return false;
}

/* The run of the path, if there is one, as far as it is read here. False: answered. */
static bool find_run(struct call *c, struct reader **ret_reader, struct run_row *ret_run, bool *ret_found)
{
    struct run_id_row id = {.id = route_param(&c->match, "run_id")};
    struct reader *r = *ret_reader = call_reader(c);
    if (!r || !call_row(c, r, &table_run_id_row, &id, ret_found))
        return false;
    *ret_run = (struct run_row){.num = id.run};
    return !*ret_found || call_row(c, r, &table_run_row, ret_run, ret_found);
}

bool call_read_run(struct call *c, struct reader **ret_reader, struct run_row *ret_run)
{
    bool found;
    if (!find_run(c, ret_reader, ret_run, &found))
        return false;
    if (found && claims_admit(c->claims, ret_run->tenant_name, ret_run->project) == TOKEN_OK)
        return true;
    call_fail(c, ERR_RUN_NOT_FOUND, "your tenant and projects have no run of this id");
    return false;
}

bool call_project_of_run(struct call *c)
{
    struct reader *r;
    struct run_row run;
    bool found;
    if (c->claims->every_project)
        return true;
    return find_run(c, &r, &run, &found) &&
           (!found || !str_equal(run.tenant_name, c->claims->tenant_id) || call_project(c, run.project));
}

bool call_tenant(struct call *c, struct reader *r, int64_t *ret_num, bool *ret_found)
{
    struct tenant_row tenant = {.name = c->claims->tenant_id};
    if (!call_row(c, r, &table_tenant_row, &tenant, ret_found))
        return false;
    *ret_num = tenant.num;
    return true;
}
