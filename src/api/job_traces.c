#include "api/job_traces.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "jobs/job_notices.h"
#include "lifecycle/work_kinds.h"

#include "base/banned.h"

struct job_trace {
    struct map_node node;
    int64_t id;
    struct trace_context submit;
    int64_t attempt_us, state_us; /* since when this attempt and this state */
    bool used;
};

struct job_traces {
    pthread_mutex_t lock;
    struct tracer *tracer;
    struct map by_id;
    struct job_trace *jobs;
    size_t jobs_max, next; /* where the next one goes: over the longest known */
};

struct job_traces *job_traces_new(struct tracer *tracer, size_t jobs_max)
{
    struct job_traces *t = must_alloc(sizeof *t);
    MUST(pthread_mutex_init(&t->lock, NULL) == 0);
    t->tracer = tracer;
    t->jobs = must_alloc(jobs_max * sizeof *t->jobs);
    t->jobs_max = jobs_max;
    return t;
}

struct job_traces *job_traces_free(struct job_traces *t)
{
    if (!t)
        return NULL;
    map_free(&t->by_id);
    pthread_mutex_destroy(&t->lock);
    free(t->jobs);
    free(t);
    return NULL;
}

/* --- which jobs are known; the lock is held ---------------------------------------------------------- */

static struct job_trace *find(const struct job_traces *t, int64_t id)
{
    for (struct map_node *n = map_first(&t->by_id, hash_mix((uint64_t)id)); n; n = map_next(n))
        if (((struct job_trace *)n)->id == id)
            return (struct job_trace *)n;
    return NULL;
}

static void forget(struct job_traces *t, struct job_trace *j)
{
    map_remove(&t->by_id, &j->node);
    j->used = false;
}

static void learn(struct job_traces *t, const struct job_row *job, int64_t now_us)
{
    struct trace_context submit;
    if (!traceparent_parse(job->traceparent, &submit) || !submit.sampled || find(t, job->id))
        return;
    struct job_trace *j = &t->jobs[t->next++ % t->jobs_max];
    if (j->used)
        forget(t, j);
    *j = (struct job_trace){
        .id = job->id, .submit = submit, .attempt_us = now_us, .state_us = now_us, .used = true};
    map_put(&t->by_id, &j->node, hash_mix((uint64_t)job->id));
}

void job_traces_learn(struct job_traces *t, const struct job_row *job, int64_t now_us)
{
    pthread_mutex_lock(&t->lock);
    learn(t, job, now_us);
    pthread_mutex_unlock(&t->lock);
}

/* --- events become spans ----------------------------------------------------------------------------- */

static void derive(int64_t id, uint32_t attempt, enum derived_span what, uint8_t out[SPAN_ID_BYTES])
{
    span_id_derived((uint64_t)id, attempt, what, out);
}

/* A span of the job's trace, without an id of its own yet. */
static struct span begin(const struct job_trace *j, const struct job_notice *n, int64_t start_us,
                         int64_t end_us)
{
    struct span s = {.context = j->submit, .kind = SPAN_INTERNAL, .start_us = start_us, .end_us = end_us};
    struct uuid id = uuid_from_v7(j->id, n->low);
    char text[UUID_TEXT_LEN + 1];
    uuid_text(&id, text);
    span_text(&s, "weir.job_id", str_of(text));
    span_number(&s, "weir.attempt", n->event.attempt);
    return s;
}

static void end_state(struct job_traces *t, const struct job_trace *j, const struct job_notice *n)
{
    const struct event *e = &n->event;
    struct span s = begin(j, n, j->state_us, e->at_us);
    span_name(&s, "job %s", job_state_text(e->prev));
    derive(j->id, e->attempt, DERIVED_ATTEMPT, s.parent);
    if (e->prev == JOB_RUNNING)
        derive(j->id, e->attempt, DERIVED_RUN, s.context.span_id);
    else
        span_id_random(s.context.span_id);
    span_text(&s, "weir.event", str_of(job_event_text(e->event)));
    span_text(&s, "weir.next_state", str_of(job_state_text(e->next)));
    span_text(&s, "weir.worker_id", n->worker.len ? n->worker : STR_ABSENT);
    s.failed = e->next == JOB_FAILED;
    tracer_end(t->tracer, &s);
}

static void end_attempt(struct job_traces *t, const struct job_trace *j, const struct job_notice *n,
                        int64_t now_us)
{
    const struct event *e = &n->event;
    /* Events of a shared store go by its clock, which may be ahead of ours. */
    int64_t end_us = now_us > e->at_us ? now_us : e->at_us;
    struct span report = begin(j, n, e->at_us, end_us);
    span_name(&report, "job report");
    derive(j->id, e->attempt, DERIVED_ATTEMPT, report.parent);
    span_id_random(report.context.span_id);
    tracer_end(t->tracer, &report);

    struct span attempt = begin(j, n, j->attempt_us, end_us);
    span_name(&attempt, "job attempt");
    memcpy(attempt.parent, j->submit.span_id, SPAN_ID_BYTES);
    derive(j->id, e->attempt, DERIVED_ATTEMPT, attempt.context.span_id);
    span_text(&attempt, "weir.outcome", str_of(job_outcome_text(e->next)));
    span_text(&attempt, "weir.scenario", str_of(work_kind_text((enum work_kind)e->kind))); /* own: none */
    span_number(&attempt, "weir.ran_ms", n->ran_ms < 0 ? 0 : n->ran_ms);
    attempt.failed = e->next == JOB_FAILED;
    tracer_end(t->tracer, &attempt);
}

static void notice(struct job_traces *t, const struct job_notice *n, int64_t now_us)
{
    const struct event *e = &n->event;
    struct job_trace *j = e->event == JOB_EVENT_RETRIES_EXHAUSTED ? NULL : find(t, e->job);
    if (!j)
        return;
    if (e->prev == JOB_NO_STATE || job_state_is_final(e->prev))
        j->attempt_us = e->at_us;
    else
        end_state(t, j, n);
    j->state_us = e->at_us;
    if (!job_state_is_final(e->next))
        return;
    end_attempt(t, j, n, now_us);
    if (e->next != JOB_FAILED) /* it may be tried again, perhaps in this very batch */
        forget(t, j);
}

struct inserted {
    struct job_traces *traces;
    int64_t now_us;
};

static void inserted(const void *row, void *arg)
{
    const struct inserted *i = arg;
    learn(i->traces, row, i->now_us);
}

void job_traces_committed(struct job_traces *t, const struct unit *u, int64_t now_us)
{
    struct inserted i = {t, now_us};
    pthread_mutex_lock(&t->lock);
    unit_each_inserted(u, &table_job_row, inserted, &i);
    for (size_t k = 0; k < u->notices.count; k++) {
        const struct job_notice *n = notice_row(&u->notices.list[k], &job_notices);
        if (n)
            notice(t, n, now_us);
    }
    pthread_mutex_unlock(&t->lock);
}

bool job_run_context(const struct job_row *job, int64_t attempt, struct trace_context *ret_context)
{
    struct trace_context c;
    if (!traceparent_parse(job->traceparent, &c) || !c.sampled)
        return false;
    derive(job->id, (uint32_t)attempt, DERIVED_RUN, c.span_id);
    *ret_context = c;
    return true;
}
