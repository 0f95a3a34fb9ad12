#include "http/handshake.h"

#include <sys/socket.h>

#include "http/http_internal.h"
#include "http/transport.h"

#include "base/banned.h"

enum { HANDSHAKES_PER_ROUND = 16 };

static void count(struct http_loop *l, enum http_handshake_end end)
{
    uint64_t old = atomic_load_explicit(&l->handshake_ends[end], memory_order_relaxed);
    atomic_store_explicit(&l->handshake_ends[end], old + 1, memory_order_relaxed);
}

void handshake_ends(struct http_conn *c)
{
    struct handshakes *all = &c->loop->handshakes;
    struct tls_conn *t = c->tls;
    if (!t || !t->conn)
        return;
    if (t->prev)
        t->prev->next = t->next;
    else
        all->first = t->next;
    if (t->next)
        t->next->prev = t->prev;
    else
        all->last = t->prev;
    t->next = t->prev = NULL;
    t->conn = NULL;
    all->count--;
}

void handshake_begin(struct http_conn *c)
{
    struct http_loop *l = c->loop;
    struct handshakes *all = &l->handshakes;
    if (all->count >= loop_limits(l)->handshakes_max) {
        count(l, HTTP_HANDSHAKE_CROWDED);
        conn_close(all->first->conn);
    }
    c->tls = tls_conn_new(l->server->config.tls, c->fd);
    if (!c->tls) {
        conn_close(c);
        return;
    }
    c->state = CONN_HANDSHAKE;
    c->tls->conn = c;
    c->tls->prev = all->last;
    if (all->last)
        all->last->next = c->tls;
    else
        all->first = c->tls;
    all->last = c->tls;
    all->count++;
    conn_deadline(c, l->now_ms + loop_limits(l)->handshake_ms);
}

/* The alert is on its way: closed as after a last answer, so that no reset overtakes it. */
static void refuse(struct http_conn *c)
{
    count(c->loop, HTTP_HANDSHAKE_REFUSED);
    c->readable = true;
    conn_hang_up(c, true);
}

static void done(struct http_conn *c)
{
    struct http_loop *l = c->loop;
    count(l, HTTP_HANDSHAKE_DONE);
    handshake_ends(c);
    c->state = CONN_HEAD;
    l->now_ms = clock_mono_ms(l->server->config.clock); /* the request gets its whole time */
    if (c->verdict != PEERS_ADMITTED) {
        listen_refuse(c);
        return;
    }
    conn_deadline(c, l->now_ms + loop_limits(l)->idle_ms);
    if (l->drain_begun)
        conn_drain(c);
    c->readable = true; /* the first request often comes with the last flight */
    conn_read(c);
}

void handshake_step(struct http_conn *c)
{
    struct http_loop *l = c->loop;
    if (c->queued)
        return;
    if (l->handshakes.in_round == HANDSHAKES_PER_ROUND) {
        loop_queue(c);
        return;
    }
    l->handshakes.in_round++;
    switch (tls_handshake(c->tls)) {
    case TLS_DONE:
        done(c);
        break;
    case TLS_WAITS:
        if (c->tls->cut)
            loop_queue(c);
        break;
    case TLS_REFUSED:
        refuse(c);
        break;
    }
}

void handshake_late(struct http_conn *c)
{
    count(c->loop, HTTP_HANDSHAKE_LATE);
    conn_close(c);
}

bool transport_end(struct http_conn *c)
{
    if (c->tls) {
        if (!tls_end(c->tls))
            return true;
        handshake_ends(c);
        c->tls = tls_conn_free(c->tls); /* later input is dropped unread */
    }
    return shutdown(c->fd, SHUT_WR) == 0;
}
