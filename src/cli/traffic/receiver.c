#include "cli/traffic/receiver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"

#include "base/banned.h"

enum { EVENTS_A_ROUND = 64, READ_BYTES = 16384, BACKLOG = 64 };

struct connection {
    int fd;
    struct receiver_port *port;
    TAILQ_ENTRY(connection) link; /* a listener is in no list */
    struct strbuf in;
    int64_t answer_at_ms; /* 0: no answer is owed yet */
    bool mute;            /* hangs: reads until the sender gives up */
    int status;
};

struct receiver_port {
    struct receiver *receiver;
    struct connection listener;
    enum receiver_behaviour behaviour;
    void *owner;
    TAILQ_ENTRY(receiver_port) link;
    char url[RECEIVER_URL_MAX];
};

struct receiver {
    receiver_fn *arrived;
    int epoll_fd;
    TAILQ_HEAD(, receiver_port) ports;
    TAILQ_HEAD(, connection) connections;
    int count;
};

/* --- addresses --------------------------------------------------------------------------------------- */

/* 127.1.1.1 to 127.250.254.254: none of them is a name's or a network's, and 16 million are enough. */
static uint32_t address_of(uint64_t number)
{
    uint32_t low = (uint32_t)(number % 254), middle = (uint32_t)(number / 254 % 254),
             high = (uint32_t)(number / 254 / 254 % 250);
    return UINT32_C(127) << 24 | (high + 1) << 16 | (middle + 1) << 8 | (low + 1);
}

static int listen_on(uint32_t address, uint16_t *ret_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, BACKLOG) ||
        getsockname(fd, (struct sockaddr *)&a, &len)) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    *ret_port = ntohs(a.sin_port);
    return fd;
}

static bool watch(struct receiver *r, struct connection *c)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, c->fd, &ev) == 0;
}

struct receiver *receiver_new(receiver_fn *arrived)
{
    struct receiver *r = must_alloc(sizeof *r);
    r->arrived = arrived;
    TAILQ_INIT(&r->ports);
    TAILQ_INIT(&r->connections);
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    MUST(r->epoll_fd >= 0);
    return r;
}

struct receiver_port *receiver_open(struct receiver *r, uint64_t number, enum receiver_behaviour behaviour,
                                    void *owner)
{
    uint32_t a = address_of(number);
    uint16_t port = 0;
    int fd = listen_on(a, &port);
    if (fd < 0)
        return NULL;
    struct receiver_port *p = must_alloc(sizeof *p);
    p->receiver = r;
    p->behaviour = behaviour;
    p->owner = owner;
    p->listener = (struct connection){.fd = fd, .port = p};
    snprintf(p->url, sizeof p->url, "http://%u.%u.%u.%u:%u/", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255,
             port);
    TAILQ_INSERT_TAIL(&r->ports, p, link);
    MUST(watch(r, &p->listener));
    return p;
}

const char *receiver_url(const struct receiver_port *p)
{
    return p->url;
}

static void drop(struct receiver *r, struct connection *c)
{
    TAILQ_REMOVE(&r->connections, c, link);
    r->count--;
    close(c->fd);
    strbuf_free(&c->in);
    free(c);
}

struct receiver_port *receiver_close(struct receiver_port *p)
{
    if (!p)
        return NULL;
    struct receiver *r = p->receiver;
    for (struct connection *c = TAILQ_FIRST(&r->connections), *next; c; c = next) {
        next = TAILQ_NEXT(c, link);
        if (c->port == p)
            drop(r, c);
    }
    TAILQ_REMOVE(&r->ports, p, link);
    close(p->listener.fd);
    free(p);
    return NULL;
}

struct receiver *receiver_free(struct receiver *r)
{
    if (!r)
        return NULL;
    for (struct receiver_port *p; (p = TAILQ_FIRST(&r->ports));)
        receiver_close(p);
    close(r->epoll_fd);
    free(r);
    return NULL;
}

int receiver_fd(const struct receiver *r)
{
    return r->epoll_fd;
}

static void accept_all(struct receiver *r, const struct connection *listener)
{
    while (r->count < RECEIVER_CONNECTIONS_MAX) {
        struct sockaddr_in peer;
        socklen_t len = sizeof peer;
        int fd = accept4(listener->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        struct connection *c = must_alloc(sizeof *c);
        c->fd = fd;
        c->port = listener->port;
        TAILQ_INSERT_TAIL(&r->connections, c, link);
        r->count++;
        if (!watch(r, c))
            drop(r, c);
    }
}

/* --- requests --------------------------------------------------------------------------------------- */

static struct str header_value(struct str head, const char *name)
{
    str_cut(&head, '\n');
    while (head.len) {
        struct str line = str_cut(&head, '\n');
        struct str key = str_cut(&line, ':');
        if (line.len && line.ptr[line.len - 1] == '\r')
            line.len--;
        if (str_equal_nocase(key, str_of(name)))
            return str_trim(line);
    }
    return STR_ABSENT;
}

/* Bytes of the first whole request of the buffer; 0: not all there; -1: none of ours. */
static int64_t request_bytes(struct str in, size_t *ret_head)
{
    const char *end = in.len ? memmem(in.ptr, in.len, "\r\n\r\n", 4) : NULL;
    int64_t body = 0;
    if (!end)
        return in.len > READ_BYTES ? -1 : 0;
    *ret_head = (size_t)(end - in.ptr) + 4;
    struct str head = {in.ptr, *ret_head};
    struct str length = header_value(head, "Content-Length");
    if (!str_starts(in, "POST ") || header_value(head, "Transfer-Encoding").ptr ||
        (length.ptr && !str_to_int(length, 0, RECEIVER_REQUEST_BYTES_MAX, &body)))
        return -1;
    int64_t all = (int64_t)*ret_head + body;
    return all > RECEIVER_REQUEST_BYTES_MAX ? -1 : (int64_t)in.len >= all ? all : 0;
}

/* The time is read here and not before: a slow receiver must be slow from the arrival on, however long
 * this process was kept waiting between. */
static void decide(struct connection *c, struct receiver_history before)
{
    bool first = before.attempts == 0;
    c->answer_at_ms = clock_mono_ms(&clock_system);
    c->status = 200;
    switch (c->port->behaviour) {
    case RECEIVER_OK:
        return;
    case RECEIVER_HANGS:
        c->mute = first;
        return;
    case RECEIVER_FAILS_ONCE:
        c->status = first ? 500 : 200;
        return;
    case RECEIVER_FAILS:
        c->status = before.first_message ? 500 : 200;
        return;
    case RECEIVER_SLOW:
        c->answer_at_ms += RECEIVER_SLOW_MS;
        return;
    case RECEIVER_BEHAVIOUR_COUNT:
        break;
    }
    must_fail("every behaviour is listed", __FILE__, __LINE__, __func__);
}

static void hand_over(struct receiver *r, struct connection *c, size_t head_bytes, size_t all)
{
    struct str head = {c->in.ptr, head_bytes};
    struct signed_message m = {
        .id = header_value(head, "webhook-id"),
        .timestamp = header_value(head, "webhook-timestamp"),
        .signature = header_value(head, "webhook-signature"),
        .body = {c->in.ptr + head_bytes, all - head_bytes},
    };
    decide(c, r->arrived(c->port->owner, &m));
    memmove(c->in.ptr, c->in.ptr + all, c->in.len - all);
    c->in.len -= all;
}

/* False: the connection is over. */
static bool take_requests(struct receiver *r, struct connection *c)
{
    size_t head_bytes = 0;
    if (c->answer_at_ms)
        return c->in.len <= RECEIVER_REQUEST_BYTES_MAX; /* the next one waits for its turn */
    int64_t all = request_bytes(strbuf_str(&c->in), &head_bytes);
    if (all > 0)
        hand_over(r, c, head_bytes, (size_t)all);
    if (all >= 0)
        return true;
    static const char bad[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    (void)!send(c->fd, bad, sizeof bad - 1, MSG_NOSIGNAL);
    return false;
}

static bool answer(struct connection *c)
{
    char text[128];
    int len = snprintf(text, sizeof text, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\n\r\n", c->status,
                       c->status == 200 ? "OK" : "Internal Server Error");
    c->answer_at_ms = 0;
    return send(c->fd, text, (size_t)len, MSG_NOSIGNAL) == len;
}

static bool read_bytes(struct connection *c)
{
    char bytes[READ_BYTES];
    for (;;) {
        ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        if (n == 0)
            return false;
        if (c->in.len + (size_t)n > RECEIVER_REQUEST_BYTES_MAX + READ_BYTES)
            return false;
        strbuf_add(&c->in, bytes, (size_t)n);
    }
}

/* Answers that are due, and the requests that waited behind them. */
static void answer_due(struct receiver *r)
{
    int64_t now_ms = clock_mono_ms(&clock_system);
    for (struct connection *c = TAILQ_FIRST(&r->connections), *next; c; c = next) {
        next = TAILQ_NEXT(c, link);
        bool alive = true;
        while (alive && c->answer_at_ms && !c->mute && c->answer_at_ms <= now_ms)
            alive = answer(c) && take_requests(r, c);
        if (!alive)
            drop(r, c);
    }
}

void receiver_work(struct receiver *r)
{
    struct epoll_event events[EVENTS_A_ROUND];
    int n = epoll_wait(r->epoll_fd, events, EVENTS_A_ROUND, 0);
    for (int i = 0; i < n; i++) {
        struct connection *c = events[i].data.ptr;
        if (c == &c->port->listener)
            accept_all(r, c);
        else if (!read_bytes(c) || !take_requests(r, c))
            drop(r, c);
    }
    answer_due(r);
}
