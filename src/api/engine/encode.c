#include "api/engine/encode.h"

#include "base/must.h"
#include "engine/alert.h"
#include "lifecycle/signals.h"
#include "runs/event_key.h"

#include "base/banned.h"

enum { PAGE_DEFAULT = 50, PAGE_MAX = 200 };

/* Left out when there is none. */
static void optional(struct json_writer *w, const char *key, struct str text)
{
    if (text.ptr)
        encode_str(w, key, text);
}

static void optional_raw(struct json_writer *w, const char *key, struct str json)
{
    if (json.ptr)
        encode_raw(w, key, json);
}

void encode_uuid_bytes(struct json_writer *w, const char *key, struct str bytes)
{
    struct uuid id;
    char text[UUID_TEXT_LEN + 1];
    jw_key(w, key);
    if (bytes.len != sizeof id.bytes) {
        jw_null(w);
        return;
    }
    memcpy(id.bytes, bytes.ptr, sizeof id.bytes);
    uuid_text(&id, text);
    jw_str(w, (struct str){text, UUID_TEXT_LEN});
}

void encode_run_event(struct json_writer *w, const struct run_row *run, const struct run_event_row *e)
{
    struct event_key_parts parts = {.run_id = run->id,
                                    .step_id = e->step,
                                    .logical_attempt = e->attempt,
                                    .event_type = run_event_name(e),
                                    .plan_id = run_event_plan(run, e),
                                    .plan_version = run_event_version(run, e)};
    char key[EVENT_KEY_LEN + 1];
    event_key(&parts, key);
    jw_object(w);
    encode_uuid_bytes(w, "eventId", e->event_id);
    encode_str(w, "eventType", parts.event_type);
    encode_str(w, "runId", run->id);
    encode_str(w, "tenantId", run->tenant_name);
    encode_str(w, "projectId", run->project);
    encode_str(w, "environmentId", run->environment);
    encode_str(w, "planId", parts.plan_id);
    encode_str(w, "planVersion", parts.plan_version);
    optional(w, "stepId", e->step);
    encode_int(w, "engineAttemptId", e->engine_attempt);
    encode_int(w, "logicalAttemptId", e->attempt);
    encode_str(w, "idempotencyKey", (struct str){key, EVENT_KEY_LEN});
    encode_str(w, "emittedAt", e->emitted);
    optional_raw(w, "payload", e->payload);
    encode_int(w, "runSeq", e->seq);
    encode_time_ms(w, "persistedAt", e->persisted_ms);
    jw_object_end(w);
}

void encode_run_summary(struct json_writer *w, const struct run_row *run)
{
    encode_str(w, "runId", run->id);
    encode_str(w, "tenantId", run->tenant_name);
    encode_str(w, "projectId", run->project);
    encode_str(w, "environmentId", run->environment);
    encode_str(w, "planId", run->plan);
    encode_str(w, "planVersion", run->version);
    encode_bool(w, "external", run->plan_num == 0);
    encode_time_ms(w, "createdAt", run->created_ms);
}

void encode_step(struct json_writer *w, struct str name, enum step_status status, int64_t attempt,
                 const struct run_step_row *row)
{
    jw_object(w);
    encode_str(w, "stepId", name);
    encode_text(w, "status", step_status_text(status));
    encode_int(w, "logicalAttemptId", attempt);
    if (row) {
        encode_time_ms(w, "startedAt", row->started_ms);
        encode_time_ms(w, "endedAt", row->ended_ms);
        optional_raw(w, "result", row->result);
        optional_raw(w, "failure", row->error);
        optional_raw(w, "override", row->override);
        optional_raw(w, "target", row->target);
    }
    jw_object_end(w);
}

static void encode_result(struct json_writer *w, const struct decision_row *d)
{
    if (!d->processed_ms)
        return;
    encode_time_ms(w, "engineProcessedAt", d->processed_ms);
    jw_key(w, "engineResult");
    jw_object(w);
    encode_text(w, "status", d->succeeded ? "success" : "failure");
    if (!d->succeeded)
        optional(w, "errorCode", d->error_code);
    optional(w, "newRunId", d->new_run);
    jw_object_end(w);
}

static void encode_audit(struct json_writer *w, const struct run_row *run, const struct decision_row *d)
{
    jw_key(w, "audit");
    jw_object(w);
    encode_str(w, "actorId", d->actor);
    encode_str(w, "actorRole", d->role);
    encode_str(w, "tenantId", run->tenant_name);
    optional(w, "actorTenantId", d->actor_tenant);
    encode_time_ms(w, "timestamp", d->created_ms);
    optional(w, "reason", d->audit_reason);
    optional(w, "sourceIp", d->source_ip);
    jw_object_end(w);
}

void encode_decision(struct json_writer *w, const struct run_row *run, const struct decision_row *d)
{
    jw_object(w);
    encode_uuid_bytes(w, "signalDecisionId", d->uuid);
    encode_uuid_bytes(w, "signalId", d->signal);
    encode_str(w, "runId", run->id);
    encode_text(w, "decision", signal_decision_text((enum signal_decision)d->state));
    optional(w, "reason", d->reason);
    encode_uuid_bytes(w, "policyDecisionId", d->policy);
    encode_audit(w, run, d);
    encode_text(w, "signalType", signal_type_text((enum signal_type)d->type));
    jw_key(w, "signalPayload");
    jw_raw(w, d->payload);
    encode_result(w, d);
    if (d->needs_approval)
        encode_bool(w, "approvalRequired", true);
    if (d->approved_ms) {
        encode_str(w, "approvedBy", d->approved_by);
        encode_time_ms(w, "approvalTimestamp", d->approved_ms);
    }
    jw_object_end(w);
}

void encode_alert(struct json_writer *w, const struct run_row *run, const struct alert_row *a)
{
    jw_object(w);
    encode_uuid_v7(w, "alertId", a->id, (uint64_t)a->low);
    encode_str(w, "code", a->code);
    encode_text(w, "severity", alert_severity_text((enum alert_severity)a->severity));
    encode_text(w, "category", alert_category_text((enum alert_category)a->category));
    encode_str(w, "runId", run->id);
    encode_str(w, "tenantId", run->tenant_name);
    encode_str(w, "projectId", run->project);
    encode_str(w, "environmentId", run->environment);
    bool of_signal = a->category == ALERT_DESTRUCTIVE_SIGNAL || a->category == ALERT_SECURITY;
    encode_uuid_bytes(w, "eventId", of_signal ? STR_ABSENT : a->event_id);
    if (of_signal)
        encode_uuid_bytes(w, "signalDecisionId", a->event_id);
    encode_str(w, "eventType", a->event_type);
    encode_int_or_null(w, "runSeq", a->seq);
    encode_time_ms(w, "persistedAt", a->persisted_ms);
    encode_str(w, "priorState", a->prior);
    encode_str(w, "attemptedState", a->attempted);
    optional(w, of_signal ? "actorId" : "note", a->detail);
    encode_time_ms(w, "createdAt", a->created_ms);
    jw_object_end(w);
}

/* --- what handlers share ---------------------------------------------------------------------------- */

bool call_query(struct call *c, const char *name, struct str *ret)
{
    struct err err;
    if (http_query(c->x, name, ret, &err) == ERR_OK)
        return true;
    call_problem(c, &err);
    return false;
}

bool call_project(struct call *c, struct str project)
{
    if (claims_admit(c->claims, STR_ABSENT, project) == TOKEN_OK)
        return true;
    call_fail(c, ERR_AUTHZ_DENIED, "the project is not in the token's project_scope");
    return false;
}

bool call_read_run(struct call *c, struct reader **ret_reader, struct run_row *ret_run)
{
    struct run_id_row id = {.id = route_param(&c->match, "run_id")};
    bool found = false;
    struct err err;
    struct reader *r = api_read_begin(c->api, &err);
    if (!r || r->ops->reader_row(r, &table_run_id_row, &id, c->x->arena, &found, &err) != ERR_OK) {
        call_problem(c, &err);
        return false;
    }
    *ret_run = (struct run_row){.num = id.run};
    if (found && r->ops->reader_row(r, &table_run_row, ret_run, c->x->arena, &found, &err) != ERR_OK) {
        call_problem(c, &err);
        return false;
    }
    if (!found || claims_admit(c->claims, ret_run->tenant_name, ret_run->project) != TOKEN_OK) {
        call_fail(c, ERR_RUN_NOT_FOUND, "your tenant and projects have no run of this id");
        return false;
    }
    *ret_reader = r;
    return true;
}

bool call_project_of_run(struct call *c)
{
    struct run_id_row id = {.id = route_param(&c->match, "run_id")};
    bool found = false;
    struct err err;
    if (c->claims->every_project)
        return true;
    struct reader *r = api_read_begin(c->api, &err);
    if (!r || r->ops->reader_row(r, &table_run_id_row, &id, c->x->arena, &found, &err) != ERR_OK) {
        call_problem(c, &err);
        return false;
    }
    struct run_row run = {.num = id.run};
    if (found && r->ops->reader_row(r, &table_run_row, &run, c->x->arena, &found, &err) != ERR_OK) {
        call_problem(c, &err);
        return false;
    }
    return !found || !str_equal(run.tenant_name, c->claims->tenant_id) || call_project(c, run.project);
}

bool call_page(struct call *c, int64_t *ret_limit, int64_t *ret_below)
{
    struct str limit, cursor;
    if (!call_query(c, "limit", &limit) || !call_query(c, "cursor", &cursor))
        return false;
    *ret_limit = PAGE_DEFAULT;
    *ret_below = INT64_MAX;
    if (limit.ptr && !str_to_int(limit, 1, PAGE_MAX, ret_limit)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "limit has to be 1 to %d", PAGE_MAX);
        return false;
    }
    if (cursor.ptr && !str_to_int(cursor, 1, INT64_MAX, ret_below)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "cursor is not one this server gave");
        return false;
    }
    return true;
}

void encode_next(struct call *c, struct json_writer *w, bool more, int64_t last)
{
    encode_str(w, "nextCursor", more ? arena_printf(c->x->arena, "%lld", (long long)last) : STR_ABSENT);
}
