#include "domains/gateway/policy_asker.h"

#include <stdlib.h>

#include "base/json_members.h"
#include "base/log.h"
#include "base/must.h"
#include "base/random.h"
#include "domains/gateway/policy_answer.h"
#include "domains/gateway/request_owner.h"
#include "egress/trusted.h"

#include "base/banned.h"

enum {
    TAKE_WAIT_MS = 20000,
    TAKE_PAUSE_MS = 100, /* after a take that core did not answer */
    EMPTY_PAUSE_MS = 10, /* after one that brought nothing */
    TAKE_BYTES_MAX = 4 << 20,
    TELL_BYTES_MAX = 4096,
    ANSWER_BYTES_KEPT = 4096, /* between two questions */
};

enum asked_phase { ASKED_FREE, ASKED_OUT, ASKED_SAID, ASKED_TELLING };

struct asked {
    struct request_owner owner;
    struct policy_asker *asker;
    enum asked_phase phase;
    int64_t id; /* core's */
    struct strbuf body;
    bool answered;
    struct policy_answer said;
    char reason[POLICY_ANSWER_REASON_MAX];
};

struct policy_asker {
    struct policy_asker_config config;
    int64_t birth; /* which life of this gateway: core hands out again what an earlier one took */
    struct arena *arena;
    struct worker_call *take, *tell; /* NULL: none in flight */
    int64_t take_after_ms;
    bool stopping;
    bool complained; /* once for each time the point goes away */
    struct asked asked[POLICY_ASKED_MAX];
};

struct policy_asker *policy_asker_new(const struct policy_asker_config *config)
{
    if (!config->url)
        return NULL;
    struct policy_asker *p = must_alloc(sizeof *p);
    p->config = *config;
    p->arena = arena_new(4096);
    p->birth = (int64_t)(random_u64() >> 1);
    return p;
}

struct policy_asker *policy_asker_free(struct policy_asker *p)
{
    if (!p)
        return NULL;
    for (size_t i = 0; i < POLICY_ASKED_MAX; i++)
        strbuf_free(&p->asked[i].body);
    arena_free(p->arena);
    free(p);
    return NULL;
}

static uint32_t count_of(const struct policy_asker *p, enum asked_phase phase)
{
    uint32_t count = 0;
    for (size_t i = 0; i < POLICY_ASKED_MAX; i++)
        count += p->asked[i].phase == phase;
    return count;
}

/* --- the point answers ----------------------------------------------------------------------------- */

static void complain(struct policy_asker *p, int status, const char *why)
{
    if (!p->complained)
        log_line(LOG_WARN, "policy_point_away", "status", LOG_INT(status), "error_message", LOG_TEXT(why),
                 NULL);
    p->complained = true;
}

static void answered(struct policy_asker *p, struct asked *q)
{
    if (p->complained)
        log_line(LOG_INFO, "policy_point_back", NULL);
    p->complained = false;
    if (q->said.reason.len)
        memcpy(q->reason, q->said.reason.ptr, q->said.reason.len);
    q->said.reason.ptr = q->said.reason.ptr ? q->reason : NULL;
    q->answered = true;
}

static void over(struct request_owner *owner, const struct egress_result *r)
{
    struct asked *q = CONTAINER_OF(owner, struct asked, owner);
    struct policy_asker *p = q->asker;
    MUST(q->phase == ASKED_OUT);
    q->phase = ASKED_SAID;
    q->answered = false;
    if (r->failure != EGRESS_NONE)
        complain(p, r->status, r->error);
    else if (r->status != 200)
        complain(p, r->status, "the policy decision point did not answer 200");
    else if (r->cut)
        complain(p, r->status, "the answer is too large");
    else if (!policy_answer_read(p->arena, strbuf_str(&q->body), &q->said))
        complain(p, r->status, "the answer is no decision");
    else
        answered(p, q);
    arena_reset(p->arena);
    if (q->body.cap > ANSWER_BYTES_KEPT)
        strbuf_free(&q->body);
}

/* --- core asks ------------------------------------------------------------------------------------- */

static void ask(struct policy_asker *p, struct asked *q, struct str body, int64_t timeout_ms)
{
    static const struct str headers[] = {{"content-type: application/json", 30},
                                         {"accept: application/json", 24}};
    struct err err;
    struct egress_request request = {.url = str_of(p->config.url),
                                     .headers = headers,
                                     .header_count = LENGTH_OF(headers),
                                     .body = body,
                                     .timeout_ms = timeout_ms,
                                     .connect_timeout_ms = timeout_ms,
                                     .answer = &q->body,
                                     .owner = &q->owner};
    q->owner.over = over;
    q->asker = p;
    q->phase = ASKED_OUT;
    if (egress_send_trusted(p->config.egress, &request, &err) != ERR_OK)
        over(&q->owner, &(struct egress_result){.failure = EGRESS_CANCELLED, .error = err.detail});
}

static void ask_one(struct policy_asker *p, const struct json *question)
{
    const struct json *id = json_get(question, "id"), *timeout = json_get(question, "timeout_ms");
    const struct json *body = json_get(question, "body");
    int64_t timeout_ms;
    struct asked *q = p->asked;
    while (q < p->asked + POLICY_ASKED_MAX && q->phase != ASKED_FREE)
        q++;
    if (q == p->asked + POLICY_ASKED_MAX || !id || !json_to_int(id, &q->id) || !timeout ||
        !json_to_int(timeout, &timeout_ms) || !body)
        return; /* not core's words: its time ends there */
    ask(p, q, body->source, timeout_ms < 1 ? 1 : timeout_ms);
}

static void took(void *self, const struct worker_answer *answer)
{
    struct policy_asker *p = self;
    const struct json *list = answer->kind == WORKER_ANSWERED ? json_get(answer->root, "questions") : NULL;
    p->take = NULL;
    if (!list || !list->child)
        p->take_after_ms = clock_mono_ms(p->config.clock) + (list ? EMPTY_PAUSE_MS : TAKE_PAUSE_MS);
    for (const struct json *j = list ? list->child : NULL; j; j = j->next)
        ask_one(p, j);
}

static void take(struct policy_asker *p, uint32_t room)
{
    struct strbuf body CLEANUP(strbuf_free) = {0};
    strbuf_addf(&body, "{\"instance\":%lld,\"birth\":%lld,\"max\":%u,\"wait_ms\":%d}",
                (long long)p->config.instance, (long long)p->birth, room, TAKE_WAIT_MS);
    struct worker_post post = {.path = "/internal/v1/policy:take",
                               .body = strbuf_str(&body),
                               .wait_ms = TAKE_WAIT_MS,
                               .answer_bytes_max = TAKE_BYTES_MAX};
    p->take = worker_client_post(p->config.client, &post, took, p);
}

/* --- and is told ----------------------------------------------------------------------------------- */

static void told(void *self, const struct worker_answer *answer)
{
    struct policy_asker *p = self;
    p->tell = NULL;
    for (size_t i = 0; i < POLICY_ASKED_MAX; i++)
        if (p->asked[i].phase == ASKED_TELLING)
            p->asked[i].phase = answer->kind == WORKER_AWAY ? ASKED_SAID : ASKED_FREE;
}

static void write_answer(struct json_writer *w, const struct asked *q)
{
    jw_object(w);
    encode_int(w, "id", q->id);
    encode_bool(w, "answered", q->answered);
    if (q->answered) {
        encode_bool(w, "allowed", q->said.allowed);
        encode_bool(w, "requires_approval", q->said.requires_approval);
        encode_str(w, "reason", q->said.reason);
    }
    jw_object_end(w);
}

static void tell(struct policy_asker *p)
{
    struct strbuf body CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &body);
    jw_object(&w);
    jw_key(&w, "answers");
    jw_array(&w);
    for (size_t i = 0; i < POLICY_ASKED_MAX; i++)
        if (p->asked[i].phase == ASKED_SAID) {
            p->asked[i].phase = ASKED_TELLING;
            write_answer(&w, &p->asked[i]);
        }
    jw_array_end(&w);
    jw_object_end(&w);
    struct worker_post post = {
        .path = "/internal/v1/policy:answer", .body = strbuf_str(&body), .answer_bytes_max = TELL_BYTES_MAX};
    p->tell = worker_client_post(p->config.client, &post, told, p);
}

void policy_asker_pump(struct policy_asker *p, int64_t now_ms)
{
    if (!p)
        return;
    if (!p->tell && count_of(p, ASKED_SAID) && worker_client_can_call(p->config.client))
        tell(p);
    uint32_t room = count_of(p, ASKED_FREE);
    if (!p->take && room && !p->stopping && now_ms >= p->take_after_ms &&
        worker_client_can_call(p->config.client))
        take(p, room);
}

int64_t policy_asker_next_at_ms(const struct policy_asker *p)
{
    return p && !p->take && !p->stopping ? p->take_after_ms : INT64_MAX;
}

void policy_asker_stop(struct policy_asker *p)
{
    if (!p || p->stopping)
        return;
    p->stopping = true;
    if (p->take)
        worker_client_abandon(p->config.client, p->take);
    p->take = NULL;
}

bool policy_asker_is_over(const struct policy_asker *p)
{
    return !p || count_of(p, ASKED_FREE) == POLICY_ASKED_MAX;
}
