/* run: runs of a plan that Weir executes, one at a time, with steps that do nothing, one behind the other.
 * The time of a run goes from its start leaving to the answer that says it is COMPLETED. Worker loops
 * claim, start and finish: with two of them one waits in a long poll when the other finishes. */
#include <stdlib.h>

#include "load/request.h"
#include "load/run.h"
#include "base/must.h"

#include "base/banned.h"

enum loop_step { LOOP_CLAIMS, LOOP_STARTS, LOOP_FINISHES };
enum caller_step { CALLER_STARTS, CALLER_WORKERS_TURN, CALLER_LOOKS };

struct engine_run;

struct step_worker {
    struct engine_run *all;
    struct conn *conn;
    enum loop_step step;
    struct strbuf claim, start, finish;
};

struct engine_run {
    struct run *run;
    struct histogram *run_times, *start_times;
    struct step_worker *workers;
    struct conn *caller;
    enum caller_step step;
    struct strbuf start, look;
    uint32_t finished; /* steps of the run under way */
    int64_t began_ns;
};

static void start_run(struct engine_run *e)
{
    e->step = CALLER_STARTS;
    e->finished = 0;
    e->began_ns = now_ns();
    conn_send(e->caller, strbuf_str(&e->start));
}

static bool is_over(const struct engine_run *e)
{
    const struct options *o = &e->run->options;
    int64_t deadline = run_deadline_ns(e->run);
    return (o->count && e->run->jobs >= o->count) || (deadline && now_ns() >= deadline);
}

/* When both the start is answered and the last step is finished. */
static void look_if_done(struct engine_run *e)
{
    if (e->step != CALLER_WORKERS_TURN || e->finished < e->run->options.steps)
        return;
    e->step = CALLER_LOOKS;
    conn_send(e->caller, strbuf_str(&e->look));
}

static void started_run(struct engine_run *e, const struct answer *a)
{
    struct str rest = a->body, id = next_member(&rest, STR("\"runId\":\""));
    run_answer(e->run, e->start_times, a);
    if (!id.ptr)
        give_up("a run was not started: status %d, %.*s", a->status, STR_ARG(a->body));
    struct strbuf path = {0};
    strbuf_addf(&path, "/engine/v1/runs/%.*s", STR_ARG(id));
    request_get(&e->look, path.ptr, e->run->key);
    strbuf_free(&path);
    e->step = CALLER_WORKERS_TURN;
    look_if_done(e);
}

static void looked(struct engine_run *e, const struct answer *a)
{
    if (!count_text(a->body, STR("\"status\":\"COMPLETED\"")))
        give_up("all steps are finished and the run is not COMPLETED: %.*s", STR_ARG(a->body));
    histogram_add(e->run_times, a->now_ns - e->began_ns);
    e->run->jobs++;
    if (is_over(e))
        loop_stop(e->run->loop);
    else
        start_run(e);
}

static void caller_answer(struct conn *c, const struct answer *a, void *self)
{
    (void)c;
    struct engine_run *e = self;
    switch (e->step) {
    case CALLER_STARTS:
        started_run(e, a);
        break;
    case CALLER_LOOKS:
        looked(e, a);
        break;
    case CALLER_WORKERS_TURN: /* nothing was asked */
        break;
    }
}

/* --- workers ------------------------------------------------------------------------------------ */

static void name_task(struct step_worker *w, struct strbuf *request, const char *path, struct str claimed,
                      const char *more)
{
    struct str id = next_member(&claimed, STR("\"task_id\":\""));
    struct str token = next_member(&claimed, STR("\"token\":\""));
    struct strbuf body = {0};
    strbuf_addf(&body, "{\"tasks\":[{\"task_id\":\"%.*s\",\"token\":\"%.*s\"%s}]}", STR_ARG(id),
                STR_ARG(token), more);
    request_post(request, path, w->all->run->key, strbuf_str(&body));
    strbuf_free(&body);
}

static void send_claim(struct step_worker *w)
{
    w->step = LOOP_CLAIMS;
    conn_send(w->conn, strbuf_str(&w->claim));
}

static void claimed(struct step_worker *w, const struct answer *a)
{
    if (!count_text(a->body, STR("\"task_id\":"))) {
        send_claim(w); /* the long poll ended */
        return;
    }
    name_task(w, &w->start, "/worker/v1/start", a->body, "");
    name_task(w, &w->finish, "/worker/v1/finish", a->body, ",\"outcome\":\"success\"");
    w->step = LOOP_STARTS;
    conn_send(w->conn, strbuf_str(&w->start));
}

static void worker_answer(struct conn *c, const struct answer *a, void *self)
{
    (void)c;
    struct step_worker *w = self;
    bool ok = w->step == LOOP_CLAIMS || count_text(a->body, STR("\"ok\":true")) == 1;
    if (a->status != 200 || !ok)
        give_up("a worker call was refused with status %d: %.*s", a->status, STR_ARG(a->body));
    switch (w->step) {
    case LOOP_CLAIMS:
        claimed(w, a);
        break;
    case LOOP_STARTS:
        w->step = LOOP_FINISHES;
        conn_send(w->conn, strbuf_str(&w->finish));
        break;
    case LOOP_FINISHES:
        w->all->finished++;
        send_claim(w);
        look_if_done(w->all);
        break;
    }
}

/* --- all of it ---------------------------------------------------------------------------------- */

static void put_plan(struct engine_run *e)
{
    struct strbuf body = {0}, request = {0};
    strbuf_addf(&body, "{\"planId\":\"chain\",\"planVersion\":\"%u\",\"steps\":[", e->run->options.steps);
    for (uint32_t i = 0; i < e->run->options.steps; i++) {
        strbuf_addf(&body, "%s{\"stepId\":\"step-%u\",\"queue\":\"%s\"", i ? "," : "", i,
                    e->run->options.queue);
        if (i)
            strbuf_addf(&body, ",\"dependsOn\":[\"step-%u\"]", i - 1);
        strbuf_add_char(&body, '}');
    }
    strbuf_add_text(&body, "]}");
    request_post(&request, "/engine/v1/plans", e->run->key, strbuf_str(&body));
    struct strbuf answer = ask(e->run, strbuf_str(&request));
    strbuf_free(&answer);
    strbuf_free(&request);
    strbuf_free(&body);
}

static void prepare(struct engine_run *e)
{
    const struct options *o = &e->run->options;
    struct strbuf body = {0};
    strbuf_addf(
        &body,
        "{\"planId\":\"chain\",\"planVersion\":\"%u\",\"projectId\":\"load\",\"environmentId\":\"bench\"}",
        o->steps);
    request_post(&e->start, "/engine/v1/runs", e->run->key, strbuf_str(&body));
    e->caller = loop_connect(e->run->loop, caller_answer, e);
    e->workers = must_alloc(o->workers * sizeof *e->workers);
    for (uint32_t i = 0; i < o->workers; i++) {
        struct step_worker *w = &e->workers[i];
        *w = (struct step_worker){.all = e};
        strbuf_clear(&body);
        strbuf_addf(&body, "{\"worker_id\":\"load-%u\",\"queues\":[\"%s\"],\"max\":1,\"wait_ms\":30000}", i,
                    o->queue);
        request_post(&w->claim, "/worker/v1/claim", e->run->key, strbuf_str(&body));
        w->conn = loop_connect(e->run->loop, worker_answer, w);
    }
    strbuf_free(&body);
}

void mode_run(struct run *r)
{
    struct engine_run e = {.run = r};
    if (!r->options.count && r->options.seconds <= 0)
        give_up("say --seconds or --count");
    put_plan(&e);
    prepare(&e);
    e.run_times = run_call(r, "run");
    e.start_times = run_call(r, "start");
    run_begin(r);
    for (uint32_t i = 0; i < r->options.workers; i++)
        send_claim(&e.workers[i]);
    start_run(&e);
    loop_run(r->loop, 0);
    run_end(r);
    for (uint32_t i = 0; i < r->options.workers; i++) {
        strbuf_free(&e.workers[i].claim);
        strbuf_free(&e.workers[i].start);
        strbuf_free(&e.workers[i].finish);
    }
    free(e.workers);
    strbuf_free(&e.start);
    strbuf_free(&e.look);
}
