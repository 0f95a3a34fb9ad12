/* http/server.h - an HTTP/1.1 server for APIs whose answers wait for a durable commit.
 *
 * Shape:   N loop threads, each an epoll loop that owns its connections; every listener is opened in
 *          each loop (SO_REUSEPORT for TCP; one shared listening fd for the Unix socket). A request is
 *          handed to the handler on its loop's thread: its head to `on_head`, which may refuse it before
 *          a body is read, then the whole to `on_request`. The handler fills the reply and calls
 *          http_answer(), or parks the exchange by simply returning; the thread that finishes the work then
 *          calls http_resume() from any thread, and `x->on_resume` runs on the loop's thread.
 * Framing: RFC 9112, strict: anything ambiguous is answered 400 and the connection closed
 *          (the corpus of tests/unit/http). No lenient mode. Chunked and Content-Length bodies.
 *          Pipelined requests are answered in order, one at a time.
 *          No 1xx but `100 Continue` for a client that sent Expect, once on_head let the head pass.
 * Memory:  an idle connection costs a few hundred bytes; buffers exist only while a request does.
 * Bodies:  of a refused head are never kept: what came with it is skipped, else the connection closes.
 *          All bytes of requests in memory together stay within bodies_max_bytes (http/held.h); more are
 *          answered 503.
 * Bounds:  every number in struct http_limits. Slow clients: a request must arrive whole within
 *          request_read_ms, an answer must be taken within write_ms, idle connections close.
 * Errors:  framing errors are answered by the server itself through config.on_bad_request.
 * Clients that leave: a client that only shuts its sending side (`nc -N`) looks like one that closed,
 *          until we write. So the end of its input sets `gone` on a parked exchange, for handlers that
 *          would rather not do work in vain, but the answer is still sent if the socket takes it.
 *          A reset closes the socket at once; the exchange lives on until it is resumed and answered.
 * Closing: whenever the client may still be sending, the server sends its answer, shuts its own side
 *          and reads the rest away for at most 2 s and 4 MiB, so that no reset destroys the answer. */
#ifndef WEIR_HTTP_SERVER_H
#define WEIR_HTTP_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "base/uuid.h"
#include "http/tls.h"

#define HTTP_METHODS(X) X(GET) X(HEAD) X(POST) X(PUT) X(PATCH) X(DELETE) X(OPTIONS) X(OTHER)
#define X(name)         HTTP_##name,
enum http_method { HTTP_METHODS(X) HTTP_METHOD_COUNT };
#undef X
const char *http_method_text(enum http_method m);

struct http_header {
    struct str name, value;
};

/* An IPv6 address, or an IPv4 one mapped into it; all zero: the Unix socket. */
struct http_address {
    uint8_t bytes[16];
};
enum { HTTP_ADDRESS_TEXT_MAX = 64 };
/* The unit of limits by address: an IPv4 address, the /64 of an IPv6 one. */
struct http_address http_address_network(const struct http_address *a);
struct str http_address_text(const struct http_address *a, char out[HTTP_ADDRESS_TEXT_MAX]);

struct http_server;
struct http_loop;
struct http_conn;

struct http_limits { /* 0 = the default in brackets */
    uint32_t
        connections_max; /* [20000] over all loops; one more closes the longest idle one (http/peers.h), or
                                 is told 503 and closed where none is idle */
    uint32_t connections_per_address; /* [1024] likewise; IPv6 by /64 */
    uint32_t unix_max;        /* [1024] of those over the Unix socket, counted apart: clients who fill the
                                 house do not keep our own processes out */
    uint32_t head_bytes_max;  /* [16 KiB] request line + headers; more: 431 and close */
    uint32_t headers_max;     /* [100] more: 431 and close */
    int64_t body_bytes_max;   /* [1 MiB] more: body_too_large, the rest is unread, close after it */
    int64_t bodies_max_bytes; /* [256 MiB] of requests in memory, over all loops; more: 503 and close. A
                                 quarter as much of answers that are not read (http/unsent.h) */
    int64_t request_read_ms;  /* [5000] first byte to last byte of a request; then 408 and close */
    int64_t idle_ms;          /* [75000] between requests */
    int64_t write_ms;         /* [10000] from the first byte the client did not take to the last */
    int64_t handshake_ms;     /* [5000] accept to the end of a TLS handshake; then close */
    uint32_t handshakes_max;  /* [512] under way in one loop; one more ends the oldest */
};

/* One request and its answer. Lives from the last byte of the request to the last byte of the answer,
 * or longer if parked when the client goes away: until http_resume() was called. */
struct http_exchange {
    /* request, borrowed from the exchange's arena */
    enum http_method method;
    struct str method_text;
    /* Percent-decoded UTF-8 without NUL; never an encoded slash. Not normalised: empty and dot segments
     * stay and match no route. */
    struct str path;
    struct str query; /* raw, without '?'; absent when there is none */
    struct http_header *headers;
    uint32_t header_count;
    struct str body;
    int64_t body_declared; /* Content-Length; 0: there is no body; -1: chunked, so not known yet */
    int64_t body_max;      /* body_bytes_max; on_head may lower it, which then binds a chunked body */
    bool body_arrived;     /* in on_head: all of it came with the head, on_request follows at once */
    bool body_too_large;
    struct http_address peer; /* the sender */
    bool over_unix_socket;    /* came through the Unix listener: a built-in domain */
    bool peer_is_loopback;    /* 127/8, ::1, or the Unix socket */
    struct uuid request_id;   /* v4, made by the server; echoed as X-Request-Id on every answer */
    int64_t received_us;      /* wall clock at the last byte of the request; in on_head: of the head */
    struct arena *arena;      /* for anything that dies with the exchange */

    /* answer */
    int status;
    const char *content_type;    /* NULL with an empty body */
    struct strbuf reply_headers; /* "Name: value\r\n"...; see http_reply_header. The server adds Date,
                                  * framing, X-Request-Id, and Cache-Control: no-store unless set here */
    struct strbuf reply_body;
    bool close_after;

    /* the handler's own */
    void *context; /* server's user pointer */
    void *data;    /* free for the handler */
    /* Loop thread; must end in http_answer, http_stream_begin or park again. Set before parking. Also
     * called when the client is gone, so every parking has one end. */
    void (*on_resume)(struct http_exchange *x);
    /* Loop thread, at timeout_at_ms (monotonic, 0 = never; read whenever it parks) while parked. Must
     * answer; the exchange is kept until the pending http_resume() arrives, which then only frees it. */
    void (*on_timeout)(struct http_exchange *x);
    int64_t timeout_at_ms;
    _Atomic bool gone; /* the client closed while parked; readable from any thread */

    /* the server's own */
    struct http_loop *loop;
    struct http_conn *conn;
    struct http_exchange *next_resumed;
    uint32_t server_state;
    /* streaming (server-sent events) */
    /* Loop thread: once when the stream has begun, after every http_server_tick(), every ping_ms. The call
     * after a tick sees everything published before that tick. */
    void (*on_stream_tick)(struct http_exchange *x);
    /* Loop thread: the client is gone or too slow, or the server drains; free what is yours. Exactly
     * once, unless the handler ended the stream itself with http_stream_end(). */
    void (*on_stream_end)(struct http_exchange *x);
};

struct http_config {
    const char *listen_host; /* numeric address or name; NULL = no TCP listener */
    uint16_t listen_port;    /* 0 = any free one, see http_server_port */
    const char *tls_host;    /* the same for TLS (http/tls.h); both may be served side by side */
    uint16_t tls_port;
    struct tls *tls;       /* with tls_host; the caller's, and has to outlive the server */
    const char *unix_path; /* NULL = none; made with mode 0600, replaced if stale */
    uint32_t threads;
    struct http_limits limits;
    const struct clock *clock;
    void *context;
    /* Loop thread: the head is there, the body may not be. Answers with http_answer() to refuse it, or
     * returns to have the body read; never parks. May be NULL. */
    void (*on_head)(struct http_exchange *x);
    void (*on_request)(struct http_exchange *x); /* loop thread */
    /* Fills an answer (with that status, without http_answer) for a failure the server found itself:
     * 400, 408, 417, 431, 503, 505. Only what could be parsed is set. Default: problem_reply_status(). */
    void (*on_bad_request)(struct http_exchange *x, int status, const struct err *why);
    /* Loop thread, once per exchange that was answered: the last byte was handed to the kernel or the
     * client went away. Logging, metrics. May be NULL. */
    void (*on_done)(struct http_exchange *x);
    /* Loop thread: a round is over, all its callbacks have returned, and the thread may sleep next. Once more
     * before the loop ends. Releases what the requests of a round share. May be NULL. It may wait (for a
     * disk) after it has called http_round_waits(). */
    void (*on_round_end)(void *context);
};

/* From on_round_end, before a wait: if it lasts longer than some milliseconds, the connections of this loop
 * are served by another thread from then on. */
void http_round_waits(void);

MUST_CHECK enum err_code http_server_start(const struct http_config *config, struct http_server **ret_server,
                                           struct err *err);
uint16_t http_server_port(const struct http_server *s);
uint16_t http_server_tls_port(const struct http_server *s);
/* Stops accepting and closes idle connections; requests under way are answered with Connection: close;
 * streams get their last chunk. */
void http_server_drain(struct http_server *s);
/* Exchanges whose head has arrived and that are not over: parked and held ones included, streams not. */
uint32_t http_server_busy(const struct http_server *s);
uint32_t http_server_connections(const struct http_server *s);
uint32_t http_server_connections_over(const struct http_server *s, bool unix_socket); /* or TCP */
/* How TLS handshakes ended: X(name, label of the metric) */
#define HTTP_HANDSHAKE_ENDS(X)                                                                               \
    X(DONE, "done")                                                                                          \
    X(REFUSED, "refused") /* by one of the two sides, or the client left */                                  \
    X(LATE, "late")       /* handshake_ms */                                                                 \
    X(CROWDED, "crowded") /* handshakes_max */
#define X(name, label) HTTP_HANDSHAKE_##name,
enum http_handshake_end { HTTP_HANDSHAKE_ENDS(X) HTTP_HANDSHAKE_END_COUNT };
#undef X
const struct tls *http_server_tls(const struct http_server *s); /* NULL: it has no TLS listener */
uint64_t http_server_handshakes(const struct http_server *s, enum http_handshake_end end);
uint32_t http_server_connections_max(const struct http_server *s); /* over TCP */
int64_t http_server_held_bytes(const struct http_server *s);       /* of requests, in memory */
int64_t http_server_unsent_bytes(const struct http_server *s); /* of answers that wait for their clients */
/* After drain: closes everything and joins the threads. No exchange may be resumed any more, so first wait
 * until nothing is busy, or stop the threads that resume. NULL is fine. */
struct http_server *http_server_stop(struct http_server *s);

/* Header value of the first header of that name (case-insensitive), absent when there is none. */
struct str http_header(const struct http_exchange *x, const char *name);
/* Value of a query parameter, percent- and plus-decoded into the arena; absent when missing.
 * A broken escape or a NUL gives ERR_REQUEST_MALFORMED. */
MUST_CHECK enum err_code http_query(struct http_exchange *x, const char *name, struct str *ret_value,
                                    struct err *err);

/* Control bytes in the value become spaces. */
void http_reply_header(struct http_exchange *x, const char *name, struct str value);
/* The address of who sent the request, without a port; absent over the Unix socket. */
struct str http_peer(struct http_exchange *x);
/* Sends status, headers and body once the callback returns. Only from a callback of this exchange;
 * exactly once per exchange, also of one that is held. */
void http_answer(struct http_exchange *x);
/* Any thread, also before on_request has returned; exactly once per parking. Many resumes before one
 * http_wake() cost at most one wake-up per loop. */
void http_resume(struct http_exchange *x);
void http_wake(struct http_server *s);
/* From on_round_end, instead of http_wake(): the answers of what was resumed are sent here and now, also
 * those of loops that sleep, which spares their wake-up. Loops that are awake do it themselves. */
void http_answer_resumed(struct http_server *s);

/* A long poll that waits as a stream does and has no answer yet: on_stream_tick is called as for a stream,
 * and one of its calls answers with http_answer(). It has to answer when http_hold_is_over(): the server
 * drains, the client sends no more (it may have left, or may still listen), or the request is a HEAD.
 * on_stream_end is called only when there was no answer. From a callback of this exchange. */
void http_hold(struct http_exchange *x, int64_t ping_ms);
bool http_hold_is_over(const struct http_exchange *x);

/* Turns the exchange into a stream (chunked; status and content type already set; the content of reply_body
 * goes first). Only from a callback of this exchange. */
void http_stream_begin(struct http_exchange *x, int64_t ping_ms);
/* False when the client is gone or too slow (more than 1 MiB unsent; one write alone may be larger); the
 * stream then ends by itself. For many writes in a row use http_stream_more(). */
bool http_stream_write(struct http_exchange *x, struct str bytes);
/* Sends the rest, then the connection serves on; with close_after it is closed. */
void http_stream_end(struct http_exchange *x);
/* From a callback of the stream: its next tick comes after so many ms, those behind it every ping_ms. */
void http_stream_tick_in(struct http_exchange *x, int64_t ms);
/* From a callback of the stream: it has more to say. Its next tick comes when what was written is sent. */
void http_stream_more(struct http_exchange *x);
bool http_stream_waits(struct http_exchange *x); /* for that tick */
/* Any thread, cheap, coalesced: every stream's on_stream_tick runs soon. */
void http_server_tick(struct http_server *s);

#endif
