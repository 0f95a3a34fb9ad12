/* pickup: how soon an idle worker has a job. One worker waits in a long poll; one job is submitted;
 * the time runs from the submit leaving to the claim's answer being there. Then the worker finishes
 * the job, polls again, and only after an idle gap the next one is submitted. */
#include <stdio.h>

#include "load/request.h"
#include "load/run.h"

#include "base/banned.h"

enum pickup_step { PICKUP_WAITS, PICKUP_STARTS, PICKUP_FINISHES, PICKUP_RESTS };

struct pickup {
    struct run *run;
    struct histogram *pickup_times, *submit_times;
    struct conn *submitter, *worker;
    struct strbuf submit, claim, item; /* item: start, then finish */
    char task_id[64], token[64];
    enum pickup_step step;
    int64_t submitted_ns;
    bool submit_on_way;
};

static bool is_over(const struct pickup *p)
{
    int64_t deadline = run_deadline_ns(p->run);
    return (p->run->options.count && p->run->jobs >= p->run->options.count) ||
           (deadline && now_ns() >= deadline);
}

static void send_submit(void *self)
{
    struct pickup *p = self;
    p->submit_on_way = true;
    p->submitted_ns = now_ns();
    conn_send(p->submitter, strbuf_str(&p->submit));
}

/* Both are at rest: poll, and submit after the gap (a changing part keeps it off any beat). */
static void next_round(struct pickup *p)
{
    if (is_over(p)) {
        loop_stop(p->run->loop);
        return;
    }
    p->step = PICKUP_WAITS;
    conn_send(p->worker, strbuf_str(&p->claim));
    int64_t gap_us = p->run->options.gap_ms * 1000 + (int64_t)(p->run->jobs * 7919 % 1000);
    loop_wake_at(p->run->loop, now_ns() + gap_us * 1000, send_submit, p);
}

static void submit_answer(struct conn *c, const struct answer *a, void *self)
{
    (void)c;
    struct pickup *p = self;
    run_answer(p->run, p->submit_times, a);
    p->submit_on_way = false;
    if (p->step == PICKUP_RESTS)
        next_round(p); /* the worker was faster than this answer */
}

static void copy_member(struct str *rest, struct str name, char *out, size_t size)
{
    struct str text = next_member(rest, name);
    if (!text.ptr || text.len >= size)
        give_up("a claim without a task: the long poll ended before the job came");
    memcpy(out, text.ptr, text.len);
    out[text.len] = 0;
}

static void send_item(struct pickup *p, const char *path, const char *more)
{
    char body[256];
    snprintf(body, sizeof body, "{\"tasks\":[{\"task_id\":\"%s\",\"token\":\"%s\"%s}]}", p->task_id, p->token,
             more);
    request_post(&p->item, path, p->run->key, str_of(body));
    conn_send(p->worker, strbuf_str(&p->item));
}

static void claimed(struct pickup *p, const struct answer *a)
{
    struct str rest = a->body;
    histogram_add(p->pickup_times, a->now_ns - p->submitted_ns);
    p->run->jobs++;
    copy_member(&rest, STR("\"task_id\":\""), p->task_id, sizeof p->task_id);
    copy_member(&rest, STR("\"token\":\""), p->token, sizeof p->token);
    p->step = PICKUP_STARTS;
    send_item(p, "/worker/v1/start", "");
}

static void worker_answer(struct conn *c, const struct answer *a, void *self)
{
    (void)c;
    struct pickup *p = self;
    if (a->status != 200)
        give_up("a worker call was refused with status %d: %.*s", a->status, STR_ARG(a->body));
    switch (p->step) {
    case PICKUP_WAITS:
        claimed(p, a);
        break;
    case PICKUP_STARTS:
        p->step = PICKUP_FINISHES;
        send_item(p, "/worker/v1/finish", ",\"outcome\":\"success\"");
        break;
    case PICKUP_FINISHES:
        p->step = PICKUP_RESTS;
        if (!p->submit_on_way)
            next_round(p);
        break;
    case PICKUP_RESTS: /* nothing was asked */
        break;
    }
}

void mode_pickup(struct run *r)
{
    struct pickup p = {.run = r};
    struct strbuf body = {0};
    if (!r->options.count && r->options.seconds <= 0)
        give_up("say --seconds or --count");
    p.pickup_times = run_call(r, "pickup");
    p.submit_times = run_call(r, "submit");
    job_body(&body, &r->options);
    request_post(&p.submit, "/v1/jobs", r->key, strbuf_str(&body));
    strbuf_clear(&body);
    strbuf_addf(&body, "{\"worker_id\":\"load\",\"queues\":[\"%s\"],\"max\":1,\"wait_ms\":30000}",
                r->options.queue);
    request_post(&p.claim, "/worker/v1/claim", r->key, strbuf_str(&body));
    p.submitter = loop_connect(r->loop, submit_answer, &p);
    p.worker = loop_connect(r->loop, worker_answer, &p);
    run_begin(r);
    next_round(&p);
    loop_run(r->loop, 0);
    run_end(r);
    strbuf_free(&body);
    strbuf_free(&p.submit);
    strbuf_free(&p.claim);
    strbuf_free(&p.item);
}
