#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/must.h"
#include "http/http_internal.h"
#include "http/transport.h"

#include "base/banned.h"

static void park(struct http_conn *c)
{
    struct http_exchange *x = &c->x->pub;
    x->server_state = EXCHANGE_PARKED;
    c->state = CONN_PARKED;
    MUST(x->on_resume);
    bool timed = x->timeout_at_ms && x->on_timeout;
    conn_deadline(c, timed ? x->timeout_at_ms : INT64_MAX);
    if (c->peer_shut)
        atomic_store(&x->gone, true);
}

bool conn_offer_head(struct http_conn *c)
{
    struct exchange *ex = c->x;
    const struct http_config *config = &c->loop->server->config;
    if (!config->on_head)
        return true;
    ex->pub.server_state = EXCHANGE_RUNNING;
    config->on_head(&ex->pub);
    if (ex->pub.server_state == EXCHANGE_RUNNING) {
        ex->pub.server_state = EXCHANGE_READING;
        return true;
    }
    MUST(ex->pub.server_state == EXCHANGE_ANSWERED);
    ex->served = true;
    ex->unread_input = !ex->pub.body_arrived;
    c->started = false;
    c->asked = true;
    c->state = CONN_SENDING;
    reply_write_head(ex, false);
    conn_flush(c);
    return false;
}

void conn_serve(struct http_conn *c, void (*callback)(struct http_exchange *x))
{
    struct exchange *ex = c->x;
    ex->served = true;
    ex->pub.server_state = EXCHANGE_RUNNING;
    callback(&ex->pub);
    if (ex->pub.server_state == EXCHANGE_STREAM) {
        stream_start(c);
        return;
    }
    if (ex->pub.server_state == EXCHANGE_RUNNING) {
        MUST(!ex->owes_resume); /* on_timeout must answer */
        park(c);
        return;
    }
    c->state = CONN_SENDING;
    reply_write_head(ex, false);
    conn_flush(c);
}

void conn_resumed(struct http_exchange *x)
{
    struct exchange *ex = exchange_of(x);
    if (ex->owes_resume) {
        ex->owes_resume = false;
        if (x->server_state == EXCHANGE_OWED) {
            exchange_list_remove(&x->loop->owed, ex);
            exchange_give_back(x->loop, ex);
        }
        return;
    }
    MUST(x->server_state == EXCHANGE_PARKED);
    struct http_conn *c = x->conn;
    conn_serve(c, x->on_resume);
    conn_answered(c);
}

static void keep_owed(struct http_loop *l, struct exchange *ex)
{
    ex->pub.server_state = EXCHANGE_OWED;
    ex->pub.conn = NULL;
    exchange_list_add(&l->owed, ex);
}

void conn_exchange_ends(struct http_conn *c)
{
    struct exchange *ex = c->x;
    struct http_loop *l = c->loop;
    /* A client that did not ask for the end may be sending its next request right now. */
    bool closing = ex->closing, more_input = ex->unread_input || ex->keep_alive;
    if (l->server->config.on_done && ex->served)
        l->server->config.on_done(&ex->pub);
    c->x = NULL;
    heavy_ends(l, ex);
    unsent_ends(ex);
    if (ex->owes_resume)
        keep_owed(l, ex);
    else
        exchange_give_back(l, ex);
    if (c->fd < 0) {
        conn_close(c);
    } else if (closing) {
        conn_hang_up(c, more_input);
    } else {
        c->state = CONN_HEAD;
        conn_idle(c, l->now_ms);
        conn_deadline(c, l->now_ms + loop_limits(l)->idle_ms);
    }
}

/* The unsent part of the answer; HEAD gets the head only. */
static size_t unsent(const struct exchange *ex, struct iovec iov[2])
{
    size_t body_len = ex->pub.method == HTTP_HEAD ? 0 : ex->pub.reply_body.len;
    iov[0] = (struct iovec){ex->out.ptr + ex->out_sent, ex->out.len - ex->out_sent};
    iov[1] = (struct iovec){NULL, 0};
    if (body_len)
        iov[1] = (struct iovec){ex->pub.reply_body.ptr + ex->body_sent, body_len - ex->body_sent};
    return iov[0].iov_len + iov[1].iov_len;
}

static void note_sent(struct exchange *ex, size_t n)
{
    size_t of_head = ex->out.len - ex->out_sent;
    of_head = n < of_head ? n : of_head;
    ex->out_sent += of_head;
    ex->body_sent += n - of_head;
}

void conn_flush(struct http_conn *c)
{
    struct exchange *ex = c->x;
    struct iovec iov[2];
    while (c->fd >= 0 && unsent(ex, iov)) {
        ssize_t n = transport_send(c, iov, iov[1].iov_len ? 2 : 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            if (!ex->stuck_at_ms) { /* once: a trickling reader does not get more time */
                ex->stuck_at_ms = c->loop->now_ms + loop_limits(c->loop)->write_ms;
                conn_deadline(c, ex->stuck_at_ms);
                unsent_waits(c);
            }
            return;
        }
        if (n < 0) {
            conn_lost(c);
            return;
        }
        note_sent(ex, (size_t)n);
    }
    conn_exchange_ends(c);
}
