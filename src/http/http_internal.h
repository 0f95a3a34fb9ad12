/* http/http_internal.h - loop, connection and exchange, for the files of this folder only.
 *
 * Threads: everything here belongs to one loop's thread, but for what is _Atomic.
 * Order:   a connection is never freed while its loop handles events: conn_close() puts it on the
 *          loop's `closed` list, and the loop frees that list when the round is over. So a function may
 *          look at c->state after any call.
 *
 * Connection            reads?  deadline                      leaves when
 *   HANDSHAKE of TLS (handshake.h)     yes   handshake_ms                  it is over
 *   HEAD     idle or a head in pieces  yes   idle_ms, or request_read_ms   the head is whole
 *   BODY     on_head took the head,    yes   request_read_ms               the body is whole
 *            the body is arriving
 *   PARKED   the handler has it        no    the exchange's timeout        the handler answers
 *   SENDING  the answer is unsent      no    write_ms                      its last byte is out
 *   STREAM   server-sent events        no    ping, write_ms                either side ends it
 *   LINGER   answered, closing         drops LINGER_MS                     the client closes too
 *   CLOSED   waits to be freed */
#ifndef WEIR_HTTP_INTERNAL_H
#define WEIR_HTTP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/heap.h"
#include "base/heart.h"
#include "http/chunked.h"
#include "http/handshake.h"
#include "http/head.h"
#include "http/heavy.h"
#include "http/held.h"
#include "http/listen.h"
#include "http/peers.h"
#include "http/server.h"
#include "http/loop_takeover.h"
#include "http/stream.h"
#include "http/unsent.h"

enum {
    READ_BYTES = 64 * 1024, /* the largest recv() */
    READ_AHEAD_BYTES = 16 * 1024,
    READS_PER_ROUND = 16, /* then the other connections get their turn */
    REQUESTS_PER_ROUND = 16,
    ACCEPTS_PER_ROUND = 64,
    EVENTS_PER_ROUND = 256,
    ARENA_FIRST_BYTES = 4096,
    POOLED_EXCHANGES_MAX = 256, /* a loop */
    POOLED_BUFFER_BYTES_MAX = 16 * 1024,
    LINGER_MS = 2000,
    LINGER_BYTES_MAX = 4 * 1024 * 1024,
    STREAM_UNSENT_MAX = 1024 * 1024,
    ACCEPT_PAUSE_MS = 100,        /* out of file descriptors: look again later */
    DRAIN_FRESH_MS = 250,         /* a connection accepted while draining may still ask once */
    REFUSED_CONNECTIONS_MAX = 64, /* told why at a time; beyond these: 503 without a word, and closed */
    LISTENERS_MAX = 4,            /* of a name, for each kind */
};

enum exchange_phase {
    EXCHANGE_READING,  /* its body is arriving */
    EXCHANGE_RUNNING,  /* a callback of the handler is on the stack */
    EXCHANGE_PARKED,   /* another thread will resume it */
    EXCHANGE_ANSWERED, /* http_answer() was called */
    EXCHANGE_STREAM,
    EXCHANGE_OWED, /* timed out and answered; kept until its resume comes */
};

struct exchange {
    struct http_exchange pub; /* pub.server_state holds an exchange_phase */
    struct strbuf out;        /* head of the answer; for a stream everything unsent */
    struct strbuf body_in;    /* a body that came in pieces */
    size_t out_sent, body_sent;
    int64_t body_left; /* of Content-Length */
    size_t held_bytes; /* counted (held.h) */
    struct chunked chunked;
    bool body_is_chunked, http_1_0;
    bool keep_alive;   /* as the client asked */
    bool unread_input; /* part of the request was not read: close gently */
    bool closing;      /* the answer said Connection: close */
    bool owes_resume;  /* answered by its timeout while the work goes on elsewhere */
    bool served;       /* the handler has seen it: on_done is due with its answer */
    bool heavy;        /* counted as under way (heavy.c) */

    enum stream_state stream;
    bool held, stream_bare;        /* ticks as a stream, answered as a whole; no chunk framing: HTTP/1.0 */
    bool stream_told, stream_more; /* its handler knows that it ends; a tick is due when all is sent */
    int64_t ping_ms, next_ping_ms;
    int64_t stuck_at_ms; /* 0: the kernel takes all we have; else give up then */

    struct unsent_place unsent;
    struct exchange *next, *prev; /* in the loop's streams, or owed, or (next only) pool */
};

enum conn_state {
    CONN_HEAD,
    CONN_HANDSHAKE,
    CONN_BODY,
    CONN_PARKED,
    CONN_SENDING,
    CONN_STREAM,
    CONN_LINGER,
    CONN_CLOSED,
};

struct http_conn {
    struct heap_node timer;
    int64_t deadline_ms; /* the truth; the timer may ring earlier and is then set again */
    struct http_loop *loop;
    struct exchange *x;
    struct tls_conn *tls;          /* NULL: plain */
    struct http_conn *next, *prev; /* all of the loop's */
    struct http_conn *next_queued, *next_closed;
    struct strbuf in;  /* received, not yet taken */
    size_t held_bytes; /* of it, counted (held.h) */
    struct head_scan scan;
    uint32_t lingered_bytes;
    int fd; /* -1: the client is gone while the exchange is still under way */
    enum conn_state state;
    struct http_address peer;
    struct conn_place place;
    _Atomic int64_t idle_since_ms; /* or PEERS_NOT_IDLE; written by its loop */
    enum peers_verdict verdict;    /* not admitted: it gets a 503 and nothing else */
    bool over_unix_socket, peer_is_loopback;
    bool readable;  /* edge-triggered: there may be more to recv() */
    bool peer_shut; /* the client will send no more */
    bool started;   /* a request has begun: the deadline is its own */
    bool asked;     /* had at least one request */
    bool queued;    /* in the loop's todo list, or among the heavy */
    struct heavy_conn heavy;
};

struct http_loop {
    struct http_server *server;
    uint32_t number;
    struct heart *heart;             /* beaten by the thread that serves it */
    int epoll_fd, wake_fd, spare_fd; /* the last is let go to refuse a connection when there is no other */
    struct listener listeners[2 * LISTENERS_MAX + 1];
    uint32_t listener_count;
    bool listening;
    int64_t accept_again_ms; /* 0: not paused */

    pthread_mutex_t own; /* held while it is awake; guards what follows */
    int64_t now_ms, sleeps_until_ms;
    struct heap timers;
    struct http_conn *conns, *closed;
    struct http_conn *todo_first, *todo_last; /* loop_queue */
    struct heavy heavy;
    struct handshakes handshakes;
    struct unsent unsent;
    struct exchange *streams, *owed, *pool;
    uint32_t pool_count;
    int64_t date_second;
    char date[32];
    bool drain_begun;
    char *scratch, *record; /* READ_BYTES; TLS_RECORD_BYTES_MAX where TLS is served */
    struct epoll_event *events;

    /* touched by other threads */
    _Alignas(64) _Atomic(struct http_exchange *) resumed;
    _Atomic bool sleeping, ticked, evicts;
    struct http_conn *evicted;                                 /* guarded by the lock of peers */
    _Atomic int64_t waits_since_ms;                            /* the end of its round does; 0: it does not */
    _Atomic uint32_t busy_count, stream_count, conn_counts[2]; /* by the loop only; [1]: Unix socket */
    _Atomic uint64_t handshake_ends[HTTP_HANDSHAKE_END_COUNT]; /* likewise */
    _Atomic int64_t held_bytes, unsent_bytes;                  /* likewise */
};

struct http_server {
    struct http_config config;
    struct server_thread *threads;
    uint32_t thread_count; /* started */
    struct loop_takeover loop_takeover;
    struct http_loop *loops;
    uint32_t loop_count;
    uint16_t port, tls_port;
    int unix_fd;
    char *unix_path;
    ino_t unix_inode;
    struct peers *peers;
    _Atomic uint32_t refused_count; /* connections that are told so */
    _Atomic bool draining, stopping;
};

static inline struct exchange *exchange_of(struct http_exchange *x)
{
    return CONTAINER_OF(x, struct exchange, pub);
}
static inline const struct http_limits *loop_limits(const struct http_loop *l)
{
    return &l->server->config.limits;
}
static inline int64_t loop_wall_us(const struct http_loop *l)
{
    return clock_wall_us(l->server->config.clock);
}
static inline void conn_idle(struct http_conn *c, int64_t since_ms)
{
    atomic_store_explicit(&c->idle_since_ms, since_ms, memory_order_relaxed);
}
static inline void count_add(_Atomic uint32_t *counter, int by) /* one writer: nothing is locked */
{
    uint32_t old = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, old + (uint32_t)by, memory_order_relaxed);
}

/* exchange.c: the pool */
struct exchange *exchange_take(struct http_conn *c);
void exchange_give_back(struct http_loop *l, struct exchange *ex);
void exchange_pool_free(struct http_loop *l);
void exchange_list_add(struct exchange **list, struct exchange *ex);
void exchange_list_remove(struct exchange **list, struct exchange *ex);

/* reply.c: the head of an answer */
void reply_write_head(struct exchange *ex, bool stream);
void reply_bad_request(struct exchange *ex, int status, const struct err *why);

/* conn.c: life and deadlines. NULL when the kernel has no room for it; fd is closed then. */
struct http_conn *conn_open(struct http_loop *l, int fd, bool is_unix, const struct http_address *peer);
void conn_close(struct http_conn *c);
void conn_close_socket(struct http_conn *c);             /* the exchange, if any, lives on */
void conn_hang_up(struct http_conn *c, bool more_input); /* after the last answer */
void conn_lost(struct http_conn *c);                     /* the socket is dead */
void conn_deadline(struct http_conn *c, int64_t at_ms);
void conn_on_event(struct http_conn *c, uint32_t events);
void conn_on_deadline(struct http_conn *c);
void conn_on_turn(struct http_conn *c); /* from the todo list */
void conn_drain(struct http_conn *c);
void conn_free(struct http_conn *c);

/* conn_read.c */
void conn_read(struct http_conn *c);
void conn_answered(struct http_conn *c); /* goes on with its next request, at once or in its turn */
void conn_continue(struct http_conn *c); /* pipelined bytes first, then the socket */
void conn_refuse(struct http_conn *c, int status, const struct err *why);
void conn_linger(struct http_conn *c);

/* conn_serve.c: handing the exchange to the handler, and sending what it gives back */
bool conn_offer_head(struct http_conn *c); /* false: it was answered, the body is not wanted */
void conn_serve(struct http_conn *c, void (*callback)(struct http_exchange *x));
void conn_resumed(struct http_exchange *x);
void conn_flush(struct http_conn *c);
void conn_exchange_ends(struct http_conn *c); /* its answer is out, or the client is gone */

/* loop.c. Sends the answers of a loop that sleeps, which spares its wake-up. False: it is awake. */
bool loop_answer_for(struct http_loop *l);
/* Rounds until the server stops (true) or another thread has taken the loop over (false). */
bool loop_serve(struct http_loop *l);
void loop_queue(struct http_conn *c); /* conn_on_turn() soon */
void loop_wake(struct http_loop *l);

#endif
