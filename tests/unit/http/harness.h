/* A server with a small handler, and a raw client, for the tests of src/http.
 *
 * Routes (harness.c): /echo answers "METHOD path|query|body"; /canary counts its calls; /park is resumed
 * by a second thread; /park-self resumes itself inside on_request; /hold and /timeout stay parked until
 * the test lets go; /poll is held until then; /big answers BIG_BYTES bytes; /stream is a stream; /header
 * shows reply headers.
 * A head with X-Refuse is answered 401 before its body is read.
 *
 * With WEIR_HTTP_TEST_TLS in the environment client_tcp() speaks TLS: tests about requests and answers run
 * both ways from one source. */
#ifndef WEIR_TESTS_HTTP_HARNESS_H
#define WEIR_TESTS_HTTP_HARNESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "certs.h"
#include "http/server.h"

enum { BIG_BYTES = 16 * 1024 * 1024, PATIENCE_MS = 20000, HELD_MAX = 16, ORDER_MAX = 32 };

struct harness {
    struct http_server *server;
    uint16_t port, tls_port;
    struct tls *tls;
    struct certs *certs;  /* authority "ca", certificate "server" */
    SSL_CTX *client_side; /* trusts "ca" */
    char unix_path[64];
    _Atomic uint32_t canaries, requests, dones, bad_requests;
    char order[ORDER_MAX + 1]; /* of the last requests with a query: its first letter each; one thread */
    _Atomic uint32_t ordered;
    _Atomic uint32_t ticks, stream_ends;
    _Atomic uint32_t rounds_open; /* requests whose round has not ended; meant for one thread */
    _Atomic int last_bad_status;
    _Atomic bool stop_resumer;
    _Atomic int64_t next_round_waits_ms; /* the end of the next round with a request does */
    _Atomic bool waits_unsaid;           /* without saying so */
    _Atomic uint32_t waits;              /* rounds whose end is waiting now */
    /* The exchanges that the end of the next round with a request resumes and answers itself. */
    struct http_exchange *answered_at_end[HELD_MAX];
    _Atomic uint32_t answered_at_end_count;
    _Atomic uint32_t answered_by_others; /* of those, how many it did answer itself */
    int64_t ping_ms;                     /* of /stream */
    const char *stream_piece;            /* written at every tick */
    uint32_t stream_pieces_max;          /* then the stream ends itself; 0: never */
    _Atomic bool lets_go;                /* /poll answers with its next tick */
};

bool harness_over_tls(void);
/* Starts a server on a free port and a Unix socket, and a free port for TLS. Limits may be NULL. */
struct harness *harness_start(uint32_t threads, const struct http_limits *limits);
/* Clients have to show a certificate of "ca". */
struct harness *harness_start_mutual(uint32_t threads, const struct http_limits *limits);
void harness_stop(struct harness *h); /* drain, wait until nothing is busy, stop */
void harness_stop_at_once(struct harness *h);

/* The exchange that /hold or /timeout parked last; waits for it. Not resumed yet. */
struct http_exchange *harness_held(struct harness *h);
void harness_release(struct harness *h, struct http_exchange *x);
/* True as soon as the condition holds; false after PATIENCE_MS. */
bool harness_await(bool (*holds)(struct harness *h, uint32_t n), struct harness *h, uint32_t n);
bool busy_is(struct harness *h, uint32_t n);
bool connections_are(struct harness *h, uint32_t n);
bool held_bytes_are(struct harness *h, uint32_t n);
bool holds_at_least(struct harness *h, uint32_t n);
bool dones_are(struct harness *h, uint32_t n);
bool rounds_open_are(struct harness *h, uint32_t n);
bool waits_are(struct harness *h, uint32_t n);
bool ticks_at_least(struct harness *h, uint32_t n);
bool stream_ends_are(struct harness *h, uint32_t n);

struct client {
    int fd;
    SSL *ssl;         /* NULL: plain */
    struct strbuf in; /* received, not yet taken */
};

struct answer {
    int status; /* 0: the connection ended instead */
    char head[4096];
    char body[4096]; /* the first bytes; body_len has the whole length */
    size_t body_len;
    bool closes;
};

struct client client_tcp(const struct harness *h);
struct client client_plain(const struct harness *h);            /* also where client_tcp speaks TLS */
struct client client_tls(const struct harness *h, SSL_CTX *as); /* NULL: h->client_side; status by `ssl` */
struct client client_unix(const struct harness *h);
void client_close(struct client *c);
void client_send(struct client *c, const void *bytes, size_t len); /* all of it; a closed peer is fine */
void client_text(struct client *c, const char *text);
/* Sends and waits until the server has read it (Unix sockets only). False once the peer has closed. */
bool client_send_and_wait(struct client *c, const void *bytes, size_t len);
bool client_receive(struct client *c); /* waits for some bytes; false at the end of the connection */
struct answer client_answer(struct client *c);
struct answer client_answer_to_head(struct client *c); /* no body follows */
bool client_at_end(struct client *c);                  /* waits for the server to close */
const char *answer_header(const struct answer *a, const char *name, char out[256]); /* NULL: none */

/* One with two loops for a test: HTTP_TEST(name, h) has it as `struct harness *h`. */
int harness_up(void **state);
int harness_down(void **state);
#define HTTP_TEST(name, parameter) TEST_WITH(name, struct harness *parameter, harness_up, harness_down)

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
void assert_answer(struct client *c, int status, const char *body);

#endif
