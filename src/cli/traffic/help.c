#include <stdio.h>

#include "base/must.h"
#include "cli/traffic/traffic_internal.h"

#include "base/banned.h"

static const char look_log[] = "weir job report JOB_ID; the server's log for this job_id";

/* Ends the case unless the answer has this status. */
static bool status_is(struct traffic_case *c, const struct traffic_answer *a, long wanted, const char *what)
{
    struct traffic_finding f;
    char expected[100];
    traffic_moved(c->sim);
    if (a->status == wanted)
        return true;
    snprintf(expected, sizeof expected, "%s answered %ld", what, wanted);
    finding_set(&f, look_log, expected, "HTTP %ld %.*s", a->status, STR_ARG(json_text(a->json, "code")));
    traffic_case_end(c, &f);
    return false;
}

/* The moment was missed, by us and not by the server: the same once more, as a new job. */
static void again(struct traffic_case *c, const char *what)
{
    struct traffic_finding f;
    if (++c->tries <= TRAFFIC_TRIES_MAX) {
        c->sim->kinds[c->kind].again++;
        TAILQ_REMOVE(&c->account->cases_list, c, link);
        traffic_case_submit(c);
        return;
    }
    finding_set(&f, "is the server or this machine overloaded? a larger runner.time_scale leaves more time",
                what, "each of %d jobs had ended before it could be helped", TRAFFIC_TRIES_MAX);
    traffic_case_end(c, &f);
}

/* --- cancels ---------------------------------------------------------------------------------------- */

static void cancelled(void *self, const struct traffic_answer *a)
{
    struct traffic_case *c = self;
    struct traffic_finding f;
    if (!status_is(c, a, 200, "a cancel is"))
        return;
    struct str state = json_text(a->json, "state");
    if (str_is(state, "CANCELED")) {
        traffic_case_follow(c);
    } else if (c->yard.expected->help == HELP_CANCEL_RUNNING && str_is(state, "SUCCEEDED")) {
        again(c, "CANCELED by a cancel in RUNNING");
    } else {
        finding_set(&f, look_log, "state CANCELED after the cancel", "state %.*s", STR_ARG(state));
        traffic_case_end(c, &f);
    }
}

static void cancel(struct traffic_case *c)
{
    c->cancel_sent = true;
    traffic_case_call(c, "POST", "/cancel", cancelled);
}

static bool stream_event(void *self, const struct json *event)
{
    struct traffic_case *c = self;
    if (!str_is(json_text(event, "event_name"), "job.running"))
        return true;
    cancel(c);
    return false;
}

static void stream_ended(void *self, const struct traffic_answer *a)
{
    struct traffic_case *c = self;
    if (c->cancel_sent) /* its own answer tells the rest */
        return;
    if (status_is(c, a, 200, "the event stream is"))
        again(c, "CANCELED by a cancel in RUNNING");
}

static void follow_stream(struct traffic_case *c)
{
    char path[80];
    snprintf(path, sizeof path, "/v1/jobs/%s/events", c->job_id);
    traffic_calls_send(c->sim->calls, &(struct traffic_request){
                                          .caller = &c->account->caller,
                                          .method = "GET",
                                          .path = str_of(path),
                                          .event = stream_event,
                                          .done = stream_ended,
                                          .self = c,
                                      });
}

/* --- the same key again ----------------------------------------------------------------------------- */

static void send_again(struct traffic_case *c, const char *other_value, traffic_answer_fn *done)
{
    struct strbuf body CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &body);
    traffic_case_write(c, &w, other_value);
    traffic_calls_send(c->sim->calls, &(struct traffic_request){
                                          .caller = &c->account->caller,
                                          .method = "POST",
                                          .path = STR("/v1/jobs"),
                                          .body = strbuf_str(&body),
                                          .done = done,
                                          .self = c,
                                      });
}

static void conflict_came(void *self, const struct traffic_answer *a)
{
    struct traffic_case *c = self;
    struct traffic_finding f;
    if (judge_refusal(a->status, a->json, 409, err_wire(ERR_EXEC_IDEMPOTENCY_CONFLICT), &f))
        traffic_case_follow(c);
    else
        traffic_case_end(c, &f);
}

static void replay_came(void *self, const struct traffic_answer *a)
{
    struct traffic_case *c = self;
    struct traffic_finding f;
    if (!status_is(c, a, 202, "the same key with an equal body is"))
        return;
    struct str id = json_text(a->json, "job_id");
    if (str_is(id, c->job_id) && a->replayed) {
        send_again(c, "yes", conflict_came);
        return;
    }
    finding_set(&f, look_log, "the same job_id and Idempotency-Replayed: true", "job_id %.*s, %s",
                STR_ARG(id), a->replayed ? "replayed" : "no such header");
    traffic_case_end(c, &f);
}

/* Ends both when the two keys gave one job. */
static bool twins_differ(struct traffic_case *c)
{
    struct traffic_case *twin = c->twin;
    struct traffic_finding f;
    if (!twin || !twin->job_id[0])
        return true;
    c->twin = twin->twin = NULL;
    if (strcmp(twin->job_id, c->job_id) != 0)
        return true;
    finding_set(&f, look_log, "two keys make two jobs", "both are this job");
    traffic_case_end(c, &f);
    return false;
}

/* --- retries ---------------------------------------------------------------------------------------- */

static void retried(void *self, const struct traffic_answer *a)
{
    struct traffic_case *c = self;
    struct traffic_finding f;
    int64_t attempt = 0;
    if (!status_is(c, a, 200, "a retry is"))
        return;
    const struct json *j = json_get(a->json, "attempt");
    struct str state = json_text(a->json, "state");
    /* Of a retry that had to be sent twice the second finds the job further on. */
    if (j && json_to_int(j, &attempt) && attempt == c->attempt && !str_is(state, "FAILED")) {
        traffic_case_follow(c);
        return;
    }
    finding_set(&f, look_log, "QUEUED with one attempt more after the retry", "state %.*s, attempt %lld",
                STR_ARG(state), (long long)attempt);
    traffic_case_end(c, &f);
}

static void retry_refused(void *self, const struct traffic_answer *a)
{
    struct traffic_case *c = self;
    struct traffic_finding f;
    if (judge_refusal(a->status, a->json, 409, err_wire(ERR_JOB_CONFLICT), &f)) {
        c->refused_last = true;
        traffic_case_follow(c); /* once more into the listing: the refusal must have changed nothing */
    } else {
        traffic_case_end(c, &f);
    }
}

bool traffic_help_failed(struct traffic_case *c)
{
    enum traffic_help help = c->yard.expected->help;
    bool all = help == HELP_RETRY_ALL, once = help == HELP_RETRY_ONCE && c->attempt == 1;
    if ((!all && !once) || c->refused_last)
        return false;
    bool last = all && c->attempt > c->yard.max_retries;
    c->step = STEP_HELPED;
    c->attempt += !last;
    traffic_case_call(c, "POST", "/retry", last ? retry_refused : retried);
    return true;
}

/* --- far future ------------------------------------------------------------------------------------- */

static void still_waiting(void *self, const struct traffic_answer *a)
{
    struct traffic_case *c = self;
    struct traffic_finding f;
    if (!status_is(c, a, 200, "reading the job is"))
        return;
    if (str_is(json_text(a->json, "state"), "CREATED")) {
        cancel(c);
        return;
    }
    finding_set(&f, look_log, "CREATED until its time, a year from now", "state %.*s",
                STR_ARG(json_text(a->json, "state")));
    traffic_case_end(c, &f);
}

void traffic_help_timer(struct traffic_case *c)
{
    traffic_case_call(c, "GET", "", still_waiting);
}

void traffic_help_accepted(struct traffic_case *c)
{
    switch (c->yard.expected->help) {
    case HELP_CANCEL_QUEUED:
        cancel(c);
        return;
    case HELP_CANCEL_RUNNING:
        follow_stream(c);
        return;
    case HELP_SAME_KEY:
        send_again(c, NULL, replay_came);
        return;
    case HELP_TWO_KEYS:
        if (twins_differ(c))
            traffic_case_follow(c);
        return;
    case HELP_DUE_FAR:
        heap_put(&c->sim->timers, &c->timer, (uint64_t)(traffic_now_ms() + TRAFFIC_HOLD_MS));
        return;
    case HELP_NOTHING:
    case HELP_RETRY_ONCE:
    case HELP_RETRY_ALL:
    case HELP_RECEIVER_OK:
    case HELP_RECEIVER_HANGS:
    case HELP_RECEIVER_FAILS_ONCE:
    case HELP_RECEIVER_FAILS:
    case HELP_RECEIVER_SLOW:
    case HELP_DUE_SOON:
    case HELP_RESTART:
        traffic_case_follow(c);
        return;
    case HELP_REFUSAL:
    case TRAFFIC_HELP_COUNT:
        break;
    }
    must_fail("what is refused is never accepted here", __FILE__, __LINE__, __func__);
}
