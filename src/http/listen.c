#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/must.h"
#include "http/http_internal.h"

#include "base/banned.h"

enum { BACKLOG = 4096 };

static void set_option(int fd, int level, int option)
{
    int on = 1;
    (void)setsockopt(fd, level, option, &on, sizeof on);
}

/* A bound TCP socket, or -1 with errno. */
static int bind_tcp(const struct sockaddr *address, socklen_t len, bool share_port)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    set_option(fd, SOL_SOCKET, SO_REUSEADDR);
    if (share_port)
        set_option(fd, SOL_SOCKET, SO_REUSEPORT);
    set_option(fd, IPPROTO_TCP, TCP_NODELAY); /* accepted sockets inherit it */
    if (bind(fd, address, len) < 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

static void set_port(struct sockaddr *address, uint16_t port)
{
    if (address->sa_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    MUST(getsockname(fd, (struct sockaddr *)&address, &len) == 0);
    if (address.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)(void *)&address)->sin6_port);
    return ntohs(((struct sockaddr_in *)(void *)&address)->sin_port);
}

static void add_listener(struct http_loop *l, struct listener listener)
{
    MUST(l->listener_count < LENGTH_OF(l->listeners));
    l->listeners[l->listener_count++] = listener;
}

/* One listening socket per loop on the same address; the kernel spreads connections over them. */
static int listen_tcp(struct http_server *s, struct sockaddr *address, socklen_t len, uint16_t *port,
                      bool is_tls)
{
    if (*port) {
        /* Sharing a port must not let a second server join in unseen: try alone first. */
        int probe = bind_tcp(address, len, false);
        if (probe < 0)
            return -1;
        close(probe);
    }
    for (uint32_t i = 0; i < s->loop_count; i++) {
        int fd = bind_tcp(address, len, true);
        if (fd < 0)
            return -1;
        add_listener(&s->loops[i], (struct listener){.fd = fd, .is_tls = is_tls});
        if (listen(fd, BACKLOG) < 0)
            return -1;
        if (!*port) {
            *port = port_of(fd);
            set_port(address, *port);
        }
    }
    return 0;
}

/* Port 0 becomes the one that the kernel chose. */
static enum err_code open_tcp(struct http_server *s, const char *host, uint16_t *port, bool is_tls,
                              struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    int problem = getaddrinfo(host, NULL, &hints, &found);
    if (problem)
        return err_set(err, ERR_CONFIG_INVALID, "listen address %s: %s", host, gai_strerror(problem));
    enum err_code code = ERR_OK;
    uint32_t count = 0;
    for (struct addrinfo *a = found; a && count < LISTENERS_MAX && code == ERR_OK; a = a->ai_next) {
        if (a->ai_family != AF_INET && a->ai_family != AF_INET6)
            continue;
        set_port(a->ai_addr, *port);
        if (listen_tcp(s, a->ai_addr, a->ai_addrlen, port, is_tls) == 0)
            count++;
        else if (!(count && (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT))) /* no IPv6 here */
            code =
                err_set(err, ERR_CONFIG_INVALID, "cannot listen on %s:%u: %s", host, *port, strerror(errno));
    }
    freeaddrinfo(found);
    if (code == ERR_OK && !count)
        code = err_set(err, ERR_CONFIG_INVALID, "listen address %s: no usable address", host);
    return code;
}

static bool somebody_listens(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return true;
    bool alive = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 || errno != ECONNREFUSED;
    close(fd);
    return alive;
}

static enum err_code open_unix(struct http_server *s, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = s->config.unix_path;
    if (strlen(path) >= sizeof address.sun_path)
        return err_set(err, ERR_CONFIG_INVALID, "socket path %s is longer than %zu bytes", path,
                       sizeof address.sun_path - 1);
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set(err, ERR_CONFIG_INVALID, "socket %s: %s", path, strerror(errno));
    s->unix_fd = fd;
    (void)fchmod(fd, 0600); /* before bind: the file never exists with wider rights */
    int bound = bind(fd, (struct sockaddr *)&address, sizeof address);
    if (bound < 0 && errno == EADDRINUSE && !somebody_listens(&address)) {
        unlink(path);
        bound = bind(fd, (struct sockaddr *)&address, sizeof address);
    }
    if (bound < 0)
        return err_set(err, ERR_CONFIG_INVALID, "socket %s: %s", path, strerror(errno));
    s->unix_path = must_strdup(path);
    struct stat file;
    if (stat(path, &file) == 0)
        s->unix_inode = file.st_ino;
    if (listen(fd, BACKLOG) < 0)
        return err_set(err, ERR_CONFIG_INVALID, "socket %s: %s", path, strerror(errno));
    for (uint32_t i = 0; i < s->loop_count; i++)
        add_listener(&s->loops[i], (struct listener){.fd = fd, .is_unix = true});
    return ERR_OK;
}

enum err_code listen_open(struct http_server *s, struct err *err)
{
    enum err_code code = ERR_OK;
    s->port = s->config.listen_port;
    s->tls_port = s->config.tls_port;
    if (s->config.listen_host)
        code = open_tcp(s, s->config.listen_host, &s->port, false, err);
    if (code == ERR_OK && s->config.tls_host)
        code = open_tcp(s, s->config.tls_host, &s->tls_port, true, err);
    if (code == ERR_OK && s->config.unix_path)
        code = open_unix(s, err);
    for (uint32_t i = 0; i < s->loop_count && code == ERR_OK; i++)
        listen_start(&s->loops[i]);
    return code;
}

void listen_unlink(struct http_server *s)
{
    struct stat file; /* a successor may have put its own socket there while we drained */
    if (s->unix_path && stat(s->unix_path, &file) == 0 && file.st_ino == s->unix_inode)
        unlink(s->unix_path);
}

void listen_start(struct http_loop *l)
{
    l->accept_again_ms = 0;
    l->listening = true;
    for (uint32_t i = 0; i < l->listener_count; i++) {
        struct listener *from = &l->listeners[i];
        /* The Unix socket is shared: wake one loop, not all. */
        uint32_t alone = from->is_unix ? EPOLLEXCLUSIVE : 0;
        struct epoll_event ev = {.events = EPOLLIN | alone, .data.ptr = from};
        MUST(epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, from->fd, &ev) == 0);
    }
}

static void stop_listening(struct http_loop *l)
{
    for (uint32_t i = 0; i < l->listener_count && l->listening; i++)
        (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, l->listeners[i].fd, NULL);
    l->listening = false;
}

void listen_pause(struct http_loop *l)
{
    stop_listening(l);
    l->accept_again_ms = l->now_ms + ACCEPT_PAUSE_MS;
}

void listen_close(struct http_loop *l)
{
    stop_listening(l);
    l->accept_again_ms = 0;
    for (uint32_t i = 0; i < l->listener_count; i++)
        if (!l->listeners[i].is_unix) /* the shared one is the server's to close */
            close(l->listeners[i].fd);
    l->listener_count = 0;
}

/* Without a connection of ours: there is no room for more of those that are told why. */
static void refuse_at_once(const struct listener *from, int fd)
{
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
                               "Connection: close\r\n\r\n";
    char request[2048]; /* unread input at close would make the kernel take the answer back */
    (void)!recv(fd, request, sizeof request, MSG_DONTWAIT);
    if (!from->is_tls)
        (void)!send(fd, text, sizeof text - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
    close(fd);
}

/* Out of descriptors. An idle connection closes for the new one. Where none is idle the new one is refused by
 * means of a descriptor kept for that, so no client waits in the kernel's queue for an answer that never
 * comes. */
static bool make_do_without(struct http_loop *l, const struct listener *from)
{
    if (peers_close_one(l))
        return true;
    close(l->spare_fd);
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof peer;
    int fd = accept4(from->fd, (struct sockaddr *)&peer, &peer_len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        refuse_at_once(from, fd);
    l->spare_fd = fcntl(l->wake_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0 || l->spare_fd < 0)
        listen_pause(l); /* the queue stays readable: without a pause this would spin */
    return fd >= 0 && l->spare_fd >= 0;
}

static bool accept_failed(struct http_loop *l, const struct listener *from, int why)
{
    if ((why == EMFILE || why == ENFILE) && !l->drain_begun && l->spare_fd >= 0)
        return make_do_without(l, from);
    bool short_of_something = why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM;
    if (short_of_something && !l->drain_begun)
        listen_pause(l);
    return why == EINTR || why == ECONNABORTED;
}

static enum peers_verdict ask_for_room(struct http_loop *l, const struct listener *from,
                                       const struct http_address *peer)
{
    if (!from->is_unix)
        return peers_ask(l, peer);
    bool full = http_server_connections_over(l->server, true) >= loop_limits(l)->unix_max;
    return full ? PEERS_ALL_FULL : PEERS_ADMITTED;
}

void listen_refuse(struct http_conn *c)
{
    const struct http_limits *limits = loop_limits(c->loop);
    struct err why;
    if (c->verdict == PEERS_ADDRESS_FULL)
        (void)err_set(&why, ERR_EXEC_QUEUE_FULL,
                      "your address has %u connections, which is the limit, and none of them is idle",
                      limits->connections_per_address);
    else
        (void)err_set(&why, ERR_EXEC_QUEUE_FULL,
                      "the server has %u connections, which is its limit, and none of them is idle",
                      c->over_unix_socket ? limits->unix_max : limits->connections_max);
    conn_refuse(c, 503, &why);
}

static void open_conn(struct http_loop *l, const struct listener *from, int fd,
                      const struct http_address *peer, enum peers_verdict verdict)
{
    struct http_conn *c = conn_open(l, fd, from->is_unix, peer);
    if (!c && verdict == PEERS_ADMITTED && !from->is_unix)
        peers_give_back(l, peer);
    if (!c)
        return;
    c->verdict = verdict;
    if (verdict != PEERS_ADMITTED)
        atomic_fetch_add(&l->server->refused_count, 1);
    else if (!from->is_unix)
        peers_add(c);
    if (from->is_tls)
        handshake_begin(c);
    else if (verdict != PEERS_ADMITTED)
        listen_refuse(c);
}

static bool accept_one(struct http_loop *l, const struct listener *from)
{
    struct sockaddr_storage from_where = {.ss_family = AF_UNIX};
    socklen_t len = sizeof from_where;
    int fd = accept4(from->fd, (struct sockaddr *)&from_where, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return accept_failed(l, from, errno);
    struct http_address peer = address_of(&from_where);
    enum peers_verdict verdict = ask_for_room(l, from, &peer);
    if (verdict != PEERS_ADMITTED && atomic_load(&l->server->refused_count) >= REFUSED_CONNECTIONS_MAX)
        refuse_at_once(from, fd);
    else
        open_conn(l, from, fd, &peer, verdict);
    return true;
}

bool listen_accept(struct http_loop *l, const struct listener *from)
{
    for (int i = 0; i < ACCEPTS_PER_ROUND; i++)
        if (!accept_one(l, from))
            return false;
    return true;
}
