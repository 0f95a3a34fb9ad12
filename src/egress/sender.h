/* egress/sender.h - sends HTTP POSTs to untrusted receivers, thousands at a time, in one thread.
 *
 * The one way out of Weir: sender_easy.c sets every option of a transfer, and nothing else in the program
 * connects to a host that a client named.
 *
 * Owner:   one thread. Only egress_wakeup() may be called from others. Results arrive through `done`, only
 *          ever from inside egress_poll() and egress_cancel(); `done` may call egress_send().
 * Loop:    either egress_poll() with a timeout is the thread's loop, or the caller watches egress_fd() and
 *          egress_deadline_ms() in a loop of its own and calls egress_poll(e, 0).
 * Guard:   the policy is fixed for a sender's life. Every address is checked when a socket is opened for it,
 *          and the peer once more before each request goes out, so names that change their address, several
 *          answers and kept connections make no difference. The first denied address that curl comes to ends
 *          the request, even when another answer of the same name would be allowed.
 * Trusted: what the operator named goes another way around the guard: egress/trusted.h.
 * Never:   redirects, proxies (also from the environment), cookies, .netrc, authentication, HTTP/2, decoding
 *          of compressed answers, protocols other than http and https.
 * Bounded: requests in flight, their bytes, connections kept, name lookups under way; of an answer the head
 *          (EGRESS_HEAD_BYTES_MAX, EGRESS_HEAD_LINES_MAX) and the body (EGRESS_ANSWER_BYTES_MAX); in time by
 *          timeout_ms, which covers everything from egress_send() to the last byte of the answer, however it
 *          trickles.
 * Answer:  the head must be complete, and the body complete too or EGRESS_ANSWER_BYTES_MAX long: then reading
 *          stops, the connection is closed, and the status counts as if all of it had come (`cut` tells).
 *          A body that ends early or too late is a failure whatever its status was. Only the first
 *          EGRESS_EXCERPT_BYTES are kept, unless the request brings a buffer for all of it.
 * Twice:   a kept connection that turns out dead before a byte of the answer came is replaced and the request
 *          sent again by itself; receivers may see a request twice, as at-least-once has it.
 * Names:   each lookup has a thread of its own (libcurl's), so a slow one delays no other. It counts
 *          against connect_timeout_ms; given up, its thread stays until the C library's resolver returns (its
 *          own timeouts: with Debian's defaults at most 30 s). Answers are kept ten seconds.
 * Fails:   through the result; egress_send() itself refuses only what is malformed or beyond a bound. Never
 *          logs. Descriptors are the caller's: raise RLIMIT_NOFILE above in_flight_max + connections_max. */
#ifndef WEIR_EGRESS_SENDER_H
#define WEIR_EGRESS_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "egress/address.h"

/* X(name, wire name) How a request ended without a usable answer; NONE: the status tells. */
#define EGRESS_FAILURES(X)                                                                                   \
    X(NONE, "none")                                                                                          \
    X(POLICY, "refused_by_policy") /* an address of the host is denied; no byte was sent to it */            \
    X(DNS, "dns")                  /* no such host, or too many lookups at once */                           \
    X(CONNECT, "connect")          /* no connection was accepted there */                                    \
    X(TLS, "tls")                  /* handshake or certificate */                                            \
    X(TIMEOUT, "timeout")          /* connecting or the whole took too long */                               \
    X(CLOSED, "closed")            /* the connection ended before the answer did */                          \
    X(TOO_LARGE, "too_large")      /* the head of the answer is beyond its bound */                          \
    X(PROTOCOL, "protocol")        /* the answer is not HTTP/1.1 */                                          \
    X(CANCELLED, "cancelled")      /* by egress_cancel() */

#define X(name, wire) EGRESS_##name,
enum egress_failure { EGRESS_FAILURES(X) EGRESS_FAILURE_COUNT };
#undef X

const char *egress_failure_wire(enum egress_failure failure);

enum {
    EGRESS_HEAD_BYTES_MAX = 32 * 1024, /* all lines of all heads of an answer, 1xx and trailers too */
    EGRESS_HEAD_LINES_MAX = 256,       /* of the same; curl keeps a record of each */
    EGRESS_ANSWER_BYTES_MAX = 64 * 1024,
    EGRESS_EXCERPT_BYTES = 1024,
    EGRESS_ERROR_BYTES = 128,
    EGRESS_HEADERS_MAX = 32,
    EGRESS_BODY_BYTES_MAX = 4 * 1024 * 1024,
    EGRESS_TIMEOUT_MS_MAX = 3600 * 1000,
};

struct egress_request {
    struct str url;             /* checked by base/url.h */
    const struct str *headers;  /* "name: value"; not those that frame or route the message */
    size_t header_count;        /* at most EGRESS_HEADERS_MAX */
    struct str body;            /* at most EGRESS_BODY_BYTES_MAX; may be empty */
    bool get;                   /* a GET, without the body */
    int64_t timeout_ms;         /* whole; 1 to EGRESS_TIMEOUT_MS_MAX */
    int64_t connect_timeout_ms; /* lookup, connect and TLS; the same bounds */
    struct strbuf *answer; /* emptied, then gets the body (unless cut: `cut` tells); NULL: only an excerpt */
    void *owner;           /* comes back with the result */
};

/* Borrowed: dies when `done` returns. */
struct egress_result {
    void *owner;
    enum egress_failure failure;
    const char *error;      /* for people, without addresses; "" when failure is NONE */
    int status;             /* 0: no head of an answer came; else its status, also beside a failure */
    int64_t duration_ms;    /* from egress_send() on */
    int64_t retry_after_ms; /* egress/retry_after.h; -1: absent or unreadable */
    struct str excerpt;     /* of the body; any bytes */
    bool cut;               /* the body was longer than EGRESS_ANSWER_BYTES_MAX */
};

typedef void egress_done_fn(void *self, const struct egress_result *result);

struct egress_config {
    struct egress_policy policy;
    uint32_t in_flight_max;   /* requests; about 17 KiB each besides its bytes; pooled, never given back */
    uint32_t connections_max; /* open, in use or kept: beyond it a used one is closed; 1/8 per endpoint */
    uint32_t lookups_max;     /* names being looked up; one more fails with DNS at once */
    size_t bytes_max;         /* URLs, headers and bodies in flight together */
    const char *ca_file;      /* NULL: the system's authorities */
    const struct clock *clock;
    egress_done_fn *done;
    void *self; /* of done */
};

struct egress;

struct egress *egress_new(const struct egress_config *config);
/* Drops requests in flight without a result. NULL is fine; always returns NULL. */
struct egress *egress_free(struct egress *e);

/* Copies the request. ERR_REQUEST_MALFORMED (it will never do), ERR_EXEC_QUEUE_FULL (later it will), or
 * ERR_INTERNAL (curl refused; another request may do). */
MUST_CHECK enum err_code egress_send(struct egress *e, const struct egress_request *request, struct err *err);
uint32_t egress_in_flight(const struct egress *e);
/* Whether a request may have this header: ERR_REQUEST_MALFORMED names it, without its value. */
MUST_CHECK enum err_code egress_header_check(struct str line, struct err *err);

/* Waits up to timeout_ms (-1: without end) for something to do, does it, hands results over. */
void egress_poll(struct egress *e, int64_t timeout_ms);
int egress_fd(const struct egress *e);              /* readable: egress_poll() has something to do */
int64_t egress_deadline_ms(const struct egress *e); /* mono; egress_poll() is due then; INT64_MAX: never */
void egress_wakeup(struct egress *e); /* any thread: the egress_poll() under way, or else the next, returns */

typedef bool egress_wanted_fn(void *self, void *owner);
/* Ends the requests of the owners that are wanted, or every one, with CANCELLED; egress_send() refuses until
 * it returns. */
void egress_cancel(struct egress *e, egress_wanted_fn *wanted, void *self);
void egress_cancel_all(struct egress *e);

#endif
