#include "engine/signal_apply.h"

#include "base/json_members.h"
#include "base/json_merge.h"
#include "base/must.h"
#include "engine/alert.h"
#include "engine/run_begin.h"
#include "engine/run_index.h"
#include "engine/schedule.h"

#include "base/banned.h"

enum { EMERGENCY_GRACE_MS = 1000 };

static struct str text_of(const struct applied_signal *s, const char *name)
{
    const struct json *m = json_get(s->payload, name);
    return m && m->type == JSON_STRING ? m->text : STR_ABSENT;
}

static bool is_true(const struct applied_signal *s, const char *name)
{
    const struct json *m = json_get(s->payload, name);
    return m && m->type == JSON_TRUE;
}

/* --- the step it names ----------------------------------------------------------------------------- */

static bool is_plan_step(struct unit *u, int64_t plan, int64_t place, const void *name)
{
    const struct plan_step_row *p =
        unit_fetch(u, &table_plan_step_row, &(struct plan_step_row){.plan = plan, .idx = place});
    return p && str_equal(p->step, *(const struct str *)name);
}

enum err_code signal_step(struct unit *u, const struct run_row *run, const struct applied_signal *s,
                          struct run_step_row **ret_step, struct err *err)
{
    struct str name = text_of(s, "stepId");
    *ret_step = NULL;
    if (!name.ptr)
        return ERR_OK;
    int64_t hash = run_index_hash(RUN_INDEX_STEP, name);
    int64_t idx = run->plan_num ? run_index_find(u, run->plan_num, hash, is_plan_step, &name)
                                : run_step_find(u, run, hash, name);
    *ret_step = idx >= 0 ? run_step(u, run, idx) : NULL;
    if (*ret_step)
        return ERR_OK;
    return err_set(err, ERR_SIGNAL_INVALID_PAYLOAD, "the run has no step of this stepId");
}

/* --- what the state says --------------------------------------------------------------------------- */

static enum err_code not_ended(const char *what, struct err *err)
{
    return err_set(err, ERR_STEP_NOT_TERMINAL, "%s", what);
}

static enum err_code check_terminal(const struct run_row *run, const struct applied_signal *s,
                                    struct err *err)
{
    bool over = run_status_is_final((enum run_status)run->state);
    if (s->type == SIGNAL_ESCALATE_ALERT)
        return ERR_OK;
    if (s->type == SIGNAL_RETRY_RUN) {
        if (!over)
            return not_ended("the run has not ended", err);
        if (run->state == RUN_COMPLETED && !is_true(s, "force"))
            return err_set(err, ERR_RUN_TERMINAL, "the run was completed; force repeats it all the same");
        return ERR_OK;
    }
    if (over)
        return err_set(err, ERR_RUN_TERMINAL, "the run is %s", run_status_text((enum run_status)run->state));
    if (run->ending && s->type != SIGNAL_CANCEL && s->type != SIGNAL_EMERGENCY_STOP)
        return err_set(err, ERR_RUN_TERMINAL, "the run is being stopped");
    return ERR_OK;
}

static enum err_code check_retry(const struct run_step_row *step, const struct applied_signal *s,
                                 struct err *err)
{
    if (step->state == STEP_PENDING || step->state == STEP_RUNNING)
        return not_ended("the step has not failed", err);
    if (step->state != STEP_FAILED)
        return err_set(err, ERR_STEP_TERMINAL, "only a FAILED step can be retried");
    if (step->attempt >= STEP_ATTEMPTS_MAX && !is_true(s, "force"))
        return err_set(err, ERR_STEP_TERMINAL, "it was tried %d times; force tries it again",
                       STEP_ATTEMPTS_MAX);
    return ERR_OK;
}

static enum err_code check_change(const struct run_step_row *step, bool failed_is_fine, struct err *err)
{
    if (step->state == STEP_RUNNING)
        return not_ended("the step is running", err);
    if (step->state == STEP_PENDING || (step->state == STEP_FAILED && failed_is_fine))
        return ERR_OK;
    return err_set(err, ERR_STEP_TERMINAL, "the step is %s", step_status_text((enum step_status)step->state));
}

enum err_code signal_is_possible(const struct run_row *run, const struct run_step_row *step,
                                 const struct applied_signal *s, struct err *err)
{
    if (check_terminal(run, s, err) != ERR_OK)
        return err->code;
    if (!step)
        return ERR_OK;
    if (s->type == SIGNAL_RETRY_STEP)
        return check_retry(step, s, err);
    if (check_change(step, s->type != SIGNAL_SKIP_STEP, err) != ERR_OK)
        return err->code;
    if (s->type == SIGNAL_SKIP_STEP && run->state == RUN_PAUSED)
        return not_ended("the run is paused: resume it before a step is skipped", err);
    return ERR_OK;
}

/* --- effects --------------------------------------------------------------------------------------- */

static struct str stop_payload(struct unit *u, const struct applied_signal *s)
{
    struct strbuf b = {0};
    struct json_writer w;
    jw_start(&w, &b);
    jw_object(&w);
    encode_str(&w, "reason", text_of(s, "reason"));
    encode_bool(&w, "emergencyStop", true);
    encode_bool(&w, "forceKill", is_true(s, "forceKill"));
    jw_object_end(&w);
    struct str text = arena_str(u->arena, strbuf_str(&b));
    strbuf_free(&b);
    return text;
}

static enum err_code check_size(const struct unit *u, const char *what, size_t bytes, struct err *err)
{
    if ((int64_t)bytes <= u->settings->jobs_payload_max_bytes)
        return ERR_OK;
    return err_set(err, ERR_SIGNAL_INVALID_PAYLOAD, "%s would be larger than jobs.payload_max_bytes", what);
}

static enum err_code update_params(struct unit *u, struct run_row *run, const struct applied_signal *s,
                                   struct err *err)
{
    struct strbuf b CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    const struct json *before = NULL;
    if (run->params.ptr && json_parse(u->arena, run->params, &before, err) != ERR_OK)
        return err->code;
    jw_start(&w, &b);
    json_merge(before, json_get(s->payload, "params"), &w);
    if (check_size(u, "the params", b.len, err) != ERR_OK)
        return err->code;
    run->params = arena_str(u->arena, strbuf_str(&b));
    unit_update(u, &table_run_row, run);
    return ERR_OK;
}

static enum err_code set_of_step(struct unit *u, struct run_row *run, struct run_step_row *step,
                                 struct str *member, const struct json *value, struct err *err)
{
    if (check_size(u, "what it sets", value->source.len, err) != ERR_OK)
        return err->code;
    *member = arena_str(u->arena, value->source);
    unit_update(u, &table_run_step_row, step);
    schedule_give_anew(u, run, step);
    return ERR_OK;
}

static enum err_code retry_run(struct unit *u, const struct run_row *run, const struct applied_signal *s,
                               struct err *err)
{
    struct run_row again = {.id = s->new_run_id,
                            .tenant = run->tenant,
                            .tenant_name = run->tenant_name,
                            .project = run->project,
                            .environment = run->environment,
                            .plan = run->plan,
                            .version = run->version,
                            .original = run->id,
                            .params = run->params};
    return run_begin(u, &again, err) ? ERR_OK : err->code;
}

static void escalate(struct unit *u, struct run_row *run, const struct applied_signal *s)
{
    enum alert_severity severity = SEVERITY_INFO;
    alert_severity_of(text_of(s, "level"), &severity);
    /* Each is an event of its own: the number of the record makes its key one. */
    produce_opaque(u, run, STR("ALERT_ESCALATED"), run->last_seq + 1, s->payload->source);
    const struct run_event_row *e =
        unit_fetch(u, &table_run_event_row, &(struct run_event_row){.run = run->num, .seq = run->last_seq});
    alert_raise(u, run,
                &(struct alert_row){.severity = severity,
                                    .category = ALERT_ESCALATION,
                                    .code = STR("ALERT_ESCALATED"),
                                    .seq = run->last_seq,
                                    .persisted_ms = u->locked_at_ms,
                                    .event_id = e ? e->event_id : STR_ABSENT,
                                    .event_type = STR("ALERT_ESCALATED"),
                                    .detail = text_of(s, "note")});
}

bool signal_apply_outside(struct unit *u, struct run_row *run, const struct applied_signal *s)
{
    if (s->type != SIGNAL_ESCALATE_ALERT)
        return false;
    escalate(u, run, s);
    return true;
}

static void cancel(struct unit *u, struct run_row *run, const struct applied_signal *s)
{
    if (!run->ending)
        schedule_stop(u, run, RUN_IS_CANCELLED, u->settings->engine_cancel_grace_ms,
                      payload_reason(u, text_of(s, "reason")));
}

enum err_code signal_apply(struct unit *u, struct run_row *run, struct run_step_row *step,
                           const struct applied_signal *s, struct err *err)
{
    switch (s->type) {
    case SIGNAL_PAUSE:
        if (run->state != RUN_PAUSED)
            schedule_pause(u, run, text_of(s, "reason"));
        break;
    case SIGNAL_RESUME:
        if (run->state == RUN_PAUSED)
            schedule_resume(u, run);
        break;
    case SIGNAL_CANCEL:
        cancel(u, run, s);
        break;
    case SIGNAL_RETRY_STEP:
        schedule_retry(u, run, step);
        break;
    case SIGNAL_RETRY_RUN:
        return retry_run(u, run, s, err);
    case SIGNAL_UPDATE_PARAMS:
        return update_params(u, run, s, err);
    case SIGNAL_INJECT_OVERRIDE:
        return set_of_step(u, run, step, &step->override, json_get(s->payload, "override"), err);
    case SIGNAL_UPDATE_TARGET:
        return set_of_step(u, run, step, &step->target, json_get(s->payload, "newTarget"), err);
    case SIGNAL_SKIP_STEP:
        schedule_skip(u, run, step, text_of(s, "reason"));
        break;
    case SIGNAL_ESCALATE_ALERT:
        escalate(u, run, s);
        break;
    case SIGNAL_EMERGENCY_STOP:
        schedule_stop(u, run, RUN_IS_STOPPED, is_true(s, "forceKill") ? 0 : EMERGENCY_GRACE_MS,
                      stop_payload(u, s));
        break;
    case SIGNAL_TYPE_COUNT:
        MUST(false);
    }
    return ERR_OK;
}
