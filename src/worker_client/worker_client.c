#include "worker_client/worker_client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/must.h"
#include "base/random.h"
#include "worker_client/worker_message.h"

#include "base/banned.h"

enum {
    CONNECT_TIMEOUT_MS = 2000,
    ANSWER_BYTES_BASE = 1024 * 1024,    /* covers WORKER_BATCH_MAX results */
    ANSWER_BYTES_PER_TASK = 512 * 1024, /* a claimed task with the largest payload */
    BUFFER_BYTES_KEPT = 64 * 1024,      /* an idle call keeps no more than this */
    DETAIL_BYTES = 320,
};

/* Kept and reused: an easy handle with its options costs more to make than to keep. */
struct worker_call {
    struct worker_client *client;
    struct worker_call *next_idle;
    CURL *easy;
    struct strbuf body, answer;
    size_t answer_bytes_max;
    enum { OF_RESULTS, OF_TASKS, OF_POST } answer_is;
    size_t claim_max; /* of a claim */
    bool in_flight;
    worker_answer_fn *answered;
    void *self;
};

struct worker_client {
    char *socket_path;
    int64_t timeout_ms;
    const struct clock *clock;
    CURLM *multi;
    struct curl_slist *headers;
    int epoll_fd; /* holds curl's sockets, so the caller watches one descriptor */
    int64_t timer_at_ms;
    struct worker_call *calls, *idle;
    uint32_t calls_max, in_flight;
    int64_t backoff_ms, ready_at_ms; /* 0: core answers */
    worker_link_fn *link;
    void *link_self;
    bool link_lost;
    struct arena *arena; /* of the answer being handed over */
};

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *self, void *socket_data)
{
    struct worker_client *c = self;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* a closed one is gone already */
        curl_multi_assign(c->multi, fd, NULL);
        return 0;
    }
    struct epoll_event ev = {.data.fd = fd};
    if (what & CURL_POLL_IN)
        ev.events |= EPOLLIN;
    if (what & CURL_POLL_OUT)
        ev.events |= EPOLLOUT;
    int failed = epoll_ctl(c->epoll_fd, socket_data ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev);
    curl_multi_assign(c->multi, fd, c); /* any pointer: marks the socket as known to epoll */
    return failed ? -1 : 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *self)
{
    struct worker_client *c = self;
    (void)multi;
    if (timeout_ms < 0)
        c->timer_at_ms = INT64_MAX;
    else /* our clock cuts to whole milliseconds; curl asks only once, so never wake it early */
        c->timer_at_ms = clock_mono_ms(c->clock) + timeout_ms + (timeout_ms > 0);
    return 0;
}

static size_t take_answer(char *bytes, size_t size, size_t count, void *self)
{
    struct worker_call *call = self;
    size_t len = size * count;
    if (call->answer.len + len > call->answer_bytes_max)
        return 0; /* fewer than given: curl ends the transfer with an error */
    strbuf_add(&call->answer, bytes, len);
    return len;
}

#define SET(easy, option, value) MUST(curl_easy_setopt(easy, option, value) == CURLE_OK)

static void call_init(struct worker_client *c, struct worker_call *call)
{
    CURL *easy = curl_easy_init();
    MUST(easy);
    call->client = c;
    call->easy = easy;
    SET(easy, CURLOPT_PRIVATE, call);
    SET(easy, CURLOPT_NOSIGNAL, 1L);
    SET(easy, CURLOPT_PROXY, ""); /* not by way of http_proxy from the environment */
    SET(easy, CURLOPT_PROTOCOLS_STR, "http");
    SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(easy, CURLOPT_POST, 1L);
    SET(easy, CURLOPT_HTTPHEADER, c->headers);
    SET(easy, CURLOPT_WRITEFUNCTION, take_answer);
    SET(easy, CURLOPT_WRITEDATA, call);
    SET(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    SET(easy, CURLOPT_UPLOAD_BUFFERSIZE, 16L * 1024);
    SET(easy, CURLOPT_UNIX_SOCKET_PATH, c->socket_path);
}

static struct curl_slist *request_headers(void)
{
    struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/json");
    list = curl_slist_append(list, "Accept: application/json");
    list = curl_slist_append(list, "Expect:"); /* no extra round trip before a body */
    MUST(list);
    return list;
}

struct worker_client *worker_client_new(const struct worker_client_config *config)
{
    MUST(config->calls_max && config->socket_path);
    /* Over the Unix socket there is no TLS, and not loading it keeps a runner small. */
    MUST(curl_global_init(CURL_GLOBAL_NOTHING) == CURLE_OK);
    struct worker_client *c = must_alloc(sizeof *c);
    c->socket_path = must_strdup(config->socket_path);
    c->timeout_ms = config->timeout_ms;
    c->clock = config->clock;
    c->calls_max = config->calls_max;
    c->link = config->link;
    c->link_self = config->link_self;
    c->timer_at_ms = INT64_MAX;
    c->arena = arena_new(4096);
    c->headers = request_headers();
    c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    MUST(c->epoll_fd >= 0);
    c->multi = curl_multi_init();
    MUST(c->multi);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)c->calls_max);
    c->calls = must_alloc(c->calls_max * sizeof *c->calls);
    for (uint32_t i = c->calls_max; i-- > 0;) {
        c->calls[i].next_idle = c->idle;
        c->idle = &c->calls[i];
    }
    return c;
}

struct worker_client *worker_client_free(struct worker_client *c)
{
    if (!c)
        return NULL;
    for (uint32_t i = 0; i < c->calls_max; i++) {
        struct worker_call *call = &c->calls[i];
        if (call->in_flight)
            curl_multi_remove_handle(c->multi, call->easy);
        curl_easy_cleanup(call->easy);
        strbuf_free(&call->body);
        strbuf_free(&call->answer);
    }
    curl_multi_cleanup(c->multi);
    curl_slist_free_all(c->headers);
    close(c->epoll_fd);
    arena_free(c->arena);
    free(c->calls);
    free(c->socket_path);
    free(c);
    curl_global_cleanup();
    return NULL;
}

int worker_client_fd(const struct worker_client *c)
{
    return c->epoll_fd;
}
int64_t worker_client_deadline_ms(const struct worker_client *c)
{
    return c->timer_at_ms;
}
int64_t worker_client_ready_at_ms(const struct worker_client *c)
{
    return c->ready_at_ms;
}

bool worker_client_can_call(const struct worker_client *c)
{
    return c->in_flight < c->calls_max && (c->ready_at_ms == 0 || clock_mono_ms(c->clock) >= c->ready_at_ms);
}

static void tell_link(struct worker_client *c, bool works, const char *why)
{
    if (c->link && (c->link_lost || !works))
        c->link(c->link_self, works, why);
    c->link_lost = !works;
}

/* A core that answered, whatever it was, has been reached. */
static void back_off(struct worker_client *c, const struct worker_answer *answer)
{
    int64_t now_ms = clock_mono_ms(c->clock);
    if (now_ms < c->ready_at_ms)
        return; /* calls that were in flight together fail together: that is one failure */
    tell_link(c, answer->http_status != 0, answer->detail);
    c->backoff_ms = c->backoff_ms ? c->backoff_ms * 2 : WORKER_BACKOFF_MS_MIN;
    if (c->backoff_ms > WORKER_BACKOFF_MS_MAX)
        c->backoff_ms = WORKER_BACKOFF_MS_MAX;
    /* Half of it at random, so that a fleet does not come back in one instant. */
    int64_t spread_ms = (int64_t)(random_u64() % (uint64_t)(c->backoff_ms / 2 + 1));
    c->ready_at_ms = now_ms + c->backoff_ms - spread_ms;
}

static void call_return(struct worker_client *c, struct worker_call *call)
{
    if (call->body.cap > BUFFER_BYTES_KEPT)
        strbuf_free(&call->body);
    if (call->answer.cap > BUFFER_BYTES_KEPT)
        strbuf_free(&call->answer);
    call->in_flight = false;
    call->next_idle = c->idle;
    c->idle = call;
    c->in_flight--;
}

static void describe_refusal(struct worker_client *c, struct str body, long status, char detail[DETAIL_BYTES])
{
    const struct json *root;
    struct err err = {0};
    struct str code = STR_ABSENT, text = STR_ABSENT;
    if (json_parse(c->arena, body, &root, &err) == ERR_OK) {
        const struct json *j = json_get(root, "code");
        code = j && j->type == JSON_STRING ? j->text : code;
        j = json_get(root, "detail");
        text = j && j->type == JSON_STRING ? j->text : text;
    }
    snprintf(detail, DETAIL_BYTES, "HTTP %ld %.*s %.*s", status, STR_ARG(code), STR_ARG(text));
}

static enum err_code read_body(struct worker_client *c, const struct worker_call *call, struct str body,
                               struct worker_answer *answer, struct err *err)
{
    switch (call->answer_is) {
    case OF_TASKS:
        return worker_message_read_tasks(c->arena, body, call->claim_max, answer, err);
    case OF_POST:
        return json_parse(c->arena, body, &answer->root, err);
    case OF_RESULTS:
        break;
    }
    return worker_message_read_results(c->arena, body, answer, err);
}

static enum worker_answer_kind read_answer(struct worker_client *c, struct worker_call *call, CURLcode ended,
                                           struct worker_answer *answer, char detail[DETAIL_BYTES])
{
    if (ended != CURLE_OK) {
        snprintf(detail, DETAIL_BYTES, "%s", curl_easy_strerror(ended));
        return WORKER_AWAY;
    }
    long status = 0;
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    answer->http_status = (int)status;
    struct str body = strbuf_str(&call->answer);
    if (status != 200) {
        describe_refusal(c, body, status, detail);
        /* From 500 on core itself may not know what became of it. */
        return status >= 400 && status < 500 ? WORKER_REFUSED : WORKER_AWAY;
    }
    struct err err = {0};
    if (read_body(c, call, body, answer, &err) == ERR_OK)
        return WORKER_ANSWERED;
    snprintf(detail, DETAIL_BYTES, "unreadable answer: %s", err.detail);
    return WORKER_AWAY;
}

static void call_end(struct worker_client *c, struct worker_call *call, CURLcode ended)
{
    char detail[DETAIL_BYTES] = "";
    struct worker_answer answer = {.detail = detail};
    curl_multi_remove_handle(c->multi, call->easy);
    answer.kind = read_answer(c, call, ended, &answer, detail);
    if (answer.kind == WORKER_ANSWERED) {
        c->backoff_ms = c->ready_at_ms = 0;
        tell_link(c, true, "");
    } else {
        back_off(c, &answer);
    }
    call->answered(call->self, &answer);
    arena_reset(c->arena);
    call_return(c, call);
}

void worker_client_work(struct worker_client *c)
{
    int running, left;
    struct epoll_event events[32];
    int ready = epoll_wait(c->epoll_fd, events, LENGTH_OF(events), 0);
    for (int i = 0; i < ready; i++) {
        int what = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                   (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                   (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
        curl_multi_socket_action(c->multi, events[i].data.fd, what, &running);
    }
    if (clock_mono_ms(c->clock) >= c->timer_at_ms) {
        c->timer_at_ms = INT64_MAX;
        curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    for (CURLMsg *m; (m = curl_multi_info_read(c->multi, &left));) {
        struct worker_call *call = NULL;
        CURLcode ended = m->data.result; /* read before removing the handle frees the message */
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&call);
        call_end(c, call, ended);
    }
}

static struct worker_call *call_new(struct worker_client *c, worker_answer_fn *answered, void *self)
{
    MUST(worker_client_can_call(c));
    struct worker_call *call = c->idle;
    c->idle = call->next_idle;
    c->in_flight++;
    if (!call->easy)
        call_init(c, call);
    call->in_flight = true;
    call->answered = answered;
    call->self = self;
    call->answer_is = OF_RESULTS;
    call->answer_bytes_max = ANSWER_BYTES_BASE;
    strbuf_clear(&call->body);
    strbuf_clear(&call->answer);
    return call;
}

static struct worker_call *call_send(struct worker_call *call, const char *path, int64_t wait_ms)
{
    struct worker_client *c = call->client;
    struct strbuf url = {0};
    strbuf_addf(&url, "http://core%s", path);
    SET(call->easy, CURLOPT_URL, url.ptr);
    strbuf_free(&url);
    SET(call->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
    SET(call->easy, CURLOPT_POSTFIELDS, call->body.ptr);
    SET(call->easy, CURLOPT_TIMEOUT_MS, (long)(c->timeout_ms + wait_ms));
    MUST(curl_multi_add_handle(c->multi, call->easy) == CURLM_OK);
    return call;
}

struct worker_call *worker_client_claim(struct worker_client *c, const struct worker_claim *claim,
                                        worker_answer_fn *answered, void *self)
{
    MUST(claim->max >= 1 && claim->max <= WORKER_CLAIM_MAX);
    MUST(claim->wait_ms >= 0 && claim->wait_ms <= WORKER_WAIT_MS_MAX);
    struct worker_call *call = call_new(c, answered, self);
    call->answer_is = OF_TASKS;
    call->claim_max = claim->max;
    call->answer_bytes_max += (size_t)claim->max * ANSWER_BYTES_PER_TASK;
    worker_message_claim(claim, &call->body);
    return call_send(call, "/worker/v1/claim", claim->wait_ms);
}

static struct worker_call *call_refs(struct worker_client *c, const char *path,
                                     const struct worker_task_ref *tasks, size_t count,
                                     worker_answer_fn *answered, void *self)
{
    MUST(count >= 1 && count <= WORKER_BATCH_MAX);
    struct worker_call *call = call_new(c, answered, self);
    worker_message_refs(tasks, count, &call->body);
    return call_send(call, path, 0);
}

struct worker_call *worker_client_start(struct worker_client *c, const struct worker_task_ref *tasks,
                                        size_t count, worker_answer_fn *answered, void *self)
{
    return call_refs(c, "/worker/v1/start", tasks, count, answered, self);
}

struct worker_call *worker_client_heartbeat(struct worker_client *c, const struct worker_task_ref *tasks,
                                            size_t count, worker_answer_fn *answered, void *self)
{
    return call_refs(c, "/worker/v1/heartbeat", tasks, count, answered, self);
}

struct worker_call *worker_client_release(struct worker_client *c, const struct worker_task_ref *tasks,
                                          size_t count, worker_answer_fn *answered, void *self)
{
    return call_refs(c, "/worker/v1/release", tasks, count, answered, self);
}

struct worker_call *worker_client_finish(struct worker_client *c, const struct worker_finish *tasks,
                                         size_t count, worker_answer_fn *answered, void *self)
{
    MUST(count >= 1 && count <= WORKER_BATCH_MAX);
    struct worker_call *call = call_new(c, answered, self);
    worker_message_finish(tasks, count, &call->body);
    return call_send(call, "/worker/v1/finish", 0);
}

struct worker_call *worker_client_post(struct worker_client *c, const struct worker_post *post,
                                       worker_answer_fn *answered, void *self)
{
    struct worker_call *call = call_new(c, answered, self);
    call->answer_is = OF_POST;
    call->answer_bytes_max = post->answer_bytes_max;
    strbuf_add_str(&call->body, post->body);
    return call_send(call, post->path, post->wait_ms);
}

void worker_client_abandon(struct worker_client *c, struct worker_call *call)
{
    MUST(call->in_flight);
    curl_multi_remove_handle(c->multi, call->easy);
    call_return(c, call);
}
