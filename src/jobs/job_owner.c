/* The effect of claims, lost leases and results on a job: the owner side of its task. */
#include "base/json_members.h"
#include "base/must.h"
#include "jobs/job_move.h"
#include "jobs/job_room.h"
#include "lifecycle/key_power.h"
#include "lifecycle/work_kinds.h"

#include "base/banned.h"

/* A due job that meets a full queue, or one of which its client has its share, stays CREATED and is tried
 * again each second (AJ-16). */
enum { QUEUE_FULL_RETRY_MS = 1000 };

static void job_due(struct unit *u, struct task *t)
{
    struct err err;
    struct job_room room = {.client = t->row.client, .queue_max = u->settings->jobs_queue_size};
    if (job_room_take(u, &room, &err) != ERR_OK) {
        t->row.due_ms = u->now_ms + QUEUE_FULL_RETRY_MS;
        return;
    }
    unit_task_move(u, t, TASK_ON_DUE);
    MUST(job_move(u, t, JOB_ON_DUE, STR_ABSENT, NULL));
}

static struct str worker_extra(struct unit *u, const struct task *t)
{
    struct strbuf b = {0};
    struct json_writer w;
    jw_start(&w, &b);
    jw_object(&w);
    encode_str(&w, "worker_id", t->row.worker);
    jw_object_end(&w);
    struct str text = arena_str(u->arena, strbuf_str(&b));
    strbuf_free(&b);
    return text;
}

static void job_assigned(struct unit *u, struct task *t)
{
    MUST(job_move(u, t, JOB_ON_CLAIM, worker_extra(u, t), NULL));
}

static void job_started(struct unit *u, struct task *t)
{
    MUST(job_move(u, t, JOB_ON_START, STR_ABSENT, NULL));
}

/* `reason` goes into the event, `code` into the report; they differ where a code of the API exists. */
static void fail_as(struct unit *u, struct task *t, enum job_trigger on, const char *reason, struct str code,
                    struct str message, bool retryable)
{
    job_fail(u, t, on,
             &(struct job_failure){.reason = job_reason(u, reason, message),
                                   .error = job_error(u, code, message, retryable),
                                   .retryable = retryable});
}

static void fail(struct unit *u, struct task *t, enum job_trigger on, struct str code, struct str message,
                 bool retryable)
{
    char reason[129];
    size_t n = code.len < sizeof reason - 1 ? code.len : sizeof reason - 1;
    memcpy(reason, code.ptr, n);
    reason[n] = 0;
    fail_as(u, t, on, reason, code, message, retryable);
}

static bool has_room_for_result(const struct unit *u, const struct task_outcome *o)
{
    return (int64_t)o->result.len <= u->settings->jobs_payload_max_bytes;
}

static void job_finished(struct unit *u, struct task *t, const struct task_outcome *o)
{
    if (!o->success) {
        fail(u, t, JOB_ON_FAIL, o->error_code.ptr ? o->error_code : STR("failed"),
             o->error_message.ptr ? o->error_message : STR("the worker reported a failure"), o->retryable);
        return;
    }
    if (!has_room_for_result(u, o)) {
        fail(u, t, JOB_ON_FAIL, STR("output_too_large"),
             STR("the result is larger than jobs.payload_max_bytes"), false);
        return;
    }
    struct job_ending ending = {.result = o->result};
    MUST(job_move(u, t, JOB_ON_SUCCEED, STR_ABSENT, &ending));
}

static int64_t due_after_ms(const struct unit *u, int64_t delay_ms)
{
    return delay_ms ? u->now_ms + delay_ms : 0;
}

static void release_unstarted(struct unit *u, struct task *t, const struct task_return *r)
{
    t->row.due_ms = due_after_ms(u, r->delay_ms);
    MUST(job_move(u, t, JOB_ON_LEASE_EXPIRE, job_reason(u, r->reason, r->message), NULL));
}

/* The lifecycle leads from RUNNING to QUEUED by way of FAILED only. Nothing failed, so the attempt and what
 * is left of them stay as they are, and no report is archived. */
static void release_started(struct unit *u, struct task *t, const struct task_return *r)
{
    struct job_ending ending = {.is_retried = true, .is_release = true};
    MUST(job_move(u, t, JOB_ON_FAIL, job_reason(u, r->reason, r->message), &ending));
    job_requeue(u, t, due_after_ms(u, r->delay_ms), true);
}

static void job_released(struct unit *u, struct task *t, const struct task_return *r)
{
    if (t->phase == TASK_RUNNING)
        release_started(u, t, r);
    else
        release_unstarted(u, t, r);
}

static void job_progressed(struct unit *u, struct task *t, const struct task_progress *p)
{
    struct strbuf b = {0};
    struct json_writer w;
    jw_start(&w, &b);
    jw_object(&w);
    jw_key(&w, "percent");
    jw_double(&w, p->percent);
    encode_str(&w, "note", p->note);
    encode_time_ms(&w, "at", u->now_ms);
    jw_object_end(&w);
    unit_task_progress(u, t, strbuf_str(&b));
    strbuf_free(&b);
    struct progress_notice *n = ARENA_NEW(u->arena, struct progress_notice);
    n->job = t->row.id;
    unit_notify(u, &progress_notices, n);
}

/* After a lost worker or a time limit a later finish is not the one that ended it: the token tells. */
static void job_lost(struct unit *u, struct task *t, enum task_loss how)
{
    switch (how) {
    case TASK_UNCLAIMED:
        job_cancel(u, t, "expired");
        return;
    case TASK_WORKER_LOST:
        t->row.token++;
        fail(u, t, JOB_ON_WORKER_LOST, STR("worker_lost"), STR("no heartbeat until the lease ended"), true);
        return;
    case TASK_TIMED_OUT:
        lease_remember_ended(u, t, LEASE_CUT);
        t->row.token++;
        fail_as(u, t, JOB_ON_TIMEOUT, "timeout", str_of(err_wire(ERR_EXEC_TIMEOUT)),
                STR("it ran longer than max_runtime_ms"), true);
        return;
    }
}

static int64_t job_head(const struct task *t)
{
    return t->row.id;
}

static void job_load_ended(struct unit *u, int64_t id)
{
    if (task_id_is_job(id))
        unit_prefetch(u, &table_end_row, &(struct end_row){.id = id});
}

/* A token rises by one with each claim, and by one more when its lease ends otherwise than by its finish. So
 * the tokens of a job that is tried again tell whether the lease before was finished; as a failure, then. */
static bool was_failed_by(const struct task *t, const struct finish_again *f)
{
    bool leased = t->phase == TASK_LEASED || t->phase == TASK_RUNNING;
    return !f->outcome->success && t->row.low == (int64_t)f->low && f->token == t->row.token - leased &&
           (!f->client || t->row.client == f->client) && key_queues_have(f->queues, t->row.queue);
}

/* Rows that nobody wanted are read here: the task may have ended in this very batch. */
static bool job_was_finished(struct unit *u, const struct task *t, const struct finish_again *f)
{
    if (t)
        return was_failed_by(t, f);
    if (!task_id_is_job(f->id))
        return false;
    const struct end_row *end = unit_fetch(u, &table_end_row, &(struct end_row){.id = f->id});
    bool success = f->outcome->success && has_room_for_result(u, f->outcome);
    if (!end || end->token != f->token || end->state != (success ? JOB_SUCCEEDED : JOB_FAILED) ||
        (f->client && end->client != f->client))
        return false;
    const struct job_row *job = unit_fetch(u, &table_job_row, &(struct job_row){.id = f->id});
    return job && job->low == (int64_t)f->low && key_queues_have(f->queues, job->queue);
}

const struct task_owner job_task_owner = {
    .number = 0,
    .name = "job",
    .releases_started = true,
    .head = job_head,
    .due = job_due,
    .assigned = job_assigned,
    .started = job_started,
    .finished = job_finished,
    .lost = job_lost,
    .released = job_released,
    .progressed = job_progressed,
    .load_ended = job_load_ended,
    .was_finished = job_was_finished,
};
