#include "cli/traffic/calls.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/must.h"
#include "cli/event_stream.h"

#include "base/banned.h"

enum {
    BACKOFF_MS_MIN = 50,
    BACKOFF_MS_MAX = 2000,
    RETRY_503_S_MAX = 10,
    BUFFER_BYTES_KEPT = 64 * 1024,
    CONNECTIONS_MAX = 1024
};

struct call {
    struct heap_node turn; /* while it waits; the key is when it may be sent */
    struct traffic_calls *calls;
    TAILQ_ENTRY(call) link; /* in `idle` or `busy` */
    CURL *easy;
    struct curl_slist *headers;
    struct traffic_request r;
    struct strbuf url, body, answer;
    struct event_stream stream;
    bool under_way, heard_enough;
    int failures;
};

struct traffic_calls {
    char *base_url;
    CURLM *multi;
    struct http_trust trust;
    struct arena *arena;
    struct heap waiting;
    TAILQ_HEAD(, call) idle, busy;
    int calls, streams;       /* under way */
    int64_t failing_since_ms; /* no call has succeeded since; 0: the last one did */
    bool away;
    char fault[120]; /* of the last call that failed */
    struct traffic_calls_count count;
};

static int64_t now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

struct traffic_calls *traffic_calls_new(const char *base_url, struct http_trust trust)
{
    MUST(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    struct traffic_calls *c = must_alloc(sizeof *c);
    c->base_url = must_strdup(base_url);
    c->trust = trust;
    c->multi = curl_multi_init();
    MUST(c->multi);
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_MAX);
    c->arena = arena_new(65536);
    TAILQ_INIT(&c->idle);
    TAILQ_INIT(&c->busy);
    return c;
}

static void call_free(struct call *call)
{
    if (call->under_way)
        curl_multi_remove_handle(call->calls->multi, call->easy);
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    strbuf_free(&call->url);
    strbuf_free(&call->body);
    strbuf_free(&call->answer);
    event_stream_free(&call->stream);
    free(call);
}

struct traffic_calls *traffic_calls_free(struct traffic_calls *c)
{
    if (!c)
        return NULL;
    for (struct call *call; (call = TAILQ_FIRST(&c->busy));) {
        TAILQ_REMOVE(&c->busy, call, link);
        call_free(call);
    }
    for (struct call *call; (call = TAILQ_FIRST(&c->idle));) {
        TAILQ_REMOVE(&c->idle, call, link);
        call_free(call);
    }
    curl_multi_cleanup(c->multi);
    heap_free(&c->waiting);
    arena_free(c->arena);
    free(c->base_url);
    free(c);
    curl_global_cleanup();
    return NULL;
}

bool traffic_calls_away(const struct traffic_calls *c)
{
    return c->away;
}

const char *traffic_calls_fault(const struct traffic_calls *c, int64_t longer_than_ms)
{
    return c->failing_since_ms && now_ms() - c->failing_since_ms >= longer_than_ms ? c->fault : NULL;
}

struct traffic_calls_count traffic_calls_count(const struct traffic_calls *c)
{
    return c->count;
}

/* --- one call --------------------------------------------------------------------------------------- */

static bool hear_event(void *self, struct str id, struct str data)
{
    struct call *call = self;
    const struct json *event;
    struct err err;
    (void)id;
    bool go_on = true;
    if (json_parse(call->calls->arena, data, &event, &err) == ERR_OK)
        go_on = call->r.event(call->r.self, event);
    arena_reset(call->calls->arena);
    return go_on;
}

static size_t take_bytes(char *bytes, size_t size, size_t count, void *self)
{
    struct call *call = self;
    size_t len = size * count;
    long status = 0;
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    if (call->r.event && status == 200) {
        call->calls->failing_since_ms = 0;
        call->heard_enough = !event_stream_feed(&call->stream, (struct str){bytes, len}, hear_event, call);
        return call->heard_enough ? CURL_WRITEFUNC_ERROR : len;
    }
    if (len > TRAFFIC_ANSWER_BYTES_MAX - call->answer.len)
        return CURL_WRITEFUNC_ERROR;
    strbuf_add(&call->answer, bytes, len);
    return len;
}

static void add_header(struct call *call, const char *line)
{
    struct curl_slist *longer = curl_slist_append(call->headers, line);
    MUST(longer);
    call->headers = longer;
}

static void set_headers(struct call *call)
{
    struct strbuf line CLEANUP(strbuf_free) = {0};
    curl_slist_free_all(call->headers);
    call->headers = NULL;
    add_header(call, call->r.event ? "Accept: text/event-stream" : "Accept: application/json");
    add_header(call, "Expect:");
    add_header(call, call->body.len ? "Content-Type: application/json" : "Content-Type:");
    const char *bearer = call->r.caller->token ? call->r.caller->token : call->r.caller->key;
    if (*bearer) {
        strbuf_addf(&line, "Authorization: Bearer %s", bearer);
        add_header(call, line.ptr);
    }
}

#define SET(easy, option, value) MUST(curl_easy_setopt(easy, option, value) == CURLE_OK)

static void set_up(struct call *call)
{
    CURL *e = call->easy;
    bool get = strcmp(call->r.method, "GET") == 0;
    set_headers(call);
    SET(e, CURLOPT_PRIVATE, call);
    SET(e, CURLOPT_NOSIGNAL, 1L);
    SET(e, CURLOPT_NOPROXY, "*");
    SET(e, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(e, CURLOPT_URL, call->url.ptr);
    http_trust_use(&call->calls->trust, e);
    SET(e, CURLOPT_HTTPHEADER, call->headers);
    SET(e, CURLOPT_USERAGENT, "weir-traffic/" WEIR_VERSION);
    SET(e, CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CONNECT_TIMEOUT_MS);
    SET(e, CURLOPT_TIMEOUT_MS, call->r.event ? 0L : (long)HTTP_CALL_TIMEOUT_MS);
    SET(e, CURLOPT_WRITEFUNCTION, take_bytes);
    SET(e, CURLOPT_WRITEDATA, call);
    SET(e, CURLOPT_HTTPGET, 1L);
    if (!get) {
        SET(e, CURLOPT_POST, 1L);
        SET(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
        SET(e, CURLOPT_POSTFIELDS, call->body.len ? call->body.ptr : "");
    }
}

void traffic_calls_send(struct traffic_calls *c, const struct traffic_request *r)
{
    struct call *call = TAILQ_FIRST(&c->idle);
    if (call) {
        TAILQ_REMOVE(&c->idle, call, link);
    } else {
        call = must_alloc(sizeof *call);
        call->calls = c;
        call->easy = curl_easy_init();
        MUST(call->easy);
    }
    TAILQ_INSERT_TAIL(&c->busy, call, link);
    call->r = *r;
    call->failures = 0;
    strbuf_clear(&call->url);
    strbuf_addf(&call->url, "%s%.*s", c->base_url, STR_ARG(r->path));
    strbuf_clear(&call->body);
    strbuf_add_str(&call->body, r->body);
    heap_put(&c->waiting, &call->turn, (uint64_t)now_ms());
}

void traffic_calls_ask(struct traffic_calls *c, struct traffic_caller *caller, const char *method,
                       struct str path, traffic_answer_fn *done, void *self)
{
    traffic_calls_send(c, &(struct traffic_request){caller, method, path, .done = done, .self = self});
}

static void call_return(struct traffic_calls *c, struct call *call)
{
    if (call->body.cap > BUFFER_BYTES_KEPT)
        strbuf_free(&call->body);
    if (call->answer.cap > BUFFER_BYTES_KEPT)
        strbuf_free(&call->answer);
    TAILQ_REMOVE(&c->busy, call, link);
    TAILQ_INSERT_HEAD(&c->idle, call, link);
}

/* --- answers ---------------------------------------------------------------------------------------- */

static const char *header_of(struct call *call, const char *name)
{
    struct curl_header *h;
    return curl_easy_header(call->easy, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK ? h->value : NULL;
}

static int64_t retry_after_s(struct call *call)
{
    const char *text = header_of(call, "Retry-After");
    int64_t seconds = 1;
    if (text && str_to_int(str_trim(str_of(text)), 0, INT64_MAX / 2000, &seconds))
        return seconds;
    return 1;
}

static int64_t backoff_ms(int failures)
{
    int64_t ms = BACKOFF_MS_MIN;
    while (failures-- > 1 && ms < BACKOFF_MS_MAX)
        ms *= 2;
    return ms < BACKOFF_MS_MAX ? ms : BACKOFF_MS_MAX;
}

/* When to ask again; 0: this is the answer. */
static int64_t ask_again_at_ms(struct traffic_calls *c, struct call *call, bool broken, long status)
{
    int64_t now = now_ms();
    if (!broken && status != 429 && status != 503 && status != 504) {
        c->failing_since_ms = 0;
        c->count.answered++;
        return 0;
    }
    call->failures++;
    c->count.refused_429 += !broken && status == 429;
    c->count.refused_503 += !broken && status != 429;
    c->count.broken += broken;
    if (!broken && status == 429) {
        int64_t wait_s = retry_after_s(call);
        c->failing_since_ms = 0;
        call->r.caller->refusals++;
        if (wait_s > TRAFFIC_RETRY_AFTER_S_MAX)
            return 0;
        call->r.caller->blocked_until_ms = now + wait_s * 1000;
        return call->r.caller->blocked_until_ms;
    }
    if (!c->failing_since_ms)
        c->failing_since_ms = now;
    c->away |= now - c->failing_since_ms > TRAFFIC_AWAY_MS_MAX;
    int64_t asked_s = broken ? 0 : retry_after_s(call);
    return now + (asked_s > RETRY_503_S_MAX ? RETRY_503_S_MAX * 1000
                  : asked_s                 ? asked_s * 1000
                                            : backoff_ms(call->failures));
}

static void call_end(struct traffic_calls *c, struct call *call, CURLcode ended)
{
    long status = 0;
    struct err err;
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(c->multi, call->easy);
    call->under_way = false;
    *(call->r.event ? &c->streams : &c->calls) -= 1;
    bool broken = ended != CURLE_OK && !call->heard_enough;
    if (broken)
        snprintf(c->fault, sizeof c->fault, "%s", curl_easy_strerror(ended));
    else if (status >= 500)
        snprintf(c->fault, sizeof c->fault, "HTTP %ld", status);
    int64_t again_ms = ask_again_at_ms(c, call, broken, status);
    if (again_ms) {
        event_stream_reset(&call->stream);
        heap_put(&c->waiting, &call->turn, (uint64_t)again_ms);
        return;
    }
    struct traffic_answer answer = {.status = status, .replayed = header_of(call, "Idempotency-Replayed")};
    struct str body = strbuf_str(&call->answer);
    if (!body.len || json_parse(c->arena, body, &answer.json, &err) != ERR_OK)
        answer.json = NULL;
    struct traffic_request r = call->r;
    r.done(r.self, &answer);
    arena_reset(c->arena);
    call_return(c, call);
}

static void start_due(struct traffic_calls *c)
{
    uint64_t now = (uint64_t)now_ms();
    for (struct heap_node *n; (n = heap_first(&c->waiting)) && n->key <= now;) {
        struct call *call = CONTAINER_OF(n, struct call, turn);
        uint64_t blocked = (uint64_t)call->r.caller->blocked_until_ms;
        int *under_way = call->r.event ? &c->streams : &c->calls;
        if (blocked > now) {
            heap_put(&c->waiting, n, blocked);
            continue;
        }
        if (*under_way >= (call->r.event ? TRAFFIC_STREAMS_MAX : TRAFFIC_CALLS_MAX)) {
            if (!call->r.event)
                return;
            heap_put(&c->waiting, n, now + 20); /* streams must not stand in the way of calls */
            continue;
        }
        heap_remove(&c->waiting, n);
        strbuf_clear(&call->answer);
        event_stream_reset(&call->stream);
        call->heard_enough = false;
        set_up(call);
        *under_way += 1;
        call->under_way = true;
        MUST(curl_multi_add_handle(c->multi, call->easy) == CURLM_OK);
    }
}

static int wait_ms(const struct traffic_calls *c, int timeout_ms)
{
    struct heap_node *n = heap_first(&c->waiting);
    int64_t until_ms = n && c->calls < TRAFFIC_CALLS_MAX ? (int64_t)n->key - now_ms() : timeout_ms;
    return until_ms < 0 ? 0 : until_ms < timeout_ms ? (int)until_ms : timeout_ms;
}

void traffic_calls_work(struct traffic_calls *c, int fd, int timeout_ms)
{
    int running, left;
    struct curl_waitfd extra = {.fd = fd, .events = CURL_WAIT_POLLIN};
    start_due(c);
    curl_multi_perform(c->multi, &running);
    curl_multi_poll(c->multi, &extra, fd >= 0 ? 1 : 0, wait_ms(c, timeout_ms), NULL);
    curl_multi_perform(c->multi, &running);
    for (CURLMsg *m; (m = curl_multi_info_read(c->multi, &left));) {
        struct call *call = NULL;
        CURLcode ended = m->data.result; /* removing the handle frees the message */
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&call);
        call_end(c, call, ended);
    }
}
