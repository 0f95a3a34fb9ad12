#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/time_text.h"
#include "cli/traffic/traffic_internal.h"

#include "base/banned.h"

static const char look_server[] = "is the server up? weir doctor; its log";

static void open_port(struct traffic_case *c)
{
    enum traffic_help help = c->yard.expected->help;
    if (!traffic_help_is_receiver(help))
        return;
    c->port = receiver_open(c->sim->receiver, c->sim->first_address + (uint64_t)c->number,
                            (enum receiver_behaviour)(help - HELP_RECEIVER_OK), c);
    if (c->port)
        return;
    cli_fault("no loopback address for a receiver of callbacks: %s", strerror(errno));
    c->sim->fatal = CLI_FAILED;
}

struct traffic_case *traffic_case_new(struct traffic *s, enum work_kind kind)
{
    struct traffic_case *c = must_alloc(sizeof *c);
    c->sim = s;
    c->account = s->current;
    c->account->cases++;
    c->kind = kind;
    c->number = ++s->number;
    c->attempt = 1;
    c->yard = (struct traffic_yardstick){
        .expected = &s->expected[kind],
        .time_scale = s->time_scale,
        .early = s->early,
        .slack_ms = s->slack_ms,
    };
    open_port(c);
    s->kinds[kind].sent++;
    s->in_flight++;
    return c;
}

void traffic_case_free(struct traffic_case *c)
{
    struct traffic_case_list *list =
        c->step == STEP_SUBMITTING ? &c->account->to_submit : &c->account->cases_list;
    TAILQ_REMOVE(list, c, link);
    heap_remove(&c->sim->timers, &c->timer);
    receiver_close(c->port);
    if (c->twin)
        c->twin->twin = NULL;
    for (int i = 0; i < c->delivery_count; i++)
        free((void *)(uintptr_t)c->deliveries[i].id.ptr);
    c->sim->in_flight--;
    free(c);
}

void traffic_case_submit(struct traffic_case *c)
{
    c->step = STEP_SUBMITTING;
    c->job_id[0] = 0;
    c->cancel_sent = false;
    TAILQ_INSERT_TAIL(&c->account->to_submit, c, link);
}

/* --- what is sent ----------------------------------------------------------------------------------- */

static void write_time(struct json_writer *w, int64_t us)
{
    char text[TIME_TEXT_MAX];
    encode_str(w, "execution_at", time_text_us(us, text));
}

void traffic_case_write(const struct traffic_case *c, struct json_writer *w, const char *other_value)
{
    char key[96];
    snprintf(key, sizeof key, "sim-%s-%lld-%d", c->sim->run_id, (long long)c->number, c->tries);
    jw_object(w);
    encode_text(w, "type", c->yard.due_us ? "DEFERRED" : "EXECUTE");
    encode_text(w, "work_kind", c->yard.expected->name);
    encode_text(w, "idempotency_key", key);
    if (c->yard.due_us)
        write_time(w, c->yard.due_us);
    if (c->yard.expected->help == HELP_CANCEL_QUEUED) {
        encode_text(w, "queue", "traffic.nobody"); /* no worker asks for it: QUEUED until the cancel comes */
    }
    if (c->port)
        encode_text(w, "callback", receiver_url(c->port));
    if (other_value) {
        jw_key(w, "payload");
        jw_object(w);
        encode_text(w, "differs", other_value);
        jw_object_end(w);
    }
    jw_object_end(w);
}

void traffic_case_call(struct traffic_case *c, const char *method, const char *rest, traffic_answer_fn *done)
{
    char path[128];
    snprintf(path, sizeof path, "/v1/jobs/%s%s", c->job_id, rest);
    traffic_calls_ask(c->sim->calls, &c->account->caller, method, str_of(path), done, c);
}

/* --- what comes back -------------------------------------------------------------------------------- */

void traffic_case_accepted(struct traffic_case *c, const struct json *accepted)
{
    struct traffic_finding f;
    struct str id = json_text(accepted, "job_id"), state = json_text(accepted, "state");
    const char *wanted = c->yard.due_us ? "CREATED" : "QUEUED";
    c->account->jobs++;
    TAILQ_REMOVE(&c->account->to_submit, c, link);
    TAILQ_INSERT_TAIL(&c->account->cases_list, c, link);
    c->step = STEP_HELPED;
    traffic_moved(c->sim);
    snprintf(c->job_id, sizeof c->job_id, "%.*s", (int)(id.len < UUID_TEXT_LEN ? id.len : UUID_TEXT_LEN),
             id.ptr ? id.ptr : "");
    if (!time_parse_us(json_text(accepted, "created_at"), &c->created_us) || id.len != UUID_TEXT_LEN) {
        finding_set(&f, look_server, "202 with job_id, state and created_at", "an answer without them");
        traffic_case_end(c, &f);
    } else if (c->yard.expected->help == HELP_REFUSAL) {
        finding_set(&f, "weir job get JOB_ID", "400 RFA_JOB_VALIDATION_FAILED and no job", "it was accepted");
        traffic_case_end(c, &f);
    } else if (!str_is(state, wanted)) {
        finding_set(&f, "weir job report JOB_ID", wanted, "state %.*s in the answer to the submit",
                    STR_ARG(state));
        traffic_case_end(c, &f);
    } else {
        traffic_help_accepted(c);
    }
}

void traffic_case_refused(struct traffic_case *c, long status, const struct json *problem)
{
    struct traffic_finding f;
    bool late = c->yard.due_us && status == 400 && c->yard.due_us <= traffic_server_us(c->sim);
    if (late && c->tries < TRAFFIC_TRIES_MAX) { /* it waited for its turn until its time had passed */
        c->tries++;
        c->sim->kinds[c->kind].again++;
        c->yard.due_us = 0;
        return;
    }
    if (c->yard.expected->help == HELP_REFUSAL) {
        bool right = judge_refusal(status, problem, 400, err_wire(ERR_JOB_VALIDATION_FAILED), &f);
        traffic_case_end(c, right ? NULL : &f);
        return;
    }
    struct str code = json_text(problem, "code"), detail = json_text(problem, "detail");
    finding_set(&f, look_server, "202", "HTTP %ld %.*s %.*s", status, STR_ARG(code),
                (int)(detail.len < 100 ? detail.len : 100), detail.ptr ? detail.ptr : "");
    traffic_case_end(c, &f);
}

void traffic_case_follow(struct traffic_case *c)
{
    c->step = STEP_FOLLOWED;
    if (c->account->poll_at_ms > traffic_now_ms() + c->account->poll_every_ms)
        c->account->poll_at_ms = traffic_now_ms() + c->account->poll_every_ms;
}

void traffic_case_seen(struct traffic_case *c, const struct json *job)
{
    struct traffic_finding f;
    enum job_state state;
    int64_t attempt = 0;
    const struct json *j = json_get(job, "attempt");
    if (c->step != STEP_FOLLOWED || !job_state_parse(json_text(job, "state"), &state) ||
        !job_state_is_final(state) || !j || !json_to_int(j, &attempt) || attempt < c->attempt)
        return; /* a listing may have been read before the last retry */
    traffic_moved(c->sim);
    j = json_get(job, "max_retries");
    if (j)
        (void)!json_to_int(j, &c->yard.max_retries);
    if (state == JOB_FAILED && traffic_help_failed(c))
        return;
    if (judge_job(&c->yard, job, &f))
        traffic_case_fetch_report(c);
    else
        traffic_case_end(c, &f);
}

static void note_scale(struct traffic_case *c, const struct json *report)
{
    const struct json *j = json_get(report, "duration_ms");
    int64_t ran_ms = 0;
    if (c->yard.expected->clock != CLOCK_FULL || !j || !json_to_int(j, &ran_ms))
        return;
    double scale = judge_scale_of(ran_ms, c->yard.expected->duration_ms);
    if (scale > 0 && (c->sim->scale_seen <= 0 || scale < c->sim->scale_seen))
        c->sim->scale_seen = scale;
}

static void report_came(void *self, const struct traffic_answer *answer)
{
    struct traffic_case *c = self;
    struct traffic_finding f;
    traffic_moved(c->sim);
    if (answer->status != 200) {
        finding_set(&f, look_server, "200 and a report, as the job is final", "HTTP %ld %.*s", answer->status,
                    STR_ARG(json_text(answer->json, "code")));
        traffic_case_end(c, &f);
        return;
    }
    note_scale(c, answer->json);
    if (!judge_report(&c->yard, answer->json, &c->latency_us, &f)) {
        traffic_case_end(c, &f);
        return;
    }
    if (c->yard.expected->help == HELP_RESTART && !c->yard.late_until_us) {
        finding_set(&f, "is the restart itself among the surprises?", "queued behind a restart",
                    "the server was not restarted");
        traffic_case_end(c, &f);
        return;
    }
    c->event_count = (int)json_get(answer->json, "events")->count;
    if (c->port)
        traffic_deliveries_await(c);
    else
        traffic_case_end(c, NULL);
}

void traffic_case_fetch_report(struct traffic_case *c)
{
    c->step = STEP_REPORTING;
    traffic_case_call(c, "GET", "/report", report_came);
}

void traffic_case_end(struct traffic_case *c, const struct traffic_finding *surprise)
{
    struct traffic *s = c->sim;
    struct traffic_kind_count *count = &s->kinds[c->kind];
    s->judged++;
    if (surprise) {
        count->unexpected++;
        traffic_surprise(s, c->kind, c->job_id, surprise);
    } else {
        count->as_expected++;
        if (c->yard.expected->ends != JOB_NO_STATE)
            latency_add(&count->latency, c->latency_us);
    }
    traffic_moved(s);
    traffic_case_free(c);
}

void traffic_case_timer(struct traffic_case *c)
{
    if (c->step == STEP_DELIVERIES)
        traffic_deliveries_look(c);
    else
        traffic_help_timer(c);
}
