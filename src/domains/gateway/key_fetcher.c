#include "domains/gateway/key_fetcher.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json_members.h"
#include "base/must.h"
#include "domains/gateway/request_owner.h"
#include "egress/trusted.h"

#include "base/banned.h"

enum { TAKE_EVERY_MS = 1000, CALL_BYTES_MAX = 16384 };

enum phase { IDLE, TAKING, FETCHING, FETCHED, TELLING };

struct key_fetcher {
    struct request_owner owner;
    struct key_fetcher_config config;
    enum phase phase;
    int64_t next_ms;
    int64_t id; /* core's */
    struct strbuf body;
    char error[EGRESS_ERROR_BYTES]; /* empty: the body is there */
};

static void rest(struct key_fetcher *f, int64_t pause_ms)
{
    f->phase = IDLE;
    f->next_ms = clock_mono_ms(f->config.clock) + pause_ms;
}

static void over(struct request_owner *owner, const struct egress_result *r)
{
    struct key_fetcher *f = CONTAINER_OF(owner, struct key_fetcher, owner);
    MUST(f->phase == FETCHING);
    const char *why = r->failure != EGRESS_NONE                            ? r->error
                      : r->cut                                             ? "the answer is too large"
                      : !f->body.ptr || !str_is_utf8(strbuf_str(&f->body)) ? "the answer is no text"
                                                                           : "";
    if (r->failure == EGRESS_NONE && r->status != 200)
        snprintf(f->error, sizeof f->error, "it answered %d", r->status);
    else
        snprintf(f->error, sizeof f->error, "%s", why);
    f->phase = FETCHED;
}

struct key_fetcher *key_fetcher_new(const struct key_fetcher_config *config)
{
    if (!config->on)
        return NULL;
    struct key_fetcher *f = must_alloc(sizeof *f);
    f->owner.over = over;
    f->config = *config;
    return f;
}

struct key_fetcher *key_fetcher_free(struct key_fetcher *f)
{
    if (!f)
        return NULL;
    strbuf_free(&f->body);
    free(f);
    return NULL;
}

static void fetch(struct key_fetcher *f, struct str url)
{
    static const struct str headers[] = {{"accept: application/json", 24}};
    struct egress_request request = {.url = url,
                                     .headers = headers,
                                     .header_count = LENGTH_OF(headers),
                                     .get = true,
                                     .timeout_ms = KEY_FETCH_MS,
                                     .connect_timeout_ms = KEY_FETCH_MS,
                                     .answer = &f->body,
                                     .owner = &f->owner};
    struct err err;
    f->phase = FETCHING;
    if (egress_send_trusted(f->config.egress, &request, &err) != ERR_OK)
        over(&f->owner, &(struct egress_result){.failure = EGRESS_CANCELLED, .error = err.detail});
}

static void took(void *self, const struct worker_answer *answer)
{
    struct key_fetcher *f = self;
    const struct json *list = answer->kind == WORKER_ANSWERED ? json_get(answer->root, "fetches") : NULL;
    const struct json *first = list ? list->child : NULL;
    const struct json *id = json_get(first, "id"), *url = json_get(first, "url");
    if (id && json_to_int(id, &f->id) && url && url->type == JSON_STRING)
        fetch(f, url->text);
    else
        rest(f, TAKE_EVERY_MS);
}

static void told(void *self, const struct worker_answer *answer)
{
    (void)answer;  /* lost: core asks for it again */
    rest(self, 0); /* another issuer's may be due */
}

static void tell(struct key_fetcher *f)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    jw_start(&w, &text);
    jw_object(&w);
    encode_int(&w, "id", f->id);
    jw_key(&w, f->error[0] ? "error" : "body");
    if (f->error[0])
        jw_text(&w, f->error);
    else
        jw_str(&w, strbuf_str(&f->body));
    jw_object_end(&w);
    struct worker_post post = {
        .path = "/internal/v1/issuers:answer", .body = strbuf_str(&text), .answer_bytes_max = CALL_BYTES_MAX};
    f->phase = TELLING;
    if (!worker_client_post(f->config.client, &post, told, f))
        f->phase = FETCHED;
}

void key_fetcher_pump(struct key_fetcher *f, int64_t now_ms)
{
    if (!f || !worker_client_can_call(f->config.client))
        return;
    if (f->phase == FETCHED)
        tell(f);
    if (f->phase != IDLE || now_ms < f->next_ms)
        return;
    struct worker_post post = {
        .path = "/internal/v1/issuers:take", .body = STR("{}"), .answer_bytes_max = CALL_BYTES_MAX};
    f->phase = TAKING;
    if (!worker_client_post(f->config.client, &post, took, f))
        rest(f, TAKE_EVERY_MS);
}

int64_t key_fetcher_next_at_ms(const struct key_fetcher *f)
{
    return !f ? INT64_MAX : f->phase == IDLE ? f->next_ms : f->phase == FETCHED ? 0 : INT64_MAX;
}
