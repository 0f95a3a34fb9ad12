#include "api/jobs/encode.h"

#include "lifecycle/work_kinds.h"

#include "base/banned.h"

void put_definition(struct json_writer *w, const struct job_row *job)
{
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

void encode_job_members(struct json_writer *w, const struct job_view *v)
{
    JOB_FIELDS(ENCODE_FIELD)
}

bool call_read_job(struct call *c, struct reader **ret_reader, struct job_view *ret_view)
{
    int64_t id;
    uint64_t low;
    bool found = false;
    struct err err = {.code = ERR_OK};
    struct reader *r = call_job_id(c, &id, &low) ? call_reader(c) : NULL;
    if (!r)
        return false;
    if (job_view_read(r, c->x->arena, id, ret_view, &found, &err) == ERR_OK) {
        if (!found || (uint64_t)ret_view->job.low != low)
            err_set(&err, ERR_JOB_NOT_FOUND, "no job has this id");
        else if (ret_view->job.client != c->who.client)
            err_set(&err, ERR_AUTH_FORBIDDEN, "the job belongs to another client");
        else if (!call_has_queue(c, ret_view->job.queue))
            err_set(&err, ERR_AUTH_FORBIDDEN, "the key is not for the queue %.*s",
                    STR_ARG(ret_view->job.queue));
    }
    *ret_reader = r;
    if (err.code != ERR_OK)
        call_problem(c, &err);
    return err.code == ERR_OK;
}
