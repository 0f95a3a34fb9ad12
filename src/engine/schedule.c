#include "engine/schedule.h"

#include "base/backoff.h"
#include "base/must.h"
#include "base/varint.h"
#include "engine/run_timers.h"
#include "engine/step_task.h"
#include "runs/plan.h"

#include "base/banned.h"

static struct plan_step_row *plan_step(struct unit *u, const struct run_row *run, int64_t idx)
{
    return unit_fetch(u, &table_plan_step_row, &(struct plan_step_row){.plan = run->plan_num, .idx = idx});
}

static const struct plan_step_row *prefetch_step(struct unit *u, const struct run_row *run, int64_t idx)
{
    unit_prefetch(u, &table_run_step_row, &(struct run_step_row){.run = run->num, .idx = idx});
    return unit_prefetch(u, &table_plan_step_row, &(struct plan_step_row){.plan = run->plan_num, .idx = idx});
}

void schedule_prefetch_step(struct unit *u, int64_t run_num, int64_t idx)
{
    const struct run_row *run = unit_prefetch(u, &table_run_row, &(struct run_row){.num = run_num});
    const struct plan_step_row *p = run ? prefetch_step(u, run, idx) : NULL;
    uint64_t number;
    for (struct str dependents = p ? p->feeds : STR_ABSENT;
         dependents.len && varint_take(&dependents, &number);)
        (void)prefetch_step(u, run, (int64_t)number);
}

/* --- tasks ----------------------------------------------------------------------------------------- */

static bool gives_tasks(const struct run_row *run)
{
    return run->state != RUN_PAUSED && !run->ending && !run_status_is_final((enum run_status)run->state);
}

static void arm(struct unit *u, struct run_row *run, struct run_step_row *step, int64_t due_ms)
{
    const struct plan_step_row *p = plan_step(u, run, step->idx);
    if (!p || step->task)
        return;
    step->task = step_task_add(u, run, step, p, due_ms);
    run->open_count++;
    unit_update(u, &table_run_step_row, step);
    unit_update(u, &table_run_row, run);
}

/* Its dependencies are done since `since_ms`; before the delay is over it is not to be claimed. */
static void arm_ready(struct unit *u, struct run_row *run, struct run_step_row *step, int64_t since_ms)
{
    const struct plan_step_row *p = plan_step(u, run, step->idx);
    arm(u, run, step, p && p->delay_ms ? since_ms + p->delay_ms : 0);
}

/* When the last of its dependencies was done; of a step without any, when the run was queued. */
static int64_t ready_since_ms(struct unit *u, const struct run_row *run, const struct run_step_row *step)
{
    const struct plan_step_row *p = plan_step(u, run, step->idx);
    int64_t since_ms = run->queued_ms;
    uint64_t number;
    for (struct str dependencies = p && p->delay_ms ? p->needs : STR_ABSENT;
         dependencies.len && varint_take(&dependencies, &number);) {
        const struct run_step_row *before = run_step(u, run, (int64_t)number);
        if (before && before->ended_ms > since_ms)
            since_ms = before->ended_ms;
    }
    return since_ms;
}

/* The step has no task any more; the caller has ended it. */
static void disarm(struct unit *u, struct run_row *run, struct run_step_row *step)
{
    if (step->task)
        run->open_count--;
    step->task = 0;
    unit_update(u, &table_run_step_row, step);
    unit_update(u, &table_run_row, run);
}

/* --- the end --------------------------------------------------------------------------------------- */

static struct str failed_payload(struct unit *u)
{
    return payload_reason(u, STR("a step failed and is not tried again"));
}

static void check_end(struct unit *u, struct run_row *run)
{
    struct produced end = {.attempt = 1};
    if (run_status_is_final((enum run_status)run->state) || run->open_count)
        return;
    if (run->ending) {
        end.type = RUN_EVENT_RunCancelled;
        end.payload = run->ending_payload;
    } else if (run->state != RUN_RUNNING) {
        return;
    } else if (!run->left_count) {
        end.type = RUN_EVENT_RunCompleted;
    } else if (run->failed_count && run->on_failure == PLAN_FAIL) {
        end.type = RUN_EVENT_RunFailed;
        end.payload = failed_payload(u);
    } else {
        return;
    }
    if (run->ending)
        unit_timer_cancel(u, &run_grace_timer, run->num);
    produce(u, run, &end);
}

/* --- what happens to a step ------------------------------------------------------------------------ */

static void start_run(struct unit *u, struct run_row *run)
{
    if (run->state == RUN_PENDING)
        produce(u, run, &(struct produced){.type = RUN_EVENT_RunStarted, .attempt = 1});
}

bool schedule_started(struct unit *u, struct run_row *run, struct run_step_row *step)
{
    start_run(u, run);
    struct produced p = {.type = RUN_EVENT_StepStarted, .step = step, .attempt = step->attempt + 1};
    if (produce(u, run, &p))
        return true;
    disarm(u, run, step);
    return false;
}

/* One thing less to wait for, for all that depend on it. */
static void ready_dependents(struct unit *u, struct run_row *run, const struct run_step_row *step)
{
    const struct plan_step_row *p = plan_step(u, run, step->idx);
    uint64_t number;
    for (struct str dependents = p ? p->feeds : STR_ABSENT;
         dependents.len && varint_take(&dependents, &number);) {
        struct run_step_row *next = run_step(u, run, (int64_t)number);
        if (!next)
            continue;
        next->waits--;
        unit_update(u, &table_run_step_row, next);
        if (!next->waits && next->state == STEP_PENDING && gives_tasks(run))
            arm_ready(u, run, next, u->now_ms);
    }
}

static void step_is_done(struct unit *u, struct run_row *run, struct run_step_row *step)
{
    run->left_count--;
    disarm(u, run, step);
    ready_dependents(u, run, step);
    check_end(u, run);
}

void schedule_succeeded(struct unit *u, struct run_row *run, struct run_step_row *step, struct str result)
{
    struct produced p = {.type = RUN_EVENT_StepCompleted,
                         .step = step,
                         .attempt = step->attempt,
                         .payload = payload_output(u, result)};
    step->override = STR_ABSENT;
    step->error = STR_ABSENT;
    if (!produce(u, run, &p)) {
        disarm(u, run, step);
        return;
    }
    step->result = result;
    step_is_done(u, run, step);
}

static int64_t next_try_ms(const struct unit *u, const struct run_step_row *step)
{
    const struct settings *s = u->settings;
    int64_t ms = backoff_ms(s->jobs_retry_base_ms, step->attempt - 1, s->jobs_retry_cap_ms);
    double spread = 1 + s->jobs_retry_jitter * (2 * backoff_spread(step->run ^ step->idx, step->attempt) - 1);
    return u->now_ms + (int64_t)((double)ms * spread);
}

void schedule_failed(struct unit *u, struct run_row *run, struct run_step_row *step, struct str code,
                     struct str message, bool retryable)
{
    struct str error = payload_error(u, code, message, retryable);
    struct produced p = {
        .type = RUN_EVENT_StepFailed, .step = step, .attempt = step->attempt, .payload = error};
    step->override = STR_ABSENT;
    disarm(u, run, step);
    if (!produce(u, run, &p))
        return;
    step->error = error;
    if (!retryable)
        step->tries_left = 0;
    if (!step->tries_left)
        run->failed_count++;
    else if (gives_tasks(run)) {
        step->tries_left--;
        arm(u, run, step, next_try_ms(u, step));
    }
    unit_update(u, &table_run_step_row, step);
    check_end(u, run);
}

/* --- beginning ------------------------------------------------------------------------------------- */

static void begin_step(struct unit *u, void *row, void *arg)
{
    const struct plan_step_row *p = row;
    struct run_row *run = arg;
    struct run_step_row *s = ARENA_NEW(u->arena, struct run_step_row);
    uint64_t unused;
    *s = (struct run_step_row){.run = run->num,
                               .idx = p->idx,
                               .step = p->step,
                               .state = STEP_PENDING,
                               .tries_left = p->max_attempts - 1};
    for (struct str dependencies = p->needs; dependencies.len && varint_take(&dependencies, &unused);)
        s->waits++;
    unit_insert(u, &table_run_step_row, s);
    if (!s->waits)
        arm_ready(u, run, s, u->now_ms);
}

void schedule_begin(struct unit *u, struct run_row *run, const struct plan_row *plan)
{
    run->step_count = run->left_count = plan->step_count;
    produce(u, run, &(struct produced){.type = RUN_EVENT_RunQueued, .attempt = 1});
    unit_each_of_range(u, &table_plan_step_row, &(struct plan_step_row){.plan = plan->num}, PLAN_STEPS_MAX,
                       begin_step, run);
    unit_update(u, &table_run_row, run);
}

/* --- signals --------------------------------------------------------------------------------------- */

static void each_step(struct unit *u, struct run_row *run, void (*fn)(struct unit *u, void *step, void *run))
{
    unit_each_of_range(u, &table_run_step_row, &(struct run_step_row){.run = run->num}, PLAN_STEPS_MAX, fn,
                       run);
}

/* Unstarted tasks are taken back. */
static void take_back(struct unit *u, void *row, void *arg)
{
    struct run_step_row *step = row;
    if (!step->task || step->state == STEP_RUNNING)
        return;
    step_task_end(u, step->task);
    disarm(u, arg, step);
    if (step->state == STEP_FAILED)
        step->tries_left++; /* the one it was given */
}

void schedule_pause(struct unit *u, struct run_row *run, struct str reason)
{
    struct produced p = {
        .type = RUN_EVENT_RunPaused, .attempt = run->cycles + 1, .payload = payload_reason(u, reason)};
    start_run(u, run);
    if (!produce(u, run, &p))
        return;
    run->cycles++;
    each_step(u, run, take_back);
}

static void arm_waiting(struct unit *u, void *row, void *arg)
{
    struct run_step_row *step = row;
    struct run_row *run = arg;
    if (step->task)
        return;
    if (step->state == STEP_PENDING && !step->waits)
        arm_ready(u, run, step, ready_since_ms(u, run, step));
    if (step->state == STEP_FAILED && step->tries_left) {
        /* All of them are left: RETRY_STEP gave them, and what it asks for has no pause. */
        const struct plan_step_row *p = plan_step(u, run, step->idx);
        bool asked = p && step->tries_left >= p->max_attempts;
        step->tries_left--;
        arm(u, run, step, asked ? 0 : next_try_ms(u, step));
    }
}

void schedule_resume(struct unit *u, struct run_row *run)
{
    if (!produce(u, run, &(struct produced){.type = RUN_EVENT_RunResumed, .attempt = run->cycles}))
        return;
    each_step(u, run, arm_waiting);
    check_end(u, run);
}

void schedule_retry(struct unit *u, struct run_row *run, struct run_step_row *step)
{
    const struct plan_step_row *p = plan_step(u, run, step->idx);
    if (!p)
        return;
    if (!step->tries_left && !step->task)
        run->failed_count--;
    step->tries_left = p->max_attempts - 1;
    if (step->task) /* it waits for its next try: now */
        step_task_hurry(u, step->task);
    else if (gives_tasks(run))
        arm(u, run, step, 0);
    else
        step->tries_left++; /* resuming gives it */
    unit_update(u, &table_run_step_row, step);
    unit_update(u, &table_run_row, run);
}

void schedule_give_anew(struct unit *u, struct run_row *run, struct run_step_row *step)
{
    if (!step->task || !step_task_is_leased(u, step->task))
        return;
    step_task_end(u, step->task);
    disarm(u, run, step);
    arm(u, run, step, 0);
}

void schedule_skip(struct unit *u, struct run_row *run, struct run_step_row *step, struct str reason)
{
    struct produced p = {.type = RUN_EVENT_StepSkipped,
                         .step = step,
                         .attempt = step->attempt + 1,
                         .payload = payload_reason(u, reason)};
    start_run(u, run);
    step_task_end(u, step->task);
    disarm(u, run, step);
    if (produce(u, run, &p))
        step_is_done(u, run, step);
}

static void tell_running(struct unit *u, void *row, void *arg)
{
    const struct run_step_row *step = row;
    (void)arg;
    if (step->task && step->state == STEP_RUNNING)
        step_task_cancel(u, step->task);
}

void schedule_stop(struct unit *u, struct run_row *run, enum run_ending how, int64_t grace_ms,
                   struct str payload)
{
    run->ending = how;
    run->ending_payload = payload;
    unit_update(u, &table_run_row, run);
    each_step(u, run, take_back);
    if (!run->open_count || grace_ms <= 0) {
        schedule_close(u, run);
        return;
    }
    each_step(u, run, tell_running);
    int64_t due_ms = u->now_ms + grace_ms;
    if (due_ms <
        unit_timer_due_ms(u, &run_grace_timer, run->num)) /* a repeated call does not make it later */
        unit_timer_set(u, &run_grace_timer, run->num, due_ms);
}

static void close_running(struct unit *u, void *row, void *arg)
{
    struct run_step_row *step = row;
    struct run_row *run = arg;
    if (!step->task || step->state != STEP_RUNNING)
        return;
    step_task_end(u, step->task);
    schedule_failed(u, run, step, STR("cancelled"), STR("the run was stopped before the step had ended"),
                    false);
}

void schedule_close(struct unit *u, struct run_row *run)
{
    each_step(u, run, close_running);
    check_end(u, run);
}
