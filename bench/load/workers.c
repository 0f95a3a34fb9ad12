/* drain and lifecycle: worker loops claim, start and finish in batches; lifecycle submits beside. */
#include <stdio.h>
#include <stdlib.h>

#include "load/request.h"
#include "load/run.h"
#include "base/must.h"

#include "base/banned.h"

enum worker_step { STEP_CLAIM, STEP_START, STEP_FINISH };

struct field;

struct worker {
    struct field *field;
    struct conn *conn;
    enum worker_step step;
    struct strbuf claim, start, finish; /* requests; claim is always the same */
    uint32_t held;                      /* tasks of the claim under way */
};

struct submitter {
    struct field *field;
    struct conn *conn;
    bool idle; /* held back because the backlog is full */
};

struct field {
    struct run *run;
    struct histogram *claim_times, *start_times, *finish_times, *batch_times;
    struct worker *workers;
    uint32_t workers_left;
    struct submitter *submitters;
    uint32_t submitter_count;
    struct strbuf batch, body;                 /* the submitters' request; scratch for a worker's */
    uint64_t wanted, sent, accepted, finished; /* jobs; wanted 0: until time is over */
    bool submits;
};

static bool submitting_is_over(const struct field *f)
{
    int64_t deadline = run_deadline_ns(f->run);
    return (f->wanted && f->sent >= f->wanted) || (deadline && now_ns() >= deadline);
}

static bool all_is_done(const struct field *f)
{
    if (f->submits)
        return submitting_is_over(f) && f->accepted == f->sent && f->finished == f->accepted;
    return !f->workers_left || (f->wanted && f->finished >= f->wanted);
}

/* --- submitters (lifecycle) ----------------------------------------------------------------- */

static void submit_next(struct submitter *s)
{
    struct field *f = s->field;
    if (submitting_is_over(f))
        return;
    s->idle = f->sent - f->finished >= f->run->options.backlog;
    if (s->idle)
        return;
    f->sent += f->run->options.batch;
    conn_send(s->conn, strbuf_str(&f->batch));
}

static void submitted(struct conn *c, const struct answer *a, void *self)
{
    (void)c;
    struct submitter *s = self;
    run_answer(s->field->run, s->field->batch_times, a);
    if (a->status != 202 || count_text(a->body, STR("\"job_id\":")) != s->field->run->options.batch)
        give_up("a batch was refused: status %d, %.300s", a->status, a->body.ptr);
    s->field->accepted += s->field->run->options.batch;
    submit_next(s);
    if (all_is_done(s->field)) /* workers may have finished its jobs before this answer came */
        loop_stop(s->field->run->loop);
}

static void wake_submitters(struct field *f)
{
    for (uint32_t i = 0; i < f->submitter_count; i++)
        if (f->submitters[i].idle)
            submit_next(&f->submitters[i]);
}

/* --- workers ------------------------------------------------------------------------------------ */

static void send_claim(struct worker *w)
{
    w->step = STEP_CLAIM;
    conn_send(w->conn, strbuf_str(&w->claim));
}

/* One request that names every claimed task; `more` stands in each item behind its token. */
static void name_tasks(struct worker *w, struct strbuf *request, const char *path, struct str tasks,
                       const char *more)
{
    struct run *r = w->field->run;
    struct strbuf *body = &w->field->body;
    w->held = 0;
    strbuf_clear(body);
    strbuf_add_text(body, "{\"tasks\":[");
    for (;;) {
        struct str id = next_member(&tasks, STR("\"task_id\":\""));
        struct str token = next_member(&tasks, STR("\"token\":\""));
        if (!id.ptr || !token.ptr)
            break;
        strbuf_add_text(body, w->held++ ? ",{\"task_id\":\"" : "{\"task_id\":\"");
        strbuf_add_str(body, id);
        strbuf_add_text(body, "\",\"token\":\"");
        strbuf_add_str(body, token);
        strbuf_add_text(body, more);
    }
    strbuf_add_text(body, "]}");
    request_post(request, path, r->key, strbuf_str(body));
}

static uint32_t items_ok(struct str body)
{
    return count_text(body, STR("\"ok\":true"));
}

static void claimed(struct worker *w, const struct answer *a)
{
    struct field *f = w->field;
    run_answer(f->run, f->claim_times, a);
    name_tasks(w, &w->start, "/worker/v1/start", a->body, "\"}");
    if (!w->held && !f->submits) {
        f->workers_left--; /* nothing is left */
        return;
    }
    if (!w->held) {
        send_claim(w);
        return;
    }
    name_tasks(w, &w->finish, "/worker/v1/finish", a->body, "\",\"outcome\":\"success\"}");
    w->step = STEP_START;
    conn_send(w->conn, strbuf_str(&w->start));
}

static void started(struct worker *w, const struct answer *a)
{
    run_answer(w->field->run, w->field->start_times, a);
    w->field->run->errors += w->held - items_ok(a->body);
    w->step = STEP_FINISH;
    conn_send(w->conn, strbuf_str(&w->finish));
}

static void finished(struct worker *w, const struct answer *a)
{
    struct field *f = w->field;
    uint32_t ok = items_ok(a->body);
    run_answer(f->run, f->finish_times, a);
    f->run->errors += w->held - ok;
    f->finished += ok;
    wake_submitters(f);
    send_claim(w);
}

static void worker_answer(struct conn *c, const struct answer *a, void *self)
{
    (void)c;
    struct worker *w = self;
    if (a->status != 200)
        give_up("a worker call was refused with status %d: %.*s", a->status, STR_ARG(a->body));
    switch (w->step) {
    case STEP_CLAIM:
        claimed(w, a);
        break;
    case STEP_START:
        started(w, a);
        break;
    case STEP_FINISH:
        finished(w, a);
        break;
    }
    if (all_is_done(w->field))
        loop_stop(w->field->run->loop);
}

static void prepare_worker(struct worker *w, struct field *f, uint32_t number)
{
    const struct options *o = &f->run->options;
    struct strbuf body = {0};
    w->field = f;
    w->conn = loop_connect(f->run->loop, worker_answer, w);
    strbuf_addf(&body, "{\"worker_id\":\"load-%u\",\"queues\":[\"%s\"],\"max\":%u,\"wait_ms\":%u}", number,
                o->queue, o->claim, o->wait_ms);
    request_post(&w->claim, "/worker/v1/claim", f->run->key, strbuf_str(&body));
    strbuf_free(&body);
}

static void free_field(struct field *f)
{
    for (uint32_t i = 0; i < f->run->options.workers; i++) {
        strbuf_free(&f->workers[i].claim);
        strbuf_free(&f->workers[i].start);
        strbuf_free(&f->workers[i].finish);
    }
    free(f->workers);
    free(f->submitters);
    strbuf_free(&f->batch);
    strbuf_free(&f->body);
}

static void prepare_submitters(struct field *f)
{
    const struct options *o = &f->run->options;
    struct strbuf body = {0};
    batch_body(&body, o, o->batch);
    request_post(&f->batch, "/v1/jobs:batch", f->run->key, strbuf_str(&body));
    strbuf_free(&body);
    f->batch_times = run_call(f->run, "batch");
    f->submitter_count = o->connections;
    f->submitters = must_alloc(o->connections * sizeof *f->submitters);
    for (uint32_t i = 0; i < o->connections; i++) {
        struct submitter *s = &f->submitters[i];
        *s = (struct submitter){.field = f};
        s->conn = loop_connect(f->run->loop, submitted, s);
    }
}

static void run_field(struct run *r, bool submits)
{
    struct field f = {.run = r, .submits = submits, .wanted = r->options.count};
    uint32_t workers = r->options.workers;
    f.claim_times = run_call(r, "claim");
    f.start_times = run_call(r, "start");
    f.finish_times = run_call(r, "finish");
    f.workers = must_alloc(workers * sizeof *f.workers);
    f.workers_left = workers;
    for (uint32_t i = 0; i < workers; i++)
        prepare_worker(&f.workers[i], &f, i);
    if (submits)
        prepare_submitters(&f);
    run_begin(r);
    for (uint32_t i = 0; i < f.submitter_count; i++)
        submit_next(&f.submitters[i]);
    for (uint32_t i = 0; i < workers; i++)
        send_claim(&f.workers[i]);
    loop_run(r->loop, submits ? 0 : run_deadline_ns(r));
    run_end(r);
    r->jobs = f.finished;
    free_field(&f);
}

void mode_drain(struct run *r)
{
    run_field(r, false);
}

void mode_lifecycle(struct run *r)
{
    if (!r->options.count && r->options.seconds <= 0)
        give_up("say --seconds or --count");
    if (!r->options.wait_ms)
        r->options.wait_ms = 1000; /* an empty queue is waited at, not asked in circles */
    run_field(r, true);
}
