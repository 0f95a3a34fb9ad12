#include "load/receiver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "load/client.h"
#include "base/must.h"

#include "base/banned.h"

enum { EVENTS_PER_ROUND = 256, READ_BYTES = 16384, SILENCE_MAX_MS = 20000, LOOK_MS = 1 };

struct sender {
    int fd;
    struct strbuf in;
};

struct receiver {
    int epoll_fd, listen_fd, port;
    pthread_t thread;
    _Atomic bool stopping;
    _Atomic uint64_t count, unsigned_count;
    _Atomic int64_t last_ns;
};

static bool holds(struct str head, const char *name)
{
    return memmem(head.ptr, head.len, name, strlen(name)) != NULL;
}

static size_t body_length(struct str head)
{
    while (head.len) {
        struct str line = str_cut(&head, '\n');
        int64_t length;
        if (!str_equal_nocase(str_cut(&line, ':'), STR("Content-Length")))
            continue;
        if (line.len && line.ptr[line.len - 1] == '\r')
            line.len--;
        if (str_to_int(str_trim(line), 0, 1 << 20, &length))
            return (size_t)length;
    }
    give_up("a delivery without Content-Length");
}

/* The length of the request at the front of `in`; 0: it is incomplete. */
static size_t whole_request(struct receiver *r, struct str in)
{
    const char *end = memmem(in.ptr, in.len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    struct str head = {in.ptr, (size_t)(end - in.ptr) + 4};
    size_t len = head.len + body_length(head);
    if (in.len < len)
        return 0;
    if (!holds(head, "webhook-id: ") || !holds(head, "webhook-timestamp: ") ||
        !holds(head, "webhook-signature: v1,"))
        atomic_fetch_add(&r->unsigned_count, 1);
    return len;
}

static void answer(struct sender *s)
{
    static const char text[] = "HTTP/1.1 204 No Content\r\n\r\n";
    ssize_t n = send(s->fd, text, sizeof text - 1, MSG_NOSIGNAL);
    if (n != (ssize_t)(sizeof text - 1))
        give_up("the gateway does not read its answers");
}

static void take_requests(struct receiver *r, struct sender *s)
{
    size_t used = 0, len;
    while ((len = whole_request(r, (struct str){s->in.ptr + used, s->in.len - used}))) {
        used += len;
        atomic_store(&r->last_ns, now_ns());
        atomic_fetch_add(&r->count, 1);
        answer(s);
    }
    memmove(s->in.ptr, s->in.ptr + used, s->in.len - used);
    s->in.len -= used;
}

static void receive(struct receiver *r, struct sender *s)
{
    for (;;) {
        strbuf_reserve(&s->in, READ_BYTES);
        ssize_t n = recv(s->fd, s->in.ptr + s->in.len, s->in.cap - s->in.len - 1, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) { /* the gateway may close what it no longer needs */
            close(s->fd);
            strbuf_free(&s->in);
            free(s);
            return;
        }
        s->in.len += (size_t)n;
        take_requests(r, s);
    }
}

static void accept_all(struct receiver *r)
{
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    int fd;
    while ((fd = accept4(r->listen_fd, (struct sockaddr *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        struct sender *s = must_alloc(sizeof *s);
        const int on = 1;
        s->fd = fd;
        struct epoll_event interest = {.events = EPOLLIN | EPOLLET, .data.ptr = s};
        MUST(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
        MUST(epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &interest) == 0);
    }
}

static void *receiver_main(void *arg)
{
    struct receiver *r = arg;
    struct epoll_event events[EVENTS_PER_ROUND];
    while (!atomic_load(&r->stopping)) {
        int n = epoll_wait(r->epoll_fd, events, EVENTS_PER_ROUND, 100);
        for (int i = 0; i < n; i++)
            if (events[i].data.ptr == r)
                accept_all(r);
            else
                receive(r, events[i].data.ptr);
    }
    return NULL;
}

struct receiver *receiver_start(void)
{
    struct receiver *r = must_alloc(sizeof *r);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    r->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    MUST(r->listen_fd >= 0 && r->epoll_fd >= 0);
    MUST(bind(r->listen_fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
         listen(r->listen_fd, 1024) == 0 &&
         getsockname(r->listen_fd, (struct sockaddr *)&address, &size) == 0);
    r->port = ntohs(address.sin_port);
    struct epoll_event interest = {.events = EPOLLIN | EPOLLET, .data.ptr = r};
    MUST(epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->listen_fd, &interest) == 0);
    MUST(pthread_create(&r->thread, NULL, receiver_main, r) == 0);
    return r;
}

void receiver_stop(struct receiver *r)
{
    atomic_store(&r->stopping, true);
    pthread_join(r->thread, NULL);
    close(r->listen_fd);
    close(r->epoll_fd);
    free(r); /* connections end with the process */
}

int receiver_port(const struct receiver *r)
{
    return r->port;
}

uint64_t receiver_count(const struct receiver *r)
{
    return atomic_load(&r->count);
}

uint64_t receiver_unsigned(const struct receiver *r)
{
    return atomic_load(&r->unsigned_count);
}

int64_t receiver_await(struct receiver *r, uint64_t count)
{
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000};
    int64_t quiet_since = now_ns();
    for (uint64_t seen = 0, now = 0; (now = receiver_count(r)) < count;) {
        if (now != seen)
            quiet_since = now_ns();
        else if (now_ns() - quiet_since > SILENCE_MAX_MS * INT64_C(1000000))
            return 0;
        seen = now;
        nanosleep(&look, NULL);
    }
    return atomic_load(&r->last_ns);
}
