#include <errno.h>
#include <sys/socket.h>

#include "base/must.h"
#include "http/http_internal.h"
#include "http/target.h"
#include "http/transport.h"

#include "base/banned.h"

void conn_refuse(struct http_conn *c, int status, const struct err *why)
{
    struct exchange *ex = c->x ? c->x : exchange_take(c);
    struct http_exchange *x = &ex->pub;
    x->received_us = loop_wall_us(c->loop);
    x->body = STR_ABSENT;
    ex->unread_input = true;
    ex->served = true;
    x->server_state = EXCHANGE_RUNNING;
    reply_bad_request(ex, status, why);
    x->server_state = EXCHANGE_ANSWERED;
    c->state = CONN_SENDING;
    reply_write_head(ex, false);
    conn_flush(c);
}

static void refuse_malformed(struct http_conn *c, int status, const char *text)
{
    struct err why;
    (void)err_set(&why, ERR_REQUEST_MALFORMED, "%s", text);
    conn_refuse(c, status, &why);
}

static void serve_request(struct http_conn *c)
{
    if (c->started) /* it came in pieces: later than its head */
        c->x->pub.received_us = loop_wall_us(c->loop);
    c->started = false;
    c->asked = true;
    heavy_begins(c);
    conn_serve(c, c->loop->server->config.on_request);
}

/* The body will not be read: the handler answers, then the connection closes. */
static void serve_too_large(struct http_conn *c)
{
    c->x->pub.body = STR("");
    c->x->pub.body_too_large = true;
    c->x->unread_input = true;
    serve_request(c);
}

/* While its head is in pieces it stays as idle as it was (peers.h). */
static void request_begins(struct http_conn *c)
{
    if (c->started)
        return;
    c->started = true;
    conn_deadline(c, c->loop->now_ms + loop_limits(c->loop)->request_read_ms);
}

static void send_continue(struct http_conn *c)
{
    static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct iovec iov = {text, sizeof text - 1};
    ssize_t n = transport_send(c, &iov, 1);
    /* Nothing sent: the client goes on by itself after a while. A part sent cannot be taken back. */
    if (n > 0 && n < (ssize_t)(sizeof text - 1))
        conn_close(c);
}

/* The head is well-formed; `behind` is what came after it. Gives how much of that was skipped: the body of a
 * head that the handler has refused. */
static size_t head_done(struct http_conn *c, const struct head *head, struct str behind)
{
    struct exchange *ex = c->x;
    struct http_exchange *x = &ex->pub;
    ex->body_left = head->content_length;
    ex->body_is_chunked = head->body == HEAD_BODY_CHUNKED;
    x->body = STR("");
    x->body_declared = ex->body_is_chunked ? -1 : ex->body_left;
    x->body_max = loop_limits(c->loop)->body_bytes_max;
    x->body_too_large = x->body_declared > x->body_max;
    x->body_arrived = !ex->body_is_chunked && (uint64_t)ex->body_left <= behind.len;
    x->received_us = loop_wall_us(c->loop);
    size_t skipped = x->body_arrived ? (size_t)ex->body_left : 0;
    if (!conn_offer_head(c))
        return skipped; /* the exchange may be over */
    if (head->body == HEAD_BODY_NONE) {
        serve_request(c);
        return 0;
    }
    if (x->body_too_large) {
        serve_too_large(c);
        return 0;
    }
    c->state = CONN_BODY;
    if (x->body_arrived)
        return 0;
    request_begins(c);
    if (head->expect_continue && !behind.len)
        send_continue(c);
    return 0;
}

/* Copies the head into the exchange and judges it; gives what head_done() does. */
static size_t accept_head(struct http_conn *c, struct str bytes, struct str behind)
{
    struct exchange *ex = exchange_take(c);
    struct http_exchange *x = &ex->pub;
    uint32_t fields = c->scan.lines - 1, fields_max = loop_limits(c->loop)->headers_max;
    uint32_t room = fields < fields_max ? fields : fields_max;
    struct head head;
    struct err why;
    int status = head_parse(arena_str(x->arena, bytes), ARENA_ARRAY(x->arena, struct http_header, room), room,
                            &head, &why);
    x->method = head.method_text.ptr ? head.method : HTTP_OTHER;
    x->method_text = head.method_text;
    x->path = head.path;
    x->query = head.query;
    x->headers = head.headers;
    x->header_count = head.header_count;
    ex->http_1_0 = head.http_1_0;
    ex->keep_alive = head.keep_alive;
    if (!status && target_decode_path(x->arena, head.path, &x->path, &why) != ERR_OK)
        status = 400;
    if (!status)
        return head_done(c, &head, behind);
    conn_refuse(c, status, &why);
    return 0;
}

/* Both takers give the number of bytes they used; 0 asks for more. */
static size_t take_head(struct http_conn *c, struct str bytes)
{
    enum head_end end = head_scan(&c->scan, bytes);
    if (end != HEAD_BROKEN && c->scan.at > loop_limits(c->loop)->head_bytes_max) {
        refuse_malformed(c, 431, "the request head is too large");
        return bytes.len;
    }
    switch (end) {
    case HEAD_BROKEN:
        refuse_malformed(c, 400, "the request head is not a sequence of CRLF-ended lines");
        return bytes.len;
    case HEAD_INCOMPLETE:
        return 0;
    case HEAD_COMPLETE:
        break;
    }
    size_t n = c->scan.at;
    n += accept_head(c, (struct str){bytes.ptr, n}, (struct str){bytes.ptr + n, bytes.len - n});
    c->scan = (struct head_scan){0};
    return n;
}

/* False: there is no room for so much more, which was answered. */
static bool has_room(struct http_conn *c, size_t more)
{
    if (held_has_room(c, more))
        return true;
    struct err why;
    (void)err_set(&why, ERR_EXEC_QUEUE_FULL, "requests in memory have %lld bytes, which is the limit",
                  (long long)loop_limits(c->loop)->bodies_max_bytes);
    conn_refuse(c, 503, &why);
    return false;
}

/* Room for n more: twice as much each time, but never more than the whole body takes. */
static void grow_body(struct exchange *ex, size_t n)
{
    struct strbuf *b = &ex->body_in;
    size_t whole = b->len + (size_t)ex->body_left + 1, cap = b->cap * 2;
    if (b->len + n < b->cap)
        return;
    if (cap < b->len + n + 1)
        cap = b->len + n + 1;
    b->cap = cap < whole ? cap : whole;
    b->ptr = must_realloc(b->ptr, b->cap);
}

static size_t take_counted_body(struct http_conn *c, struct str bytes)
{
    struct exchange *ex = c->x;
    bool whole = (uint64_t)ex->body_left <= bytes.len;
    size_t n = whole ? (size_t)ex->body_left : bytes.len;
    if (n && !has_room(c, n))
        return bytes.len;
    if (whole && !ex->body_in.len) { /* the usual case: one copy, no buffer */
        ex->pub.body = arena_str(ex->pub.arena, (struct str){bytes.ptr, n});
        held_by_exchange(ex, n);
        serve_request(c);
        return n;
    }
    grow_body(ex, n);
    strbuf_add(&ex->body_in, bytes.ptr, n);
    held_by_exchange(ex, ex->body_in.cap);
    ex->body_left -= (int64_t)n;
    if (whole) {
        ex->pub.body = strbuf_str(&ex->body_in);
        serve_request(c);
    }
    return n;
}

static size_t take_chunked_body(struct http_conn *c, struct str bytes)
{
    struct exchange *ex = c->x;
    struct str rest = bytes;
    struct err why;
    if (!has_room(c, bytes.len))
        return bytes.len;
    enum chunked_result result = chunked_feed(&ex->chunked, &rest, ex->pub.body_max, &ex->body_in, &why);
    held_by_exchange(ex, ex->body_in.cap);
    switch (result) {
    case CHUNKED_MORE:
        break;
    case CHUNKED_DONE:
        ex->pub.body = ex->body_in.len ? strbuf_str(&ex->body_in) : STR("");
        serve_request(c);
        break;
    case CHUNKED_BAD:
        conn_refuse(c, 400, &why);
        break;
    case CHUNKED_TOO_LARGE:
        serve_too_large(c);
        break;
    }
    return bytes.len - rest.len;
}

/* Takes requests off the front of `bytes` as long as they can be served at once. */
static size_t take_requests(struct http_conn *c, struct str bytes)
{
    size_t used = 0;
    for (uint32_t steps = 0; used < bytes.len; steps++) {
        struct str rest = {bytes.ptr + used, bytes.len - used};
        if (steps == 2 * REQUESTS_PER_ROUND) {
            loop_queue(c);
            break;
        }
        size_t n = 0;
        if (c->state == CONN_HEAD)
            n = take_head(c, rest);
        else if (c->state == CONN_BODY)
            n = c->x->body_is_chunked ? take_chunked_body(c, rest) : take_counted_body(c, rest);
        if (!n)
            break;
        used += n;
    }
    return used;
}

static void feed(struct http_conn *c, struct str fresh)
{
    bool kept = c->in.len > 0;
    if (kept)
        strbuf_add_str(&c->in, fresh);
    struct str all = kept ? strbuf_str(&c->in) : fresh;
    size_t used = take_requests(c, all);
    if (c->state == CONN_CLOSED || c->state == CONN_LINGER)
        return;
    size_t left = all.len - used;
    if (kept) {
        memmove(c->in.ptr, c->in.ptr + used, left);
        c->in.len = left;
        if (!left)
            strbuf_free(&c->in); /* an idle connection holds no buffer */
    } else if (left) {
        strbuf_add(&c->in, all.ptr + used, left);
    }
    held_by_input(c);
    if (left && c->state == CONN_HEAD && has_room(c, 0))
        request_begins(c);
}

static bool is_reading(const struct http_conn *c)
{
    return c->state == CONN_HEAD || c->state == CONN_BODY;
}

static void read_end(struct http_conn *c)
{
    c->readable = false;
    c->peer_shut = true;
    if (c->started || c->state == CONN_BODY)
        refuse_malformed(c, 400, "the connection ended within a request");
    else
        conn_close(c);
}

/* A body is read in large pieces. Outside a body little is read at a time: bytes behind a request that gets
 * parked stay in our memory until the request is answered. */
static size_t read_size(const struct http_conn *c)
{
    int64_t left = c->state == CONN_BODY && !c->x->body_is_chunked ? c->x->body_left : 0;
    return left > READ_BYTES ? READ_BYTES : left > READ_AHEAD_BYTES ? (size_t)left : READ_AHEAD_BYTES;
}

void conn_read(struct http_conn *c)
{
    char *scratch = c->loop->scratch;
    for (int reads = 0; c->readable && is_reading(c) && !c->queued; reads++) {
        if (reads == READS_PER_ROUND) {
            loop_queue(c);
            return;
        }
        if (reads && c->heavy.is && c->state == CONN_HEAD) { /* its next request waits for its turn */
            heavy_queue(c);
            return;
        }
        size_t size = read_size(c);
        ssize_t n = transport_recv(c, scratch, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            c->readable = transport_has_more(c, n, size);
            if (c->tls && tls_holds_part(c->tls))
                request_begins(c);
        } else if (n < 0) {
            conn_lost(c);
        } else if (n == 0) {
            read_end(c);
        } else {
            /* New input is signaled again. The end of input is not. */
            c->readable = transport_has_more(c, n, size) || c->peer_shut;
            feed(c, (struct str){scratch, (size_t)n});
        }
    }
}

void conn_answered(struct http_conn *c)
{
    if (c->state == CONN_HEAD && c->heavy.is)
        heavy_queue(c);
    else if (c->state == CONN_HEAD)
        conn_continue(c);
}

void conn_continue(struct http_conn *c)
{
    if (c->in.len && is_reading(c))
        feed(c, (struct str){c->loop->scratch, 0});
    conn_read(c);
}

void conn_linger(struct http_conn *c)
{
    if (c->tls && !transport_end(c)) {
        conn_close(c);
        return;
    }
    for (int reads = 0; reads < READS_PER_ROUND; reads++) {
        ssize_t n = recv(c->fd, c->loop->scratch, READ_BYTES, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n > 0)
            c->lingered_bytes += (uint32_t)n;
        if (n <= 0 || c->lingered_bytes > LINGER_BYTES_MAX) {
            conn_close(c);
            return;
        }
    }
    loop_queue(c);
}
