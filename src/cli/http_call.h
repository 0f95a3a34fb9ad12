/* cli/http_call.h - one HTTP request to the server. Knows nothing of what it means.
 *
 * No redirects are followed: a key must not travel to another host. Answers are bounded. */
#ifndef WEIR_CLI_HTTP_CALL_H
#define WEIR_CLI_HTTP_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum {
    HTTP_CONNECT_TIMEOUT_MS = 3000,
    HTTP_CALL_TIMEOUT_MS = 30000,
    HTTP_BODY_BYTES_MAX = 256 * 1024 * 1024,
};

/* The authorities that prove an https server, and the certificate we show. PEM files; NULL: the system's
 * authorities, none. */
struct http_trust {
    const char *ca, *client_cert, *client_key;
};

struct http_call {
    const char *method;
    const char *url;
    struct http_trust trust;
    const char *bearer;                          /* NULL: no Authorization */
    const char *accept;                          /* NULL: application/json */
    const char *idempotency_key, *last_event_id; /* NULL: not sent */
    struct str body;                             /* JSON; absent: none */
    int64_t timeout_ms;                          /* of the whole call; 0: none */

    /* For a stream: on_bytes gets the body of a 200 as it comes, on_idle is asked several times a
     * second. Either ends the call by false. Other answers are collected as usual. */
    bool (*on_bytes)(void *self, struct str bytes);
    bool (*on_idle)(void *self);
    void *self;
};

struct http_answer {
    long status;
    struct strbuf body;    /* free with http_answer_free */
    int64_t retry_after_s; /* 0: it did not say */
    bool stopped;          /* by on_bytes or on_idle */
};

/* STORAGE_UNAVAILABLE: no server there; DEPENDENCY_TIMEOUT: too slow; CONFIG_INVALID: not a URL. The detail
 * is one line with advice. */
MUST_CHECK enum err_code http_call(const struct http_call *call, struct http_answer *ret_answer,
                                   struct err *err);
void http_answer_free(struct http_answer *a);
void http_trust_use(const struct http_trust *trust, void *curl); /* an easy handle of libcurl */

/* Text that may stand in a path or query. */
void http_escape(struct strbuf *out, struct str text);

#endif
