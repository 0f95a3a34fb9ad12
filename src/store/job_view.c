#include "store/job_view.h"

#include "base/banned.h"

/* Of the attempt before the present one: only retries have one. */
static enum err_code read_last_error(struct reader *r, struct arena *a, struct job_view *v, struct err *err)
{
    struct archive_row before = {.job = v->job.id, .attempt = v->attempt - 1};
    bool found = false;
    if (v->attempt > 1 && r->ops->reader_row(r, &table_archive_row, &before, a, &found, err) != ERR_OK)
        return err->code;
    v->error = found ? before.error : STR_ABSENT;
    return ERR_OK;
}

static enum err_code read_live(struct reader *r, struct arena *a, struct job_view *v, struct err *err)
{
    v->task = (struct task_row){.id = v->job.id};
    if (r->ops->reader_row(r, &table_task_row, &v->task, a, &v->is_live, err) != ERR_OK)
        return err->code;
    if (!v->is_live)
        return ERR_OK;
    v->state = (enum job_state)v->task.job_state;
    v->attempt = v->task.attempt;
    v->updated_us = v->task.last_us;
    v->started_ms = v->task.started_ms;
    v->seq = (uint32_t)log_ref_count(v->task.refs);
    v->refs = v->task.refs;
    return read_last_error(r, a, v, err);
}

static enum err_code read_end(struct reader *r, struct arena *a, struct job_view *v, bool *ret_found,
                              struct err *err)
{
    struct end_row end = {.id = v->job.id};
    if (r->ops->reader_row(r, &table_end_row, &end, a, ret_found, err) != ERR_OK || !*ret_found)
        return err->code;
    v->state = (enum job_state)end.state;
    v->attempt = end.attempt;
    v->updated_us = end.last_us;
    v->started_ms = end.started_ms;
    v->finished_ms = end.finished_ms;
    v->seq = (uint32_t)end.seq;
    v->result = end.result;
    v->error = end.error;
    v->refs = end.refs;
    return ERR_OK;
}

enum err_code job_view_read(struct reader *r, struct arena *a, int64_t id, struct job_view *ret_view,
                            bool *ret_found, struct err *err)
{
    err->code = ERR_OK;
    struct job_view *v = ret_view;
    *v = (struct job_view){.job = {.id = id}};
    if (r->ops->reader_row(r, &table_job_row, &v->job, a, ret_found, err) != ERR_OK || !*ret_found)
        return err->code;
    if (read_live(r, a, v, err) != ERR_OK || v->is_live)
        return err->code;
    if (read_end(r, a, v, ret_found, err) != ERR_OK || *ret_found)
        return err->code;
    return err_set(err, ERR_STORE_CORRUPT, "the job has neither a live nor a final state");
}

/* The bytes an event's ref points at: a log chunk, or the copy kept when its chunk was purged. */
enum err_code job_view_event(struct reader *r, struct arena *a, const struct job_view *v, uint32_t seq,
                             struct log_memo *m, struct event *ret_event, bool *ret_found, struct err *err)
{
    size_t next;
    *ret_found = false;
    if (!seq || seq > log_ref_count(v->refs))
        return ERR_OK;
    uint64_t ref = log_ref_at(v->refs, seq - 1);
    if (!m->is_read || log_ref_chunk(ref) != m->number) {
        m->is_read = false;
        m->number = log_ref_chunk(ref);
        if (r->ops->reader_chunk(r, m->number, a, &m->chunk, err) != ERR_OK)
            return err->code;
        m->is_read = true;
        if (m->chunk.ptr && !log_chunk_is_sound(m->chunk))
            m->chunk = STR_ABSENT;
    }
    if (m->chunk.ptr) {
        *ret_found = event_decode(m->chunk, log_ref_offset(ref), ret_event, &next) &&
                     ret_event->job == v->job.id && ret_event->seq == seq;
        return ERR_OK;
    }
    struct kept_row kept = {.job = v->job.id, .seq = seq};
    bool found;
    if (r->ops->reader_row(r, &table_kept_row, &kept, a, &found, err) != ERR_OK)
        return err->code;
    *ret_found = found && event_decode(kept.event, 0, ret_event, &next);
    return ERR_OK;
}

enum err_code job_view_events(struct reader *r, struct arena *a, const struct job_view *v, uint32_t after,
                              size_t max, struct event *ret_events, size_t *ret_count, struct err *err)
{
    struct log_memo memo = {.is_read = false};
    size_t n = 0;
    for (size_t i = after; i < log_ref_count(v->refs) && n < max; i++) {
        bool found;
        if (job_view_event(r, a, v, (uint32_t)i + 1, &memo, &ret_events[n], &found, err) != ERR_OK)
            return err->code;
        n += found;
    }
    *ret_count = n;
    return ERR_OK;
}
