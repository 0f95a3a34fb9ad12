#include "api/worker/encode_step_task.h"

#include "base/json_members.h"
#include "base/varint.h"
#include "engine/step_task.h"

#include "base/banned.h"

struct step_rows {
    struct run_row run;
    struct run_step_row step;
    struct plan_step_row plan;
};

static void raw_or_null(struct json_writer *w, const char *key, struct str json)
{
    jw_key(w, key);
    if (json.ptr)
        jw_raw(w, json);
    else
        jw_null(w);
}

static enum err_code read_row(struct call *c, struct reader *r, const struct table *t, void *row,
                              bool *ret_found, struct err *err)
{
    return r->ops->reader_row(r, t, row, c->x->arena, ret_found, err);
}

static enum err_code read_step(struct call *c, struct reader *r, const struct claimed_task *t,
                               struct step_rows *ret, bool *ret_found, struct err *err)
{
    ret->run = (struct run_row){.num = t->subject};
    ret->step = (struct run_step_row){.run = t->subject, .idx = t->head};
    if (read_row(c, r, &table_run_row, &ret->run, ret_found, err) != ERR_OK || !*ret_found)
        return err->code;
    ret->plan = (struct plan_step_row){.plan = ret->run.plan_num, .idx = t->head};
    if (read_row(c, r, &table_run_step_row, &ret->step, ret_found, err) != ERR_OK || !*ret_found)
        return err->code;
    return read_row(c, r, &table_plan_step_row, &ret->plan, ret_found, err);
}

static void encode_step_definition(struct json_writer *w, const struct step_rows *s)
{
    jw_key(w, "definition");
    jw_object(w);
    encode_str(w, "planId", s->run.plan);
    encode_str(w, "planVersion", s->run.version);
    raw_or_null(w, "config", s->plan.config);
    raw_or_null(w, "params", s->run.params);
    raw_or_null(w, "override", s->step.override);
    raw_or_null(w, "target", s->step.target);
    jw_object_end(w);
}

/* {"inputs":{stepId: result}}: one that gave nothing, or was skipped, stands there as null. */
static enum err_code encode_inputs(struct call *c, struct json_writer *w, struct reader *r,
                                   const struct step_rows *s, struct err *err)
{
    uint64_t number;
    jw_key(w, "payload");
    jw_object(w);
    jw_key(w, "inputs");
    jw_object(w);
    for (struct str dependencies = s->plan.needs; dependencies.len && varint_take(&dependencies, &number);) {
        struct run_step_row before = {.run = s->run.num, .idx = (int64_t)number};
        bool found;
        if (read_row(c, r, &table_run_step_row, &before, &found, err) != ERR_OK)
            return err->code;
        if (!found)
            continue;
        jw_key_str(w, before.step);
        if (before.result.ptr)
            jw_raw(w, before.result);
        else
            jw_null(w);
    }
    jw_object_end(w);
    jw_object_end(w);
    return ERR_OK;
}

bool encode_step_task(struct call *c, struct json_writer *w, struct reader *r, const struct claimed_task *t,
                      struct err *err)
{
    struct step_rows s;
    bool found = false;
    char token[24];
    err->code = ERR_OK;
    if (read_step(c, r, t, &s, &found, err) != ERR_OK)
        return false;
    if (!found)
        return true;
    jw_object(w);
    encode_uuid_v7(w, "task_id", t->id, t->low);
    encode_str(w, "token", token_text(t->token, token));
    encode_text(w, "kind", "step");
    encode_str(w, "run_id", s.run.id);
    encode_str(w, "step_id", s.step.step);
    encode_str(w, "queue", s.plan.queue);
    encode_int(w, "attempt", t->attempt);
    encode_time_ms(w, "lease_expires_at", t->lease_expires_ms);
    encode_int(w, "max_runtime_ms", step_timeout_ms(c->api->config.settings, &s.plan));
    encode_step_definition(w, &s);
    if (encode_inputs(c, w, r, &s, err) != ERR_OK)
        return false;
    jw_key(w, "traceparent");
    jw_null(w);
    jw_object_end(w);
    return true;
}
