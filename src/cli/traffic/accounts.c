#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/must.h"
#include "base/time_text.h"
#include "cli/server_call.h"
#include "cli/traffic/traffic_internal.h"

#include "base/banned.h"

enum {
    POLL_MS_MIN =
        250, /* 240 of the 600 requests a minute; the cases of an account need fewer than the rest */
    POLL_MS_MAX = 2000,
    ONE_MOMENT_MS = 1000, /* after a full queue */
    YEAR_DAYS = 365,
};

/* --- clients ---------------------------------------------------------------------------------------- */

static void copy_text(char *out, size_t size, const struct json *object, const char *name)
{
    struct str text = json_text(object, name);
    snprintf(out, size, "%.*s", STR_ARG(text));
}

/* Waits for the next minute where this address has used up its clients: others of it make some, too. */
static int register_client(struct traffic *s, const struct server_call *call, struct server_answer *ret)
{
    for (;;) {
        int code = server_try(s->in, call, ret);
        int64_t wait_s = ret->http.retry_after_s;
        if (code != CLI_OK || ret->http.status != 429 || !wait_s || wait_s > TRAFFIC_RETRY_AFTER_S_MAX)
            return code == CLI_OK ? server_judge(ret, server_advice_operator) : code;
        server_answer_free(ret);
        cli_note(s->in,
                 "a client may be made in %lld s (clients.per_address_minute, none with --operator-token)",
                 (long long)wait_s);
        (void)!nanosleep(&(struct timespec){.tv_sec = wait_s}, NULL);
    }
}

static int make_client(struct traffic *s, struct traffic_account *a)
{
    struct server_answer answer;
    char path[80], client_id[UUID_TEXT_LEN + 1];
    s->registrar.token = server_operator(s->in);
    struct server_call call = {.method = "POST", .path = STR("/v1/clients"), .bearer = s->registrar.token};
    int code = register_client(s, &call, &answer);
    if (code == CLI_OK) {
        copy_text(client_id, sizeof client_id, answer.json, "client_id");
        copy_text(a->secret, sizeof a->secret, answer.json, "webhook_secret");
    }
    server_answer_free(&answer);
    if (code != CLI_OK)
        return code;
    snprintf(path, sizeof path, "/v1/clients/%s/keys", client_id);
    call.path = str_of(path);
    code = register_client(s, &call, &answer);
    if (code == CLI_OK)
        copy_text(a->caller.key, sizeof a->caller.key, answer.json, "api_key");
    server_answer_free(&answer);
    return code;
}

static struct traffic_account *account_new(struct traffic *s)
{
    struct traffic_account *a = must_alloc(sizeof *a);
    a->sim = s;
    a->poll_every_ms = POLL_MS_MIN;
    TAILQ_INIT(&a->to_submit);
    TAILQ_INIT(&a->cases_list);
    return a;
}

static void take_over(struct traffic_account *a)
{
    TAILQ_INSERT_TAIL(&a->sim->accounts, a, link);
    a->sim->account_count++;
    a->sim->current = a;
}

int traffic_account_add(struct traffic *s)
{
    struct traffic_account *a = account_new(s);
    const char *key = s->in->flags->value[FLAG_KEY];
    int code = CLI_OK;
    a->given = key != NULL;
    if (key)
        snprintf(a->caller.key, sizeof a->caller.key, "%s", key);
    else
        code = make_client(s, a);
    if (code == CLI_OK)
        take_over(a);
    else
        traffic_account_free(a);
    return code;
}

/* --- the next client, ordered while the current one is in use ---------------------------------------- */

static bool came(struct traffic_account *a, const struct traffic_answer *answer)
{
    if (answer->status >= 200 && answer->status < 300 && answer->json)
        return true;
    cli_fault("another client is refused: HTTP %ld %.*s", answer->status,
              STR_ARG(json_text(answer->json, "code")));
    a->sim->fatal = CLI_FAILED;
    return false;
}

static void key_came(void *self, const struct traffic_answer *answer)
{
    struct traffic_account *a = self;
    if (!came(a, answer))
        return;
    copy_text(a->caller.key, sizeof a->caller.key, answer->json, "api_key");
}

static void client_came(void *self, const struct traffic_answer *answer)
{
    struct traffic_account *a = self;
    char path[80];
    if (!came(a, answer))
        return;
    copy_text(a->secret, sizeof a->secret, answer->json, "webhook_secret");
    struct str id = json_text(answer->json, "client_id");
    snprintf(path, sizeof path, "/v1/clients/%.*s/keys", (int)(id.len < 40 ? id.len : 40),
             id.ptr ? id.ptr : "");
    traffic_calls_ask(a->sim->calls, &a->sim->registrar, "POST", str_of(path), key_came, a);
}

void traffic_account_change(struct traffic *s)
{
    if (s->current->given || s->current->cases < TRAFFIC_ACCOUNT_CASES_MAX / 2)
        return;
    if (s->ordered) {
        if (s->current->cases >= TRAFFIC_ACCOUNT_CASES_MAX && s->ordered->caller.key[0]) {
            take_over(s->ordered);
            s->ordered = NULL;
        }
        return;
    }
    s->ordered = account_new(s);
    traffic_calls_ask(s->calls, &s->registrar, "POST", STR("/v1/clients"), client_came, s->ordered);
}

struct traffic_account *traffic_account_free(struct traffic_account *a)
{
    if (!a)
        return NULL;
    for (struct traffic_case *c; (c = TAILQ_FIRST(&a->to_submit));)
        traffic_case_free(c);
    for (struct traffic_case *c; (c = TAILQ_FIRST(&a->cases_list));)
        traffic_case_free(c);
    strbuf_free(&a->cursor);
    free(a);
    return NULL;
}

/* --- submits ---------------------------------------------------------------------------------------- */

static bool may_come_again(const struct json *problem)
{
    struct str code = json_text(problem, "code");
    return str_is(code, err_wire(ERR_REQUEST_RATE_LIMITED)) || str_is(code, err_wire(ERR_EXEC_QUEUE_FULL)) ||
           str_is(code, err_wire(ERR_STORAGE_DB_ERROR)) || str_is(code, err_wire(ERR_STORAGE_UNAVAILABLE));
}

static void take_result(struct traffic_account *a, struct traffic_case *c, const struct json *result)
{
    const struct json *error = json_get(result, "error"), *status = json_get(error, "status");
    int64_t number = 0;
    if (!error)
        traffic_case_accepted(c, result);
    else if (may_come_again(error)) /* the queue or the server is full: not a fault, but no hurry either */
        a->caller.blocked_until_ms = traffic_now_ms() + ONE_MOMENT_MS;
    else
        traffic_case_refused(c, status && json_to_int(status, &number) ? (long)number : 0, error);
}

static void batch_answered(void *self, const struct traffic_answer *answer)
{
    struct traffic_account *a = self;
    size_t count = a->batch_count;
    a->batch_count = 0;
    const struct json *results = json_get(answer->json, "results");
    const struct json *r = results ? results->child : NULL;
    for (size_t i = 0; i < count; i++, r = r ? r->next : NULL) {
        if (answer->status == 202 && r)
            take_result(a, a->batch[i], r);
        else
            traffic_case_refused(a->batch[i], answer->status, answer->json);
    }
}

static int64_t due_us(struct traffic *s, enum traffic_help help)
{
    int64_t now_us = traffic_server_us(s);
    if (help == HELP_DUE_FAR)
        return now_us + INT64_C(86400000000) * YEAR_DAYS;
    return now_us + 1000000 + (int64_t)traffic_mix_random(&s->mix, 2000000);
}

static void submit_batch(struct traffic_account *a)
{
    struct strbuf body CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &body);
    jw_object(&w);
    jw_key(&w, "jobs");
    jw_array(&w);
    for (struct traffic_case *c = TAILQ_FIRST(&a->to_submit); c; c = TAILQ_NEXT(c, link)) {
        enum traffic_help help = c->yard.expected->help;
        if (a->batch_count == TRAFFIC_BATCH_MAX)
            break;
        if (!c->yard.due_us && (help == HELP_DUE_SOON || help == HELP_DUE_FAR))
            c->yard.due_us = due_us(a->sim, help);
        traffic_case_write(c, &w, NULL);
        a->batch[a->batch_count++] = c;
    }
    jw_array_end(&w);
    jw_object_end(&w);
    traffic_calls_send(a->sim->calls, &(struct traffic_request){
                                          .caller = &a->caller,
                                          .method = "POST",
                                          .path = STR("/v1/jobs:batch"),
                                          .body = strbuf_str(&body),
                                          .done = batch_answered,
                                          .self = a,
                                      });
}

/* --- listings --------------------------------------------------------------------------------------- */

static struct traffic_case *case_of(struct traffic_account *a, struct str job_id)
{
    for (struct traffic_case *c = TAILQ_FIRST(&a->cases_list); c; c = TAILQ_NEXT(c, link))
        if (str_is(job_id, c->job_id))
            return c;
    return NULL;
}

/* When the oldest followed case was created; 0: none is followed. */
static int64_t oldest_followed_us(const struct traffic_account *a)
{
    int64_t oldest = 0;
    for (struct traffic_case *c = TAILQ_FIRST(&a->cases_list); c; c = TAILQ_NEXT(c, link))
        if (c->step == STEP_FOLLOWED && (!oldest || c->created_us < oldest))
            oldest = c->created_us;
    return oldest;
}

static void poll_again(struct traffic_account *a, bool changed)
{
    int64_t slower_ms = a->poll_every_ms * 3 / 2;
    a->poll_every_ms = changed && !a->caller.refusals ? POLL_MS_MIN
                       : slower_ms < POLL_MS_MAX      ? slower_ms
                                                      : POLL_MS_MAX;
    a->poll_at_ms = traffic_now_ms() + a->poll_every_ms;
}

static void listing_came(void *self, const struct traffic_answer *answer)
{
    struct traffic_account *a = self;
    int64_t judged = a->sim->judged, moved_ms = a->sim->last_moved_ms;
    const struct json *items = json_get(answer->json, "items");
    a->polling = false;
    strbuf_clear(&a->cursor);
    if (answer->status != 200 || !items) {
        cli_fault("GET /v1/jobs answered %ld %.*s", answer->status, STR_ARG(json_text(answer->json, "code")));
        a->sim->fatal = CLI_FAILED;
        return;
    }
    for (const struct json *job = items->child; job; job = job->next) {
        struct traffic_case *c = case_of(a, json_text(job, "job_id"));
        if (c)
            traffic_case_seen(c, job);
    }
    struct str next = json_text(answer->json, "next_cursor");
    strbuf_add_str(&a->cursor, next);
    if (next.len)
        a->poll_at_ms = 0; /* older ones stand on the next page */
    else
        poll_again(a, a->sim->judged != judged || a->sim->last_moved_ms != moved_ms);
}

static void poll(struct traffic_account *a, int64_t oldest_us)
{
    struct strbuf path CLEANUP(strbuf_free) = {0};
    char after[TIME_TEXT_MAX];
    strbuf_addf(&path, "/v1/jobs?limit=200&created_after=%.*s",
                STR_ARG(time_text_ms(oldest_us / 1000 - 1, after)));
    if (a->cursor.len) {
        strbuf_add_text(&path, "&cursor=");
        http_escape(&path, strbuf_str(&a->cursor));
    }
    a->polling = true;
    traffic_calls_ask(a->sim->calls, &a->caller, "GET", strbuf_str(&path), listing_came, a);
}

static void count_jobs(struct traffic_account *a);

/* The oldest leave when nothing of theirs is under way: a run of days makes thousands of them. */
static void let_leave(struct traffic *s)
{
    struct traffic_account *a = TAILQ_FIRST(&s->accounts);
    if (s->account_count <= TRAFFIC_ACCOUNTS_KEPT || a == s->current || a->given)
        return;
    if (a->counting || a->polling || a->batch_count || !TAILQ_EMPTY(&a->to_submit) ||
        !TAILQ_EMPTY(&a->cases_list))
        return;
    a->leaving = true;
    count_jobs(a);
}

void traffic_accounts_work(struct traffic *s, int64_t now_ms)
{
    for (struct traffic_account *a = TAILQ_FIRST(&s->accounts); a; a = TAILQ_NEXT(a, link)) {
        if (!a->batch_count && !TAILQ_EMPTY(&a->to_submit) && now_ms >= a->caller.blocked_until_ms)
            submit_batch(a);
        if (a->polling || now_ms < a->poll_at_ms || TAILQ_EMPTY(&a->cases_list))
            continue;
        int64_t oldest_us = oldest_followed_us(a);
        if (oldest_us)
            poll(a, oldest_us);
    }
    let_leave(s);
}

/* --- how many jobs are there? ------------------------------------------------------------------------ */

static void summary_came(void *self, const struct traffic_answer *answer)
{
    struct traffic_account *a = self;
    struct traffic_finding f;
    char expected[100];
    const struct json *j = json_get(answer->json, "total");
    int64_t total = -1;
    a->counting = false;
    if (!j || !json_to_int(j, &total) || total != a->jobs) {
        snprintf(expected, sizeof expected, "a client with exactly the %lld jobs that were accepted",
                 (long long)a->jobs);
        finding_set(&f, "a job was lost or made twice: weir verify", expected,
                    "GET /v1/reports/summary says %lld", (long long)total);
        traffic_surprise(a->sim, WORK_KIND_COUNT, "", &f);
    }
    if (a->leaving) {
        TAILQ_REMOVE(&a->sim->accounts, a, link);
        a->sim->account_count--;
        traffic_account_free(a);
    }
}

static void count_jobs(struct traffic_account *a)
{
    a->counting = true;
    traffic_calls_ask(a->sim->calls, &a->caller, "GET", STR("/v1/reports/summary"), summary_came, a);
}

void traffic_accounts_count_jobs(struct traffic *s)
{
    bool more = true;
    for (struct traffic_account *a = TAILQ_FIRST(&s->accounts); a; a = TAILQ_NEXT(a, link))
        if (!a->given && !a->counting)
            count_jobs(a);
    while (more && s->fatal == CLI_OK) {
        traffic_turn(s, 50);
        more = false;
        for (struct traffic_account *a = TAILQ_FIRST(&s->accounts); a; a = TAILQ_NEXT(a, link))
            more |= a->counting;
    }
}
