#include "cli/simulate/receiver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/must.h"

#include "base/banned.h"

enum { EVENTS_A_ROUND = 64, READ_BYTES = 16384, BACKLOG = 1024 };

struct connection {
    int fd;
    enum receiver_behaviour behaviour;
    TAILQ_ENTRY(connection) link;
    struct strbuf in;
    int64_t answer_at_ms; /* 0: no answer is owed yet */
    bool mute;            /* hangs: reads until the sender gives up */
    int status;
};

struct receiver {
    receiver_fn *arrived;
    void *self;
    int epoll_fd;
    struct connection listeners[RECEIVER_BEHAVIOUR_COUNT];
    int ports[RECEIVER_BEHAVIOUR_COUNT];
    TAILQ_HEAD(connections, connection) connections;
    int count;
};

static int listen_on_loopback(int *ret_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, BACKLOG) ||
        getsockname(fd, (struct sockaddr *)&a, &len)) {
        close(fd);
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

struct receiver *receiver_new(receiver_fn *arrived, void *self)
{
    struct receiver *r = must_alloc(sizeof *r);
    r->arrived = arrived;
    r->self = self;
    TAILQ_INIT(&r->connections);
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    MUST(r->epoll_fd >= 0);
    for (int b = 0; b < RECEIVER_BEHAVIOUR_COUNT; b++)
        r->listeners[b].fd = -1;
    for (int b = 0; b < RECEIVER_BEHAVIOUR_COUNT; b++) {
        r->listeners[b].behaviour = (enum receiver_behaviour)b;
        r->listeners[b].fd = listen_on_loopback(&r->ports[b]);
        if (r->listeners[b].fd < 0 || !watch(r, &r->listeners[b])) {
            int saved = errno;
            receiver_free(r);
            errno = saved;
            return NULL;
        }
    }
    return r;
}

static void drop(struct receiver *r, struct connection *c)
{
    TAILQ_REMOVE(&r->connections, c, link);
    r->count--;
    close(c->fd);
    strbuf_free(&c->in);
    free(c);
}

struct receiver *receiver_free(struct receiver *r)
{
    if (!r)
        return NULL;
    for (struct connection *c; (c = TAILQ_FIRST(&r->connections));)
        drop(r, c);
    for (int b = 0; b < RECEIVER_BEHAVIOUR_COUNT; b++)
        if (r->listeners[b].fd >= 0)
            close(r->listeners[b].fd);
    close(r->epoll_fd);
    free(r);
    return NULL;
}

int receiver_fd(const struct receiver *r)
{
    return r->epoll_fd;
}
int receiver_port(const struct receiver *r, enum receiver_behaviour behaviour)
{
    return r->ports[behaviour];
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
        c->behaviour = listener->behaviour;
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

static void decide(struct connection *c, int before, int64_t now_ms)
{
    bool first = before == 0;
    c->answer_at_ms = now_ms;
    c->status = 200;
    switch (c->behaviour) {
    case RECEIVER_OK:
        return;
    case RECEIVER_HANGS:
        c->mute = first;
        return;
    case RECEIVER_FAILS_ONCE:
        c->status = first ? 500 : 200;
        return;
    case RECEIVER_FAILS:
        c->status = 500;
        return;
    case RECEIVER_SLOW:
        c->answer_at_ms += RECEIVER_SLOW_MS;
        return;
    case RECEIVER_BEHAVIOUR_COUNT:
        break;
    }
    must_fail("every behaviour is listed", __FILE__, __LINE__, __func__);
}

static void hand_over(struct receiver *r, struct connection *c, size_t head_bytes, size_t all, int64_t now_ms)
{
    struct str head = {c->in.ptr, head_bytes}, line = head;
    str_cut(&line, ' ');
    struct receiver_message m = {
        .behaviour = c->behaviour,
        .path = str_cut(&line, ' '),
        .signed_message = {.id = header_value(head, "webhook-id"),
                           .timestamp = header_value(head, "webhook-timestamp"),
                           .signature = header_value(head, "webhook-signature"),
                           .body = {c->in.ptr + head_bytes, all - head_bytes}},
    };
    decide(c, r->arrived(r->self, &m), now_ms);
    memmove(c->in.ptr, c->in.ptr + all, c->in.len - all);
    c->in.len -= all;
}

/* False: the connection is over. */
static bool take_requests(struct receiver *r, struct connection *c, int64_t now_ms)
{
    size_t head_bytes = 0;
    if (c->answer_at_ms)
        return c->in.len <= RECEIVER_REQUEST_BYTES_MAX; /* the next one waits for its turn */
    int64_t all = request_bytes(strbuf_str(&c->in), &head_bytes);
    if (all > 0)
        hand_over(r, c, head_bytes, (size_t)all, now_ms);
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
static void answer_due(struct receiver *r, int64_t now_ms)
{
    for (struct connection *c = TAILQ_FIRST(&r->connections), *next; c; c = next) {
        next = TAILQ_NEXT(c, link);
        bool alive = true;
        while (alive && c->answer_at_ms && !c->mute && c->answer_at_ms <= now_ms)
            alive = answer(c) && take_requests(r, c, now_ms);
        if (!alive)
            drop(r, c);
    }
}

void receiver_work(struct receiver *r, int64_t now_ms)
{
    struct epoll_event events[EVENTS_A_ROUND];
    int n = epoll_wait(r->epoll_fd, events, EVENTS_A_ROUND, 0);
    for (int i = 0; i < n; i++) {
        struct connection *c = events[i].data.ptr;
        if (c >= r->listeners && c < r->listeners + RECEIVER_BEHAVIOUR_COUNT)
            accept_all(r, c);
        else if (!read_bytes(c) || !take_requests(r, c, now_ms))
            drop(r, c);
    }
    answer_due(r, now_ms);
}
