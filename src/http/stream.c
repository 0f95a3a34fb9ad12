#include <errno.h>
#include <sys/socket.h>

#include "base/must.h"
#include "http/http_internal.h"
#include "http/transport.h"

#include "base/banned.h"

static void add_chunk(struct exchange *ex, struct str bytes)
{
    if (!ex->stream_bare)
        strbuf_addf(&ex->out, "%zx\r\n", bytes.len);
    strbuf_add_str(&ex->out, bytes);
    if (!ex->stream_bare)
        strbuf_add(&ex->out, "\r\n", 2);
}

static void add_last_chunk(struct exchange *ex)
{
    if (!ex->stream_bare && ex->pub.method != HTTP_HEAD)
        strbuf_add(&ex->out, "0\r\n\r\n", 5);
    ex->stream = STREAM_ENDING;
}

void http_stream_begin(struct http_exchange *x, int64_t ping_ms)
{
    struct exchange *ex = exchange_of(x);
    MUST(x->server_state == EXCHANGE_RUNNING && !ex->owes_resume);
    x->server_state = EXCHANGE_STREAM;
    /* From here on no tick is missed: it either sees this, or the first on_stream_tick, which follows,
     * sees what it announced. */
    atomic_fetch_add(&x->loop->stream_count, 1);
    count_add(&x->loop->busy_count, -1);
    ex->ping_ms = ping_ms;
    ex->stream = STREAM_OPEN;
    ex->stream_bare = ex->http_1_0;
    if (ex->stream_bare)
        x->close_after = true; /* only the end of the connection ends such a body */
    reply_write_head(ex, true);
    if (x->reply_body.len && x->method != HTTP_HEAD)
        add_chunk(ex, strbuf_str(&x->reply_body));
    strbuf_clear(&x->reply_body);
}

void http_hold(struct http_exchange *x, int64_t ping_ms)
{
    struct exchange *ex = exchange_of(x);
    MUST(x->server_state == EXCHANGE_RUNNING && !ex->owes_resume);
    x->server_state = EXCHANGE_STREAM;
    atomic_fetch_add(&x->loop->stream_count, 1); /* from here on no tick is missed, as for a stream */
    ex->ping_ms = ping_ms;
    ex->stream = STREAM_OPEN;
    ex->held = true;
}

bool http_hold_is_over(const struct http_exchange *x)
{
    return atomic_load(&x->gone) || atomic_load(&x->loop->server->draining) || x->method == HTTP_HEAD;
}

void stream_answer_held(struct exchange *ex)
{
    MUST(ex->pub.server_state == EXCHANGE_STREAM && ex->stream == STREAM_OPEN);
    ex->stream_told = true;
    ex->stream = STREAM_ENDING;
    reply_write_head(ex, false);
    if (ex->pub.method != HTTP_HEAD)
        strbuf_add_str(&ex->out, strbuf_str(&ex->pub.reply_body));
    loop_queue(ex->pub.conn);
}

bool http_stream_write(struct http_exchange *x, struct str bytes)
{
    struct exchange *ex = exchange_of(x);
    MUST(x->server_state == EXCHANGE_STREAM);
    if (ex->stream != STREAM_OPEN || x->conn->fd < 0)
        return false;
    if (!bytes.len || x->method == HTTP_HEAD)
        return true; /* an empty chunk would be the last one */
    size_t unsent = ex->out.len - ex->out_sent;
    if (unsent && unsent + bytes.len > STREAM_UNSENT_MAX)
        ex->stream = STREAM_LOST;
    else
        add_chunk(ex, bytes);
    loop_queue(x->conn);
    return ex->stream == STREAM_OPEN;
}

void http_stream_end(struct http_exchange *x)
{
    struct exchange *ex = exchange_of(x);
    MUST(x->server_state == EXCHANGE_STREAM);
    ex->stream_told = true;
    ex->closing |= x->close_after;
    if (ex->stream == STREAM_OPEN)
        add_last_chunk(ex);
    loop_queue(x->conn);
}

void http_stream_tick_in(struct http_exchange *x, int64_t ms)
{
    struct exchange *ex = exchange_of(x);
    MUST(x->server_state == EXCHANGE_STREAM);
    ex->next_ping_ms = x->loop->now_ms + ms;
    loop_queue(x->conn); /* its deadline is set at its turn */
}

void http_stream_more(struct http_exchange *x)
{
    exchange_of(x)->stream_more = true;
    loop_queue(x->conn);
}

bool http_stream_waits(struct http_exchange *x)
{
    return exchange_of(x)->stream_more;
}

static void tell_end(struct exchange *ex)
{
    if (!ex->stream_told && ex->pub.on_stream_end)
        ex->pub.on_stream_end(&ex->pub);
    ex->stream_told = true;
}

static void arm(struct http_conn *c)
{
    struct exchange *ex = c->x;
    int64_t at = ex->ping_ms > 0 && ex->stream == STREAM_OPEN ? ex->next_ping_ms : INT64_MAX;
    if (ex->stuck_at_ms && ex->stuck_at_ms < at)
        at = ex->stuck_at_ms;
    conn_deadline(c, at);
}

/* The handler's callback made a stream of the exchange and has returned. */
void stream_start(struct http_conn *c)
{
    struct exchange *ex = c->x;
    struct http_loop *l = c->loop;
    heavy_ends(l, ex);
    c->state = CONN_STREAM;
    exchange_list_add(&l->streams, ex);
    ex->next_ping_ms = l->now_ms + ex->ping_ms;
    if (c->fd < 0 || c->peer_shut) {
        stream_peer_shut(c);
        return;
    }
    if (ex->pub.method == HTTP_HEAD || atomic_load(&l->server->draining))
        stream_drain(c);
    else if (ex->pub.on_stream_tick && ex->stream == STREAM_OPEN)
        ex->pub.on_stream_tick(&ex->pub);
    stream_on_turn(c);
}

static void leave(struct http_conn *c)
{
    exchange_list_remove(&c->loop->streams, c->x);
    atomic_fetch_sub(&c->loop->stream_count, 1);
    conn_exchange_ends(c);
}

void stream_lose(struct http_conn *c)
{
    c->x->stream = STREAM_LOST;
    atomic_store(&c->x->pub.gone, true);
    tell_end(c->x);
    conn_close_socket(c);
    leave(c);
}

/* The client of a stream never sends; the client of a long poll may have shut its sending side, and gets its
 * answer. */
void stream_peer_shut(struct http_conn *c)
{
    atomic_store(&c->x->pub.gone, true);
    if (c->x->held && c->x->stream == STREAM_OPEN && c->fd >= 0)
        c->x->pub.on_stream_tick(&c->x->pub);
    if (c->x->held && c->x->stream == STREAM_ENDING)
        stream_on_turn(c);
    else
        stream_lose(c);
}

void stream_drain(struct http_conn *c)
{
    struct exchange *ex = c->x;
    if (ex->held && ex->stream == STREAM_OPEN) {
        ex->pub.on_stream_tick(&ex->pub);
        MUST(ex->stream != STREAM_OPEN);
    } else if (ex->stream == STREAM_OPEN) {
        tell_end(ex);
        add_last_chunk(ex);
        if (ex->pub.method != HTTP_HEAD)
            ex->closing = true;
    }
    loop_queue(c);
}

static void forget_sent(struct exchange *ex)
{
    if (ex->out_sent == ex->out.len) {
        ex->out_sent = 0;
        if (ex->out.cap > POOLED_BUFFER_BYTES_MAX)
            strbuf_free(&ex->out);
        else
            strbuf_clear(&ex->out);
    } else if (ex->out_sent > ex->out.len / 2) {
        memmove(ex->out.ptr, ex->out.ptr + ex->out_sent, ex->out.len - ex->out_sent);
        ex->out.len -= ex->out_sent;
        ex->out_sent = 0;
    }
}

/* False when the socket is dead. */
static bool flush(struct http_conn *c)
{
    struct exchange *ex = c->x;
    while (ex->out_sent < ex->out.len) {
        struct iovec iov = {ex->out.ptr + ex->out_sent, ex->out.len - ex->out_sent};
        ssize_t n = transport_send(c, &iov, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            if (!ex->stuck_at_ms)
                ex->stuck_at_ms = c->loop->now_ms + loop_limits(c->loop)->write_ms;
            break;
        }
        if (n < 0)
            return false;
        ex->out_sent += (size_t)n;
        ex->stuck_at_ms = 0; /* a slow reader may live; one that takes nothing at all may not */
        unsent_ends(ex);
    }
    forget_sent(ex);
    if (ex->stuck_at_ms)
        unsent_waits(c);
    return true;
}

/* The part before is with the kernel: the next one. */
static void ask_for_more(struct exchange *ex)
{
    if (ex->out.len || !ex->stream_more || ex->stream != STREAM_OPEN)
        return;
    ex->stream_more = false;
    ex->pub.on_stream_tick(&ex->pub);
}

void stream_on_turn(struct http_conn *c)
{
    struct exchange *ex = c->x;
    bool sent = ex->stream != STREAM_LOST && flush(c);
    if (sent)
        ask_for_more(ex);
    if (!sent || ex->stream == STREAM_LOST) {
        stream_lose(c);
        return;
    }
    if (ex->stream == STREAM_ENDING && !ex->out.len) {
        leave(c);
        if (c->state == CONN_HEAD)
            conn_continue(c);
        return;
    }
    arm(c);
}

void stream_on_deadline(struct http_conn *c)
{
    struct exchange *ex = c->x;
    int64_t now = c->loop->now_ms;
    if (ex->stuck_at_ms && ex->stuck_at_ms <= now) {
        stream_lose(c);
        return;
    }
    if (ex->ping_ms > 0 && ex->next_ping_ms <= now) {
        ex->next_ping_ms = now + ex->ping_ms;
        if (ex->stream == STREAM_OPEN && ex->pub.on_stream_tick)
            ex->pub.on_stream_tick(&ex->pub);
    }
    stream_on_turn(c);
}

void stream_tick_all(struct http_loop *l)
{
    /* Streams end at their turn, never inside a callback, so the list holds still. */
    for (struct exchange *ex = l->streams; ex; ex = ex->next)
        if (ex->stream == STREAM_OPEN && ex->pub.on_stream_tick)
            ex->pub.on_stream_tick(&ex->pub);
}
