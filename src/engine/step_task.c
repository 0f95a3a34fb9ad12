#include "engine/step_task.h"

#include "base/must.h"
#include "engine/schedule.h"

#include "base/banned.h"

enum { STEP_PRIORITY = 4 };

/* --- making and ending ----------------------------------------------------------------------------- */

static struct task *add(struct unit *u, const struct run_row *run, int64_t step, struct str queue,
                        int64_t max_runtime_ms, int64_t attempt, int64_t due_ms)
{
    struct task_row row = {.id = (int64_t)(TASK_ID_OF_OTHERS | (uint64_t)unit_id(u)),
                           .low = unit_uuid_tail(u),
                           .client = run->tenant,
                           .owner = step_task_owner.number,
                           .step = step,
                           .priority = STEP_PRIORITY,
                           .created_ms = u->now_ms,
                           .max_runtime_ms = max_runtime_ms,
                           .max_retries = attempt - 1,
                           .subject = run->num,
                           .queue = queue,
                           .state = TASK_WAITING,
                           .job_state = JOB_NO_STATE,
                           .attempt = attempt,
                           .due_ms = due_ms,
                           .refs = {"", 0}};
    return unit_task_add(u, &row);
}

int64_t step_timeout_ms(const struct settings *s, const struct plan_step_row *plan)
{
    return plan->timeout_ms ? plan->timeout_ms : s->engine_step_timeout_ms;
}

int64_t step_task_add(struct unit *u, const struct run_row *run, const struct run_step_row *step,
                      const struct plan_step_row *plan, int64_t due_ms)
{
    struct task *t =
        add(u, run, step->idx, plan->queue, step_timeout_ms(u->settings, plan), step->attempt + 1, due_ms);
    unit_task_move(u, t, TASK_ON_DUE); /* a pause before another try is one of the queue, as jobs have it */
    unit_task_place(u, t);
    return t->row.id;
}

bool step_task_is_leased(struct unit *u, int64_t id)
{
    const struct task *t = id ? unit_task(u, id) : NULL;
    return t && t->phase == TASK_LEASED;
}

void step_task_end(struct unit *u, int64_t id)
{
    struct task *t = id ? unit_task(u, id) : NULL;
    if (!t)
        return;
    if (t->phase == TASK_LEASED || t->phase == TASK_RUNNING)
        lease_remember_ended(u, t, LEASE_CUT);
    unit_task_end(u, t);
}

void step_task_hurry(struct unit *u, int64_t id)
{
    struct task *t = id ? unit_task(u, id) : NULL;
    if (!t || t->phase != TASK_READY)
        return;
    unit_task_touch(u, t);
    t->row.due_ms = 0;
    unit_task_place(u, t);
}

void step_task_cancel(struct unit *u, int64_t id)
{
    struct task *t = id ? unit_task(u, id) : NULL;
    if (!t)
        return;
    unit_task_touch(u, t);
    t->row.cancel_asked = 1;
    unit_task_place(u, t);
}

/* --- the owner's side ------------------------------------------------------------------------------ */

static void load(struct unit *u, struct task *t)
{
    schedule_prefetch_step(u, t->row.subject, t->row.step);
}

struct held {
    struct run_row *run;
    struct run_step_row *step;
};

/* False: it is damaged, or not to be read; the batch, or the task, ends. */
static bool find(struct unit *u, const struct task *t, struct held *ret)
{
    ret->run = run_by_number(u, t->row.subject);
    ret->step = ret->run ? run_step(u, ret->run, t->row.step) : NULL;
    return ret->step && ret->step->task == t->row.id;
}

static void started(struct unit *u, struct task *t)
{
    struct held h;
    if (!find(u, t, &h) || !schedule_started(u, h.run, h.step))
        unit_task_end(u, t);
}

static void failed(struct unit *u, struct task *t, struct str code, struct str message, bool retryable)
{
    struct held h;
    bool found = find(u, t, &h);
    unit_task_end(u, t);
    if (found)
        schedule_failed(u, h.run, h.step, code, message, retryable);
}

static void finished(struct unit *u, struct task *t, const struct task_outcome *o)
{
    struct held h;
    if (!o->success) {
        failed(u, t, o->error_code.ptr ? o->error_code : STR("failed"),
               o->error_message.ptr ? o->error_message : STR("the worker reported a failure"), o->retryable);
        return;
    }
    if ((int64_t)o->result.len > u->settings->jobs_payload_max_bytes) {
        failed(u, t, STR("output_too_large"), STR("the result is larger than jobs.payload_max_bytes"), false);
        return;
    }
    bool found = find(u, t, &h);
    unit_task_end(u, t);
    if (found)
        schedule_succeeded(u, h.run, h.step, o->result);
}

/* Before the start only: the run's log has no event that takes a StepStarted back. */
static void released(struct unit *u, struct task *t, const struct task_return *r)
{
    t->row.due_ms = r->delay_ms ? u->now_ms + r->delay_ms : 0;
}

static void lost(struct unit *u, struct task *t, enum task_loss how)
{
    if (how == TASK_TIMED_OUT) {
        lease_remember_ended(u, t, LEASE_CUT);
        failed(u, t, STR("timeout"),
               STR("it ran longer than timeoutMs of its step, or engine.step_timeout_ms"), true);
        return;
    }
    failed(u, t, STR("worker_lost"), STR("no heartbeat until the lease ended"), true);
}

static int64_t head(const struct task *t)
{
    return t->row.step;
}

const struct task_owner step_task_owner = {
    .number = STEP_TASK_OWNER,
    .name = "step",
    .load = load,
    .loads_claims = true,
    .remembers_finishes = true,
    .head = head,
    .started = started,
    .finished = finished,
    .lost = lost,
    .released = released,
};
