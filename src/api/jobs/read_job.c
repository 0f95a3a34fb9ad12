/* GET a job, its report and why it waits. Reads only; nothing here changes anything. */
#include "api/handlers.h"
#include "api/jobs/encode.h"
#include "api/jobs/job_wait.h"
#include "lifecycle/work_kinds.h"

#include "base/banned.h"

static void send_job(struct call *c, const struct job_view *v)
{
    struct json_writer answer, *w = &answer;
    call_object(c, 200, w);
    encode_job_members(w, v);
    JOB_END_FIELDS(ENCODE_FIELD)
    call_send_object(c, w);
}

static bool read_wait_ms(struct call *c, int64_t *ret_ms)
{
    struct str text;
    *ret_ms = 0;
    if (!call_query(c, "wait_ms", &text))
        return false;
    if (text.ptr && !str_to_int(text, 0, JOB_WAIT_MS_MAX, ret_ms)) {
        call_fail(c, ERR_REQUEST_MALFORMED, "wait_ms must be 0 to %d", JOB_WAIT_MS_MAX);
        return false;
    }
    *ret_ms = call_wait_ms(c, *ret_ms);
    return true;
}

void handle_get_job(struct call *c)
{
    struct reader *r;
    struct job_view v;
    int64_t wait_ms;
    if (!read_wait_ms(c, &wait_ms) || !call_read_job(c, &r, &v))
        return;
    if (wait_ms && v.is_live)
        job_wait_start(c, v.job.id, wait_ms, send_job);
    else
        send_job(c, &v);
}

static void send_report(struct call *c, const struct job_view *v, const struct event *events, size_t count)
{
    struct json_writer answer, *w = &answer;
    call_object(c, 200, w);
    ENDED_FIELDS(ENCODE_FIELD)
    REPORT_FIELDS(ENCODE_FIELD)
    jw_key(w, "events");
    jw_array(w);
    for (size_t i = 0; i < count; i++)
        encode_event(w, &events[i], &v->job);
    jw_array_end(w);
    call_send_object(c, w);
}

void handle_get_report(struct call *c)
{
    struct reader *r;
    struct job_view v;
    struct err err = {.code = ERR_OK};
    if (!call_read_job(c, &r, &v))
        return;
    size_t count = 0, room = log_ref_count(v.refs);
    struct event *events = ARENA_ARRAY(c->x->arena, struct event, room + 1);
    if (v.is_live)
        err_set(&err, ERR_JOB_REPORT_NOT_FOUND, "the job is %s; its report is written when it ends",
                job_state_text(v.state));
    else
        (void)!job_view_events(r, c->x->arena, &v, 0, room, events, &count, &err);
    if (err.code != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    send_report(c, &v, events, count);
}

/* --- explain --------------------------------------------------------------------------------------- */

struct reason {
    const char *waiting_on, *detail;
    int64_t since_us;
};

/* What is known besides the job. */
struct around {
    int64_t now_ms, queued, queue_size;
    bool paused; /* its queue is */
};

static struct reason explain_live(const struct job_view *v, const struct around *around)
{
    int64_t now_ms = around->now_ms, queued = around->queued, queue_size = around->queue_size;
    const struct task_row *t = &v->task;
    switch (v->state) {
    case JOB_CREATED:
        if (t->due_ms <= now_ms || v->job.execution_ms < t->due_ms)
            return (struct reason){
                queued >= queue_size ? "queue_full" : "schedule",
                queued >= queue_size ? "it is due, but the queue is full" : "it is due now", v->updated_us};
        return (struct reason){"schedule", "it is queued when execution_at comes", v->updated_us};
    case JOB_QUEUED:
        if (t->due_ms > now_ms)
            return (struct reason){"backoff", "it waits a while before it may be claimed again",
                                   v->updated_us};
        if (around->paused)
            return (struct reason){
                "worker", "its queue is paused: no worker gets it before POST /v1/queues/{queue}:resume",
                v->updated_us};
        return (struct reason){"worker", "it waits for a worker of its queue to claim it", v->updated_us};
    case JOB_ASSIGNED:
        return (struct reason){"lease", "a worker claimed it and has not started it yet", v->updated_us};
    case JOB_RUNNING:
        return (struct reason){"lease", "a worker runs it", v->updated_us};
    case JOB_SUCCEEDED:
    case JOB_FAILED:
    case JOB_CANCELED:
    case JOB_STATE_COUNT:
        break;
    }
    return (struct reason){"nothing", "it is finished", v->updated_us};
}

static bool comes_before(const struct task_row *t, const struct job_row *job)
{
    return str_equal(t->queue, job->queue) &&
           (t->priority > job->priority || (t->priority == job->priority && t->id < job->id));
}

/* 1 + how many of the caller's own jobs in the same queue come first, as far as its newest LOOK_AT tell;
 * other clients' jobs are not shown. */
static enum err_code own_position(struct reader *r, struct arena *a, const struct job_view *v,
                                  int64_t *ret_position, struct err *err)
{
    enum { LOOK_AT = 1000 };
    int64_t *ids = ARENA_ARRAY(a, int64_t, LOOK_AT);
    size_t count;
    struct list_query q = {.owner_key = v->job.client, .below_id = INT64_MAX, .limit = LOOK_AT};
    if (r->ops->reader_live(r, &q, JOB_QUEUED, ids, &count, err) != ERR_OK)
        return err->code;
    *ret_position = 1;
    for (size_t i = 0; i < count; i++) {
        struct task_row t = {.id = ids[i]};
        bool found;
        if (r->ops->reader_row(r, &table_task_row, &t, a, &found, err) != ERR_OK)
            return err->code;
        *ret_position += found && comes_before(&t, &v->job);
    }
    return ERR_OK;
}

static enum err_code read_around(struct call *c, struct reader *r, const struct job_view *v,
                                 struct around *ret, struct err *err)
{
    struct kernel_stats stats;
    struct queue_row queue = {.client = v->job.client, .queue = v->job.queue};
    bool found;
    kernel_stats(c->api->kernel, &stats);
    *ret = (struct around){.now_ms = c->x->received_us / 1000,
                           .queued = stats.queued,
                           .queue_size = c->api->config.settings->jobs_queue_size};
    if (r->ops->reader_row(r, &table_queue_row, &queue, c->x->arena, &found, err) == ERR_OK)
        ret->paused = found && queue.paused;
    return err->code;
}

void handle_explain_job(struct call *c)
{
    struct reader *r;
    struct job_view v;
    struct around around;
    struct reason why = {0};
    int64_t position = 0;
    struct err err = {.code = ERR_OK};
    if (!call_read_job(c, &r, &v))
        return;
    if (read_around(c, r, &v, &around, &err) == ERR_OK)
        why = explain_live(&v, &around);
    if (err.code == ERR_OK && v.state == JOB_QUEUED && v.task.due_ms <= around.now_ms)
        (void)!own_position(r, c->x->arena, &v, &position, &err);
    if (err.code != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    struct json_writer w;
    call_object(c, 200, &w);
    encode_uuid_v7(&w, "job_id", v.job.id, (uint64_t)v.job.low);
    encode_text(&w, "state", job_state_text(v.state));
    encode_text(&w, "waiting_on", why.waiting_on);
    encode_text(&w, "detail", why.detail);
    encode_time_us(&w, "since", why.since_us);
    encode_int_or_null(&w, "position", position);
    if (v.is_live && v.task.worker.ptr)
        encode_str(&w, "worker_id", v.task.worker);
    if (v.is_live && v.task.due_ms > c->x->received_us / 1000)
        encode_time_ms(&w, "until", v.task.due_ms);
    call_send_object(c, &w);
}
