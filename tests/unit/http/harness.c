#include "harness.h"

#include <errno.h>
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "case.h"
#include "base/must.h"
#include "http/problem.h"
#include "http/router.h"

#include "base/banned.h"

/* ---- server side ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct http_exchange *waiting, *held;
static pthread_t resumer;
static struct router *router;

static void answer_text(struct http_exchange *x, int status, struct str text)
{
    x->status = status;
    x->content_type = "text/plain";
    strbuf_add_str(&x->reply_body, text);
    http_answer(x);
}

static void on_echo(struct http_exchange *x)
{
    x->status = 200;
    x->content_type = "text/plain";
    strbuf_addf(&x->reply_body, "%.*s %.*s|%.*s|", STR_ARG(x->method_text), STR_ARG(x->path),
                STR_ARG(x->query));
    strbuf_add_str(&x->reply_body, x->body);
    http_answer(x);
}

static void on_canary(struct http_exchange *x)
{
    struct harness *h = x->context;
    h->canaries++;
    answer_text(x, 200, STR("canary"));
}

static void on_park(struct http_exchange *x)
{
    x->on_resume = on_echo;
    pthread_mutex_lock(&lock);
    x->data = waiting;
    waiting = x;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void on_park_self(struct http_exchange *x)
{
    x->on_resume = on_echo;
    http_resume(x);
}

static void hold(struct http_exchange *x)
{
    pthread_mutex_lock(&lock);
    held = x;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Set while the end of a round sends answers: those are sent by that thread. */
static _Thread_local bool answering;

static void on_released(struct http_exchange *x)
{
    ((struct harness *)x->context)->answered_by_others += answering;
    on_echo(x);
}

static void on_hold(struct http_exchange *x)
{
    x->on_resume = on_released;
    hold(x);
}

static void answer_timeout(struct http_exchange *x)
{
    struct err why;
    (void)err_set(&why, ERR_EXEC_TIMEOUT, "too late");
    problem_reply(x, &why);
    http_answer(x);
}

static void on_hold_with_timeout(struct http_exchange *x)
{
    x->on_timeout = answer_timeout;
    x->timeout_at_ms = clock_mono_ms(&clock_system) + 30;
    on_hold(x);
}

static void on_big(struct http_exchange *x)
{
    x->status = 200;
    x->content_type = "application/octet-stream";
    strbuf_reserve(&x->reply_body, BIG_BYTES);
    memset(x->reply_body.ptr, 'b', BIG_BYTES);
    x->reply_body.len = BIG_BYTES;
    http_answer(x);
}

static void on_tick(struct http_exchange *x)
{
    struct harness *h = x->context;
    h->ticks++;
    uintptr_t written = (uintptr_t)x->data;
    if (!http_stream_write(x, str_of(h->stream_piece)))
        return;
    x->data = (void *)++written;
    if (h->stream_pieces_max && written == h->stream_pieces_max)
        http_stream_end(x);
}

static void on_stream_end(struct http_exchange *x)
{
    struct harness *h = x->context;
    h->stream_ends++;
}

static void on_poll_tick(struct http_exchange *x)
{
    struct harness *h = x->context;
    h->ticks++;
    if (!h->lets_go && !http_hold_is_over(x))
        return;
    x->status = 200;
    x->content_type = "text/plain";
    strbuf_add_text(&x->reply_body, h->lets_go ? "let go" : "over");
    http_answer(x);
}

static void on_poll(struct http_exchange *x)
{
    struct harness *h = x->context;
    x->on_stream_tick = on_poll_tick;
    x->on_stream_end = on_stream_end;
    http_hold(x, h->ping_ms);
}

static void on_stream(struct http_exchange *x)
{
    struct harness *h = x->context;
    x->status = 200;
    x->content_type = "text/event-stream";
    x->on_stream_tick = on_tick;
    x->on_stream_end = on_stream_end;
    http_stream_begin(x, h->ping_ms);
    MUST(http_stream_write(x, STR("hello\n")));
}

static void on_headers(struct http_exchange *x)
{
    http_reply_header(x, "Location", STR("/somewhere"));
    http_reply_header(x, "X-Evil", STR("a\r\nSet-Cookie: b"));
    http_reply_header(x, "Cache-Control", STR("max-age=60"));
    x->status = 201;
    http_answer(x);
}

static void on_no_content(struct http_exchange *x)
{
    x->status = 204;
    x->content_type = "text/plain";
    strbuf_add_text(&x->reply_body, "must not be sent");
    http_answer(x);
}

static void on_close(struct http_exchange *x)
{
    x->close_after = true;
    on_echo(x);
}

struct route_info {
    void (*serve)(struct http_exchange *x);
};
#define H(f) (&(const struct route_info){f})

static const struct route routes[] = {
    {HTTP_GET, "/echo", "echoGet", H(on_echo)},
    {HTTP_POST, "/echo", "echoPost", H(on_echo)},
    {HTTP_OPTIONS, "/echo", "echoOptions", H(on_echo)},
    {HTTP_GET, "/v1/jobs/{job_id}", "jobGet", H(on_echo)},
    {HTTP_GET, "/canary", "canary", H(on_canary)},
    {HTTP_GET, "/park", "parkGet", H(on_park)},
    {HTTP_POST, "/park", "park", H(on_park)},
    {HTTP_GET, "/park-self", "parkSelf", H(on_park_self)},
    {HTTP_POST, "/hold", "holdPost", H(on_hold)},
    {HTTP_GET, "/hold", "hold", H(on_hold)},
    {HTTP_GET, "/timeout", "timeout", H(on_hold_with_timeout)},
    {HTTP_GET, "/big", "big", H(on_big)},
    {HTTP_GET, "/stream", "stream", H(on_stream)},
    {HTTP_GET, "/poll", "poll", H(on_poll)},
    {HTTP_GET, "/headers", "headers", H(on_headers)},
    {HTTP_GET, "/no-content", "noContent", H(on_no_content)},
    {HTTP_GET, "/close", "close", H(on_close)},
};

static void answer_problem(struct http_exchange *x, enum err_code code)
{
    struct err why;
    (void)err_set(&why, code, "%s", "");
    problem_reply(x, &why);
    http_answer(x);
}

static void on_head(struct http_exchange *x)
{
    if (http_header(x, "X-Refuse").ptr)
        answer_problem(x, ERR_AUTH_INVALID_CREDENTIALS);
}

static void on_request(struct http_exchange *x)
{
    struct harness *h = x->context;
    h->requests++;
    h->rounds_open++;
    if (x->query.len && h->ordered < ORDER_MAX)
        h->order[h->ordered++] = x->query.ptr[0];
    struct route_match match;
    router_find(router, x->method, x->path, &match);
    if (x->body_too_large) {
        answer_problem(x, ERR_REQUEST_PAYLOAD_TOO_LARGE);
    } else if (match.route) {
        match.route->info->serve(x);
    } else if (match.path_known) {
        http_reply_header(x, "Allow", str_of(match.allow));
        answer_problem(x, ERR_REQUEST_METHOD_NOT_ALLOWED);
    } else {
        answer_problem(x, ERR_REQUEST_ROUTE_NOT_FOUND);
    }
}

static void on_bad_request(struct http_exchange *x, int status, const struct err *why)
{
    struct harness *h = x->context;
    h->bad_requests++;
    h->last_bad_status = status;
    problem_reply_status(x, status, why);
}

static void on_done(struct http_exchange *x)
{
    struct harness *h = x->context;
    h->dones++;
}

static void *resume_waiting(void *arg)
{
    struct harness *h = arg;
    pthread_mutex_lock(&lock);
    while (!h->stop_resumer) {
        struct http_exchange *first = waiting;
        waiting = NULL;
        pthread_mutex_unlock(&lock);
        bool some = first != NULL;
        while (first) {
            struct http_exchange *next = first->data;
            http_resume(first);
            first = next;
        }
        if (some)
            http_wake(h->server);
        pthread_mutex_lock(&lock);
        while (!waiting && !h->stop_resumer)
            pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void answer_at_end(struct harness *h)
{
    uint32_t count = atomic_exchange(&h->answered_at_end_count, 0);
    if (!count)
        return;
    for (uint32_t i = 0; i < count; i++)
        http_resume(h->answered_at_end[i]);
    answering = true;
    http_answer_resumed(h->server);
    answering = false;
}

static void on_round_end(void *context)
{
    struct harness *h = context;
    if (h->rounds_open)
        answer_at_end(h);
    int64_t ms = h->rounds_open ? atomic_exchange(&h->next_round_waits_ms, 0) : 0;
    h->rounds_open = 0;
    if (!ms)
        return;
    if (!h->waits_unsaid)
        http_round_waits();
    h->waits++;
    usleep((useconds_t)ms * 1000);
    h->waits--;
}

bool harness_over_tls(void)
{
    return getenv("WEIR_HTTP_TEST_TLS") != NULL;
}

static void open_tls(struct harness *h, bool mutual)
{
    char cert[CERTS_PATH_MAX], key[CERTS_PATH_MAX];
    struct err err;
    h->certs = must_alloc(sizeof *h->certs);
    certs_open(h->certs);
    certs_make(h->certs, "ca", NULL, 86400);
    certs_make(h->certs, "server", "ca", 86400);
    memcpy(cert, certs_path(h->certs, "server", ".pem"), sizeof cert);
    memcpy(key, certs_path(h->certs, "server", ".key"), sizeof key);
    const char *ca = certs_path(h->certs, "ca", ".pem");
    struct tls_files files = {.cert = cert, .key = key, .client_ca = mutual ? ca : NULL};
    MUST(tls_open(&files, &h->tls, &err) == ERR_OK);
    h->client_side = SSL_CTX_new(TLS_client_method());
    MUST(h->client_side && SSL_CTX_load_verify_file(h->client_side, ca) == 1);
    SSL_CTX_set_verify(h->client_side, SSL_VERIFY_PEER, NULL);
}

static struct harness *start(uint32_t threads, const struct http_limits *limits, bool mutual)
{
    static _Atomic uint32_t number;
    struct harness *h = must_alloc(sizeof *h);
    snprintf(h->unix_path, sizeof h->unix_path, "/tmp/weir-http-%d-%u.sock", getpid(), number++);
    h->stream_piece = "piece\n";
    signal(SIGPIPE, SIG_IGN); /* OpenSSL's own sockets, which clients use, write with write() */
    open_tls(h, mutual);
    struct http_config config = {.listen_host = "127.0.0.1",
                                 .tls_host = "127.0.0.1",
                                 .tls = h->tls,
                                 .unix_path = h->unix_path,
                                 .threads = threads,
                                 .clock = &clock_system,
                                 .context = h,
                                 .on_head = on_head,
                                 .on_request = on_request,
                                 .on_bad_request = on_bad_request,
                                 .on_done = on_done,
                                 .on_round_end = on_round_end};
    if (limits)
        config.limits = *limits;
    router = router_new(routes, LENGTH_OF(routes));
    struct err err;
    MUST(http_server_start(&config, &h->server, &err) == ERR_OK);
    h->port = http_server_port(h->server);
    h->tls_port = http_server_tls_port(h->server);
    MUST(pthread_create(&resumer, NULL, resume_waiting, h) == 0);
    return h;
}

struct harness *harness_start(uint32_t threads, const struct http_limits *limits)
{
    return start(threads, limits, false);
}

struct harness *harness_start_mutual(uint32_t threads, const struct http_limits *limits)
{
    return start(threads, limits, true);
}

void harness_stop(struct harness *h)
{
    http_server_drain(h->server);
    MUST(harness_await(busy_is, h, 0));
    harness_stop_at_once(h);
}

void harness_stop_at_once(struct harness *h)
{
    pthread_mutex_lock(&lock);
    h->stop_resumer = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(resumer, NULL);
    http_server_stop(h->server);
    tls_close(h->tls);
    SSL_CTX_free(h->client_side);
    certs_close(h->certs);
    free(h->certs);
    router = router_free(router);
    waiting = held = NULL;
    free(h);
}

struct http_exchange *harness_held(struct harness *h)
{
    (void)h;
    pthread_mutex_lock(&lock);
    while (!held)
        pthread_cond_wait(&changed, &lock);
    struct http_exchange *x = held;
    held = NULL;
    pthread_mutex_unlock(&lock);
    return x;
}

void harness_release(struct harness *h, struct http_exchange *x)
{
    http_resume(x);
    http_wake(h->server);
}

bool harness_await(bool (*holds)(struct harness *h, uint32_t n), struct harness *h, uint32_t n)
{
    int64_t until = clock_mono_ms(&clock_system) + PATIENCE_MS;
    while (!holds(h, n)) {
        if (clock_mono_ms(&clock_system) > until)
            return false;
        struct timespec pause = {0, 200000}; /* the counters ring no bell */
        nanosleep(&pause, NULL);
    }
    return true;
}

bool busy_is(struct harness *h, uint32_t n)
{
    return http_server_busy(h->server) == n;
}
bool connections_are(struct harness *h, uint32_t n)
{
    return http_server_connections(h->server) == n;
}
bool held_bytes_are(struct harness *h, uint32_t n)
{
    return http_server_held_bytes(h->server) == n;
}
bool holds_at_least(struct harness *h, uint32_t n)
{
    return http_server_held_bytes(h->server) >= n;
}
bool dones_are(struct harness *h, uint32_t n)
{
    return h->dones == n;
}
bool rounds_open_are(struct harness *h, uint32_t n)
{
    return h->rounds_open == n;
}
bool waits_are(struct harness *h, uint32_t n)
{
    return h->waits == n;
}

bool ticks_at_least(struct harness *h, uint32_t n)
{
    return h->ticks >= n;
}
bool stream_ends_are(struct harness *h, uint32_t n)
{
    return h->stream_ends == n;
}

/* ---- client side ---- */

static struct client connect_to(uint16_t port)
{
    struct client c = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUST(c.fd >= 0 && connect(c.fd, (struct sockaddr *)&to, sizeof to) == 0);
    int on = 1;
    setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return c;
}

struct client client_plain(const struct harness *h)
{
    return connect_to(h->port);
}

struct client client_tls(const struct harness *h, SSL_CTX *as)
{
    struct client c = connect_to(h->tls_port);
    c.ssl = SSL_new(as ? as : h->client_side);
    MUST(c.ssl && SSL_set_fd(c.ssl, c.fd) == 1 && SSL_set1_host(c.ssl, "localhost") == 1);
    (void)SSL_connect(c.ssl); /* whether it worked shows in what follows */
    return c;
}

struct client client_tcp(const struct harness *h)
{
    return harness_over_tls() ? client_tls(h, NULL) : client_plain(h);
}

struct client client_unix(const struct harness *h)
{
    struct client c = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    memcpy(to.sun_path, h->unix_path, strlen(h->unix_path));
    MUST(c.fd >= 0 && connect(c.fd, (struct sockaddr *)&to, sizeof to) == 0);
    return c;
}

void client_close(struct client *c)
{
    SSL_free(c->ssl);
    c->ssl = NULL;
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    strbuf_free(&c->in);
}

void client_send(struct client *c, const void *bytes, size_t len)
{
    const char *p = bytes;
    while (len) {
        int some = len < 65536 ? (int)len : 65536;
        ssize_t n = c->ssl ? SSL_write(c->ssl, p, some) : send(c->fd, p, len, MSG_NOSIGNAL);
        if (n < 0 && !c->ssl && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        p += n;
        len -= (size_t)n;
    }
}

void client_text(struct client *c, const char *text)
{
    client_send(c, text, strlen(text));
}

bool client_send_and_wait(struct client *c, const void *bytes, size_t len)
{
    if (send(c->fd, bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
        return false;
    int64_t until = clock_mono_ms(&clock_system) + PATIENCE_MS;
    for (;;) {
        int unread = 0;
        MUST(ioctl(c->fd, SIOCOUTQ, &unread) == 0); /* Unix sockets: what the peer has not read */
        if (unread <= 0)
            return true;
        struct pollfd p = {c->fd, 0, 0}; /* closed both ways, not just done sending */
        if (poll(&p, 1, 0) > 0)
            return false;
        MUST(clock_mono_ms(&clock_system) < until);
        sched_yield();
    }
}

static ssize_t receive(struct client *c, char *to, int size)
{
    struct pollfd p = {c->fd, POLLIN, 0};
    if (!c->ssl || !SSL_pending(c->ssl))
        MUST(poll(&p, 1, PATIENCE_MS) > 0); /* an answer that never comes */
    return c->ssl ? SSL_read(c->ssl, to, size) : recv(c->fd, to, (size_t)size, 0);
}

bool client_receive(struct client *c)
{
    char buffer[16384];
    ssize_t n = receive(c, buffer, sizeof buffer);
    if (n <= 0)
        return false;
    strbuf_add(&c->in, buffer, (size_t)n);
    return true;
}

static void take(struct client *c, size_t n)
{
    if (!n)
        return;
    memmove(c->in.ptr, c->in.ptr + n, c->in.len - n);
    c->in.len -= n;
    c->in.ptr[c->in.len] = 0;
}

const char *answer_header(const struct answer *a, const char *name, char out[256])
{
    size_t n = strlen(name);
    for (const char *line = strstr(a->head, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, n) != 0 || line[2 + n] != ':')
            continue;
        const char *value = line + 2 + n + 2, *end = strstr(value, "\r\n");
        MUST(end && end - value < 256);
        memcpy(out, value, (size_t)(end - value));
        out[end - value] = 0;
        return out;
    }
    return NULL;
}

static struct answer take_head(struct client *c)
{
    struct answer a = {0};
    char *end;
    while (!c->in.len || !(end = strstr(c->in.ptr, "\r\n\r\n")))
        if (!client_receive(c))
            return a;
    size_t len = (size_t)(end - c->in.ptr) + 4;
    MUST(len < sizeof a.head && memcmp(c->in.ptr, "HTTP/1.1 ", 9) == 0);
    memcpy(a.head, c->in.ptr, len);
    int64_t status;
    MUST(str_to_int((struct str){a.head + 9, 3}, 100, 599, &status));
    a.status = (int)status;
    take(c, len);
    char value[256];
    const char *connection = answer_header(&a, "Connection", value);
    a.closes = connection && strcmp(connection, "close") == 0;
    return a;
}

static bool have(struct client *c, size_t n)
{
    while (c->in.len < n)
        if (!client_receive(c))
            return false;
    return true;
}

static void keep_body(struct answer *a, const char *bytes, size_t n)
{
    size_t room = sizeof a->body - 1;
    size_t kept = a->body_len < room ? room - a->body_len : 0;
    memcpy(a->body + (a->body_len < room ? a->body_len : room), bytes, n < kept ? n : kept);
    a->body_len += n;
}

static void take_chunks(struct client *c, struct answer *a)
{
    for (;;) {
        char *end;
        while (!c->in.len || !(end = strstr(c->in.ptr, "\r\n")))
            MUST(client_receive(c));
        size_t size = strtoul(c->in.ptr, NULL, 16);
        take(c, (size_t)(end - c->in.ptr) + 2);
        MUST(have(c, size + 2));
        keep_body(a, c->in.ptr, size);
        take(c, size + 2);
        if (!size)
            return;
    }
}

struct answer client_answer(struct client *c)
{
    struct answer a = take_head(c);
    char value[256];
    const char *length = answer_header(&a, "Content-Length", value);
    int64_t n = 0;
    if (length) {
        MUST(str_to_int(str_of(length), 0, INT64_MAX, &n));
        if (!have(c, (size_t)n))
            a.status = 0;
        keep_body(&a, c->in.ptr ? c->in.ptr : "", c->in.len < (size_t)n ? c->in.len : (size_t)n);
        if (a.status)
            take(c, (size_t)n);
    } else if (a.status && answer_header(&a, "Transfer-Encoding", value)) {
        take_chunks(c, &a);
    }
    return a;
}

struct answer client_answer_to_head(struct client *c)
{
    return take_head(c);
}

bool client_at_end(struct client *c)
{
    if (c->in.len)
        return false;
    char byte;
    return receive(c, &byte, 1) <= 0;
}

int harness_up(void **state)
{
    *state = harness_start(2, NULL);
    return 0;
}

int harness_down(void **state)
{
    harness_stop(*state);
    return 0;
}

void assert_answer(struct client *c, int status, const char *body)
{
    struct answer a = client_answer(c);
    assert_int_equal(a.status, status);
    assert_string_equal(a.body, body);
}
