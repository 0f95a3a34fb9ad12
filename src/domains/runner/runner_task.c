#include <stdlib.h>

#include "base/log.h"
#include "base/must.h"
#include "domains/runner/runner_internal.h"

#include "base/banned.h"

/* 8 s of CPU_BURST burn 50 ms; a scaled one its share of it. */
enum { CPU_SHARE = 160, FILE_PAYLOADS = 8 };

/* Core counts a limit from rounded-up time and records it as a timeout; our report of the stop must not come
 * before that, or the job would have failed by our word instead. */
enum { CORE_FIRST_MS = 2 };

static const struct {
    const char *code, *message;
    bool retryable;
} task_ends[] = {
#define X(name, code, message, retryable) [END_##name] = {code, message, retryable},
    TASK_ENDS(X)
#undef X
};

static struct str keep_text(struct str text, char **at)
{
    struct str kept = {*at, text.len};
    if (text.len)
        memcpy(*at, text.ptr, text.len);
    *at += text.len;
    return kept;
}

struct domain_task *runner_task_new(const struct worker_task *claimed)
{
    struct str name = claimed->is_step ? claimed->step_id : claimed->job_id;
    struct str id = claimed->ref.task_id, token = claimed->ref.token;
    struct runner_task *t = must_alloc(sizeof *t + id.len + token.len + name.len);
    char *at = t->texts;
    t->task.ref.task_id = keep_text(id, &at);
    t->task.ref.token = keep_text(token, &at);
    t->task.name = keep_text(name, &at);
    t->attempt = claimed->attempt;
    t->max_runtime_ms = claimed->max_runtime_ms;
    t->defined = claimed->is_step
                     ? simulated_work_read_step(claimed->definition, claimed->max_runtime_ms, &t->definition)
                     : simulated_work_read(claimed->definition, &t->definition);
    return &t->task;
}

static void log_started(const struct runner_task *t)
{
    const struct work_definition *d = &t->definition;
    const struct runner_worker *w = CONTAINER_OF(t->task.room, struct runner_worker, room);
    log_line(LOG_INFO, "job_started", "job_id", LOG_STR(t->task.name), "scenario",
             LOG_TEXT(work_kind_text(d->kind)), "duration_ms", LOG_INT(d->duration_ms), "expected_outcome",
             LOG_TEXT(work_expected_outcome(d->kind)), "attempt", LOG_INT(t->attempt), "worker_id",
             LOG_TEXT(w->claim.worker_id), NULL);
}

void runner_task_begin(struct runner *r, struct runner_task *t, int64_t now_ms)
{
    if (!t->defined) {
        log_line(LOG_WARN, "definition_missing", "job_id", LOG_STR(t->task.name), NULL);
        runner_task_end(r, t, END_NO_DEFINITION);
        return;
    }
    log_started(t);
    const struct work_definition *d = &t->definition;
    double scale = r->settings->runner_time_scale;
    int64_t run_ms = simulated_work_scaled_ms(d->duration_ms, scale);
    int64_t ends_at_ms = now_ms + run_ms;
    t->limit_at_ms =
        t->max_runtime_ms > 0 ? now_ms + simulated_work_scaled_ms(t->max_runtime_ms, scale) : INT64_MAX;
    t->exercise = exercise_begin(r->exerciser, work_kind_behaviour(d->kind), run_ms * 1000 / CPU_SHARE,
                                 (size_t)d->payload_size * FILE_PAYLOADS);
    bool in_time = ends_at_ms < t->limit_at_ms;
    heap_put(&r->timers, &t->timer, (uint64_t)(in_time ? ends_at_ms : t->limit_at_ms + CORE_FIRST_MS));
}

bool runner_task_stop(struct runner *r, struct runner_task *t)
{
    heap_remove(&r->timers, &t->timer);
    struct exercise *e = t->exercise;
    t->exercise = NULL;
    return exercise_end(r->exerciser, e);
}

void runner_task_end(struct runner *r, struct runner_task *t, enum task_end end)
{
    runner_task_stop(r, t);
    t->end = end;
    domain_task_ended(r->domain, &t->task);
}

void runner_task_due(struct runner *r, struct runner_task *t, int64_t now_ms)
{
    bool sound = runner_task_stop(r, t);
    if (now_ms >= t->limit_at_ms)
        runner_task_end(r, t, END_TIMEOUT);
    else if (!sound)
        runner_task_end(r, t, END_FILE_FAILED);
    else if (work_fails_on_attempt(&t->definition, t->attempt))
        runner_task_end(r, t, END_WORK_FAILED);
    else
        runner_task_end(r, t, END_SUCCESS);
}

struct worker_finish runner_task_report(const struct runner_task *t, struct str result)
{
    bool by_kind = t->end == END_WORK_FAILED;
    return (struct worker_finish){
        .ref = t->task.ref,
        .success = t->end == END_SUCCESS,
        .result = result,
        .error_code = str_of(task_ends[t->end].code),
        .error_message = str_of(task_ends[t->end].message),
        .retryable = by_kind ? work_failure_is_retryable(t->definition.kind) : task_ends[t->end].retryable,
    };
}
