#include "api/jobs/encode.h"

#include "api/jobs/list_filter.h"
#include "lifecycle/work_kinds.h"

#include "base/banned.h"

void encode_definition(struct json_writer *w, const struct job_row *job)
{
    jw_key(w, "definition");
    if (job->duration_ms < 0) {
        jw_null(w);
        return;
    }
    jw_object(w);
    if (job->kind == WORK_KIND_NONE || job->kind_name.ptr)
        encode_str(w, "kind", job->kind_name);
    if (job->kind == WORK_KIND_NONE) {
        jw_object_end(w);
        return;
    }
    encode_text(w, "work_kind", work_kind_text((enum work_kind)job->kind));
    encode_time_ms(w, "execution_at", job->execution_ms);
    encode_int(w, "duration_ms", job->duration_ms);
    encode_bool(w, "should_fail", job->should_fail != 0);
    encode_int(w, "payload_size", job->payload_size);
    encode_int(w, "seed", job->seed);
    jw_object_end(w);
}

void encode_job(struct json_writer *w, const struct job_view *v)
{
    jw_object(w);
    encode_job_members(w, v);
    jw_object_end(w);
}

void encode_whole_job(struct json_writer *w, const struct job_view *v)
{
    jw_object(w);
    encode_job_members(w, v);
    encode_raw(w, "result", v->result);
    encode_raw(w, "progress", v->is_live ? v->task.progress : STR_ABSENT);
    jw_object_end(w);
}

void encode_job_members(struct json_writer *w, const struct job_view *v)
{
    const struct job_row *j = &v->job;
    encode_uuid_v7(w, "job_id", j->id, (uint64_t)j->low);
    encode_text(w, "type", job_type_text((enum job_type)j->type));
    encode_text(w, "state", job_state_text(v->state));
    encode_text(w, "outcome", job_outcome_text(v->state));
    encode_time_ms(w, "created_at", j->created_ms);
    encode_time_ms(w, "execution_at", j->execution_ms);
    encode_time_us(w, "updated_at", v->updated_us);
    encode_int(w, "attempt", v->attempt);
    encode_str(w, "callback", j->callback);
    encode_str(w, "kind", j->kind_name);
    encode_text(w, "work_kind", work_kind_text((enum work_kind)j->kind));
    encode_str(w, "queue", j->queue);
    encode_int(w, "priority", j->priority);
    encode_int(w, "max_runtime_ms", j->max_runtime_ms);
    encode_int(w, "max_retries", j->max_retries);
    encode_text(w, "retry", job_retry_text((enum job_retry)j->retry));
    encode_int_or_null(w, "queue_ttl_seconds", j->queue_ttl_ms / 1000);
    encode_definition(w, j);
    encode_raw(w, "payload", j->payload);
    encode_raw(w, "error", v->error);
}

int64_t job_ran_ms(const struct job_view *v)
{
    return v->started_ms ? v->finished_ms - v->started_ms : 0;
}

void encode_report_members(struct json_writer *w, const struct job_view *v)
{
    encode_uuid_v7(w, "job_id", v->job.id, (uint64_t)v->job.low);
    encode_text(w, "outcome", job_outcome_text(v->state));
    encode_time_ms(w, "started_at", v->started_ms);
    encode_time_ms(w, "finished_at", v->finished_ms);
    jw_key(w, "duration_ms");
    if (v->is_live)
        jw_null(w);
    else
        jw_int(w, job_ran_ms(v));
}

bool call_read_job(struct call *c, struct reader **ret_reader, struct job_view *ret_view)
{
    int64_t id;
    uint64_t low;
    bool found = false;
    struct err err = {.code = ERR_OK};
    if (!call_job_id(c, &id, &low))
        return false;
    struct reader *r = api_read_begin(c->api, &err);
    if (!r) {
        call_problem(c, &err);
        return false;
    }
    if (job_view_read(r, c->x->arena, id, ret_view, &found, &err) == ERR_OK) {
        if (!found || (uint64_t)ret_view->job.low != low)
            err_set(&err, ERR_JOB_NOT_FOUND, "no job has this id");
        else if (ret_view->job.client != c->who.client)
            err_set(&err, ERR_AUTH_FORBIDDEN, "the job belongs to another client");
        else if (!call_has_queue(c, ret_view->job.queue))
            err_set(&err, ERR_AUTH_FORBIDDEN, "the key is not for the queue %.*s",
                    STR_ARG(ret_view->job.queue));
    }
    if (err.code == ERR_OK) {
        *ret_reader = r;
        return true;
    }
    call_problem(c, &err);
    return false;
}

bool call_limit(struct call *c, int64_t fallback, int64_t max, int64_t *ret_limit)
{
    struct err err;
    struct str text;
    if (http_query(c->x, "limit", &text, &err) == ERR_OK &&
        list_limit_parse(text, fallback, max, ret_limit, &err) == ERR_OK)
        return true;
    call_problem(c, &err);
    return false;
}
