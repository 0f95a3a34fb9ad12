#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/must.h"
#include "http/http_internal.h"
#include "http/transport.h"

#include "base/banned.h"

/* Edge-triggered with every interest from the start: no epoll_ctl() for the rest of its life. */
enum { CONN_EVENTS = EPOLLIN | EPOLLOUT | EPOLLRDHUP };

struct http_conn *conn_open(struct http_loop *l, int fd, bool is_unix, const struct http_address *peer)
{
    struct http_conn *c = must_alloc(sizeof *c);
    c->loop = l;
    c->fd = fd;
    c->over_unix_socket = is_unix;
    c->peer = *peer;
    c->peer_is_loopback = is_unix || address_is_loopback(peer);
    conn_idle(c, l->now_ms);
    struct epoll_event ev = {.events = CONN_EVENTS | EPOLLET, .data.ptr = c};
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) { /* ENOMEM, ENOSPC: as if never accepted */
        close(fd);
        free(c);
        return NULL;
    }
    c->next = l->conns;
    if (l->conns)
        l->conns->prev = c;
    l->conns = c;
    count_add(&l->conn_counts[is_unix], 1);
    conn_deadline(c, l->now_ms + loop_limits(l)->idle_ms);
    return c;
}

void conn_deadline(struct http_conn *c, int64_t at_ms)
{
    /* Deadlines mostly move later; then the old ring is let happen and finds nothing to do. */
    c->deadline_ms = at_ms;
    if (at_ms != INT64_MAX && (!heap_holds(&c->timer) || (int64_t)c->timer.key > at_ms))
        heap_put(&c->loop->timers, &c->timer, (uint64_t)at_ms);
}

void conn_close_socket(struct http_conn *c)
{
    if (c->fd < 0)
        return;
    if (c->tls) {
        handshake_ends(c);
        (void)tls_end(c->tls);
        c->tls = tls_conn_free(c->tls);
    }
    peers_remove(c);
    close(c->fd);
    c->fd = -1;
    if (c->verdict != PEERS_ADMITTED)
        atomic_fetch_sub(&c->loop->server->refused_count, 1);
    count_add(&c->loop->conn_counts[c->over_unix_socket], -1);
}

void conn_close(struct http_conn *c)
{
    if (c->state == CONN_CLOSED)
        return;
    conn_close_socket(c);
    if (c->x) { /* one that no handler has seen, or the loop is stopping */
        exchange_give_back(c->loop, c->x);
        c->x = NULL;
    }
    c->state = CONN_CLOSED;
    c->next_closed = c->loop->closed;
    c->loop->closed = c;
}

void conn_free(struct http_conn *c)
{
    struct http_loop *l = c->loop;
    heap_remove(&l->timers, &c->timer);
    if (c->prev)
        c->prev->next = c->next;
    else
        l->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    strbuf_free(&c->in);
    held_by_input(c);
    free(c);
}

void conn_lost(struct http_conn *c)
{
    switch (c->state) {
    case CONN_PARKED: /* the handler still has the exchange; it ends when it is resumed */
        atomic_store(&c->x->pub.gone, true);
        conn_close_socket(c);
        return;
    case CONN_STREAM:
        stream_lose(c);
        return;
    case CONN_SENDING:
        atomic_store(&c->x->pub.gone, true);
        conn_close_socket(c);
        conn_exchange_ends(c);
        return;
    case CONN_HEAD:
    case CONN_HANDSHAKE:
    case CONN_BODY:
    case CONN_LINGER:
    case CONN_CLOSED:
        break;
    }
    conn_close(c);
}

void conn_hang_up(struct http_conn *c, bool more_input)
{
    /* close() with unread input makes the kernel send RST, which can take our answer back from a
     * client that is still writing. So: say that we are done, and read the rest away for a while. */
    if (c->peer_shut || !(more_input || c->readable || c->in.len) || !transport_end(c)) {
        conn_close(c);
        return;
    }
    strbuf_free(&c->in);
    held_by_input(c);
    c->state = CONN_LINGER;
    conn_deadline(c, c->loop->now_ms + LINGER_MS);
    conn_linger(c);
}

void conn_on_event(struct http_conn *c, uint32_t events)
{
    bool dead = events & (EPOLLHUP | EPOLLERR);
    c->readable |= dead || c->tls || (events & (EPOLLIN | EPOLLRDHUP));
    c->peer_shut |= dead || (events & EPOLLRDHUP);
    switch (c->state) {
    case CONN_HANDSHAKE:
        handshake_step(c);
        break;
    case CONN_HEAD:
    case CONN_BODY:
        if (c->heavy.is && !dead)
            heavy_queue(c);
        else
            conn_read(c); /* even when dead: a whole request may still lie in the socket */
        break;
    case CONN_PARKED:
        if (dead)
            conn_lost(c);
        else if (c->peer_shut)
            atomic_store(&c->x->pub.gone, true); /* perhaps half-closed: the answer is still tried */
        break;
    case CONN_SENDING:
        conn_flush(c);
        conn_answered(c);
        break;
    case CONN_STREAM:
        if (c->peer_shut)
            stream_peer_shut(c);
        else
            stream_on_turn(c);
        break;
    case CONN_LINGER:
        conn_linger(c);
        break;
    case CONN_CLOSED:
        break;
    }
}

static void refuse_late(struct http_conn *c)
{
    struct err why;
    (void)err_set(&why, ERR_REQUEST_MALFORMED, "the request did not arrive whole within %lld ms",
                  (long long)loop_limits(c->loop)->request_read_ms);
    conn_refuse(c, 408, &why);
}

static void time_out_parked(struct http_conn *c)
{
    struct exchange *ex = c->x;
    MUST(ex->pub.on_timeout);
    ex->owes_resume = true;
    conn_serve(c, ex->pub.on_timeout);
    conn_answered(c);
}

void conn_on_deadline(struct http_conn *c)
{
    switch (c->state) {
    case CONN_HANDSHAKE:
        handshake_late(c);
        break;
    case CONN_HEAD:
        if (c->started)
            refuse_late(c);
        else
            conn_close(c);
        break;
    case CONN_BODY:
        refuse_late(c);
        break;
    case CONN_PARKED:
        time_out_parked(c);
        break;
    case CONN_STREAM:
        stream_on_deadline(c);
        break;
    case CONN_SENDING:
    case CONN_LINGER:
        conn_lost(c);
        break;
    case CONN_CLOSED:
        break;
    }
}

void conn_on_turn(struct http_conn *c)
{
    if (c->state == CONN_STREAM)
        stream_on_turn(c);
    else if (c->state == CONN_HANDSHAKE)
        handshake_step(c);
    else if (c->state == CONN_HEAD || c->state == CONN_BODY)
        conn_continue(c);
    else if (c->state == CONN_LINGER)
        conn_linger(c);
}

void conn_drain(struct http_conn *c)
{
    if (c->state == CONN_STREAM)
        stream_drain(c);
    else if (c->state == CONN_HANDSHAKE || (c->state == CONN_HEAD && !c->started)) {
        if (c->asked)
            conn_close(c);
        else if (c->deadline_ms > c->loop->now_ms + DRAIN_FRESH_MS)
            conn_deadline(c, c->loop->now_ms + DRAIN_FRESH_MS);
    }
}
