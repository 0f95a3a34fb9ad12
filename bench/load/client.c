#include "load/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/must.h"
#include "load/secure.h"

#include "base/banned.h"

enum {
    CONNECTIONS_MAX = 1200,
    EVENTS_PER_ROUND = 256,
    READ_BYTES = 16384,
    SILENCE_MAX_MS = 60000, /* twice the longest long poll */
};

struct conn {
    struct loop *loop;
    int fd;
    SSL *ssl;     /* NULL: plain */
    bool waiting; /* a request is under way */
    struct str request;
    size_t sent;
    int64_t sent_ns;
    struct strbuf in;
    size_t head_len, body_len; /* 0 until the head is complete */
    int status;
    answer_fn on_answer;
    void *self;
};

struct loop {
    int epoll_fd;
    struct sockaddr_in address;
    struct secure secure;
    struct conn *conns[CONNECTIONS_MAX];
    uint32_t conn_count;
    bool stopped;
    int64_t wake_ns; /* 0: none */
    void (*wake)(void *self);
    void *wake_self;
};

int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void give_up(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("weir-load: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static struct sockaddr_in address_of(const char *url)
{
    struct str rest = str_of(url);
    if (str_starts(rest, "http://") || str_starts(rest, "https://"))
        rest = str_of(strstr(url, "://") + 3);
    struct str host = str_cut(&rest, ':'), port_text = str_cut(&rest, '/');
    struct sockaddr_in address = {.sin_family = AF_INET};
    char text[INET_ADDRSTRLEN] = "";
    int64_t port;
    if (host.len < sizeof text)
        memcpy(text, host.ptr, host.len);
    if (inet_pton(AF_INET, text, &address.sin_addr) != 1 || !str_to_int(port_text, 1, 65535, &port))
        give_up("the url must be http://IPV4:PORT, not %s", url);
    address.sin_port = htons((uint16_t)port);
    return address;
}

struct loop *loop_new(const char *url)
{
    struct loop *l = must_alloc(sizeof *l);
    l->address = address_of(url);
    if (str_starts(str_of(url), "https://"))
        secure_open(&l->secure);
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    MUST(l->epoll_fd >= 0);
    return l;
}

void loop_free(struct loop *l)
{
    for (uint32_t i = 0; i < l->conn_count; i++) {
        secure_end(l->conns[i]->ssl);
        if (l->conns[i]->fd >= 0)
            close(l->conns[i]->fd);
        strbuf_free(&l->conns[i]->in);
        free(l->conns[i]);
    }
    secure_close(&l->secure);
    close(l->epoll_fd);
    free(l);
}

static void connect_now(struct conn *c)
{
    struct loop *l = c->loop;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&l->address, sizeof l->address) != 0 ||
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        give_up("cannot connect: %s", strerror(errno));
    struct epoll_event interest = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    MUST(epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, c->fd, &interest) == 0);
    if (l->secure.context)
        c->ssl = secure_begin(&l->secure, c->fd);
}

struct conn *loop_connect(struct loop *l, answer_fn on_answer, void *self)
{
    MUST(l->conn_count < CONNECTIONS_MAX);
    struct conn *c = must_alloc(sizeof *c);
    *c = (struct conn){.loop = l, .on_answer = on_answer, .self = self};
    connect_now(c);
    l->conns[l->conn_count++] = c;
    return c;
}

static void flush(struct conn *c)
{
    while (c->sent < c->request.len) {
        const char *from = c->request.ptr + c->sent;
        size_t left = c->request.len - c->sent;
        ssize_t n =
            c->ssl ? secure_send(c->ssl, from, left) : send(c->fd, from, left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0 && errno != EINTR)
            give_up("the server closed a connection: %s", strerror(errno));
        c->sent += n > 0 ? (size_t)n : 0;
    }
}

void conn_send(struct conn *c, struct str request)
{
    MUST(!c->waiting);
    c->request = request;
    c->sent = 0;
    c->waiting = true;
    c->sent_ns = now_ns();
    flush(c);
}

void conn_hang_up(struct conn *c)
{
    MUST(!c->waiting && c->fd >= 0);
    c->ssl = secure_end(c->ssl);
    close(c->fd); /* epoll forgets it by itself */
    c->fd = -1;
}

void conn_settle(struct conn *c)
{
    if (c->ssl)
        secure_settle(c->ssl, c->fd);
}

void conn_renew(struct conn *c)
{
    /* By a reset, which leaves no port behind in TIME_WAIT: there are not enough of them. */
    const struct linger at_once = {.l_onoff = 1};
    MUST(setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    conn_hang_up(c);
    connect_now(c);
}

void loop_resume(struct loop *l)
{
    l->secure.resume = true;
}

bool conn_resumed(struct conn *c)
{
    return c->ssl && SSL_session_reused(c->ssl);
}

/* Status and length out of a complete head. */
static void read_head(struct conn *c, struct str head)
{
    int64_t number;
    struct str line = str_cut(&head, '\n');
    str_cut(&line, ' ');
    if (!str_to_int(str_cut(&line, ' '), 100, 599, &number))
        give_up("an answer without a status");
    c->status = (int)number;
    while (head.len) {
        line = str_cut(&head, '\n');
        if (!str_equal_nocase(str_cut(&line, ':'), STR("Content-Length")))
            continue;
        if (line.len && line.ptr[line.len - 1] == '\r')
            line.len--;
        if (!str_to_int(str_trim(line), 0, 1 << 30, &number))
            give_up("an answer with a bad Content-Length");
        c->body_len = (size_t)number;
        return;
    }
    give_up("an answer without Content-Length");
}

/* True once a whole answer stands in c->in. */
static bool answer_is_complete(struct conn *c)
{
    if (!c->head_len) {
        const char *end = memmem(c->in.ptr, c->in.len, "\r\n\r\n", 4);
        if (!end)
            return false;
        c->head_len = (size_t)(end - c->in.ptr) + 4;
        read_head(c, (struct str){c->in.ptr, c->head_len});
    }
    return c->in.len >= c->head_len + c->body_len;
}

static void take_answer(struct conn *c)
{
    if (c->in.len > c->head_len + c->body_len)
        give_up("more bytes than one answer");
    const struct answer a = {c->status, {c->in.ptr + c->head_len, c->body_len}, c->sent_ns, now_ns()};
    /* The callback may send, so the state is made fresh first; the bytes stay where they are. */
    c->waiting = false;
    c->head_len = c->body_len = 0;
    c->in.len = 0;
    c->on_answer(c, &a, c->self);
}

static void receive(struct conn *c)
{
    for (;;) {
        strbuf_reserve(&c->in, READ_BYTES);
        size_t room = c->in.cap - c->in.len - 1;
        char *to = c->in.ptr + c->in.len;
        ssize_t n = c->ssl ? secure_recv(c->ssl, to, room) : recv(c->fd, to, room, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0)
            give_up("the server closed a connection: %s", n ? strerror(errno) : "end of stream");
        c->in.len += (size_t)n;
        if (!c->waiting)
            give_up("an answer nobody asked for: %.*s", (int)c->in.len, c->in.ptr);
        if (answer_is_complete(c)) {
            take_answer(c);
            return; /* the next answer rings again: its request has only just been sent */
        }
        if (!c->ssl && (size_t)n < room) /* one read of TLS is one record: there may be more */
            return;
    }
}

static int round_timeout_ms(const struct loop *l, int64_t until_ns)
{
    int64_t until = l->wake_ns && (!until_ns || l->wake_ns < until_ns) ? l->wake_ns : until_ns;
    if (!until)
        return SILENCE_MAX_MS;
    int64_t ms = (until - now_ns() + 999999) / 1000000;
    return ms < 0 ? 0 : ms < SILENCE_MAX_MS ? (int)ms : SILENCE_MAX_MS;
}

static void wake_if_due(struct loop *l)
{
    if (!l->wake_ns || now_ns() < l->wake_ns)
        return;
    l->wake_ns = 0;
    l->wake(l->wake_self);
}

void loop_run(struct loop *l, int64_t until_ns)
{
    struct epoll_event events[EVENTS_PER_ROUND];
    l->stopped = false;
    while (!l->stopped && (!until_ns || now_ns() < until_ns)) {
        int timeout_ms = round_timeout_ms(l, until_ns);
        int n = epoll_wait(l->epoll_fd, events, EVENTS_PER_ROUND, timeout_ms);
        if (n == 0 && timeout_ms == SILENCE_MAX_MS)
            give_up("no answer for %d s", SILENCE_MAX_MS / 1000);
        for (int i = 0; i < n && !l->stopped; i++) {
            struct conn *c = events[i].data.ptr;
            if (c->waiting && c->sent < c->request.len)
                flush(c);
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                receive(c);
        }
        wake_if_due(l);
    }
}

void loop_stop(struct loop *l)
{
    l->stopped = true;
}

void loop_wake_at(struct loop *l, int64_t at_ns, void (*fn)(void *self), void *self)
{
    MUST(!l->wake_ns);
    l->wake_ns = at_ns;
    l->wake = fn;
    l->wake_self = self;
}
