/* http/problem.h - the one place errors become HTTP: RFC 9457 problem+json from a struct err. */
#ifndef WEIR_HTTP_PROBLEM_H
#define WEIR_HTTP_PROBLEM_H

#include "base/err.h"
#include "base/json.h"
#include "http/server.h"

/* {"type":"urn:weir:problem:RFA_JOB_NOT_FOUND","title","status","detail","instance","code","advice"}
 * One value, so it may also stand inside a larger answer. `instance` is the request id as text, the
 * same as in X-Request-Id; `detail` is err_told(); `advice` is left out when there is none. */
void problem_write(struct json_writer *w, const struct err *err, const struct uuid *request_id);
/* Fills status, content type, body and the headers that belong to the code (WWW-Authenticate on 401,
 * Retry-After on 429 and 503). Does not send. */
void problem_reply(struct http_exchange *x, const struct err *err);
/* The same with another status than the code's own, as for the server's 408, 417, 431 and 505; for
 * http_config.on_bad_request. */
void problem_reply_status(struct http_exchange *x, int status, const struct err *err);

/* The same as problem_reply with one more member, a UUID. */
void problem_reply_with(struct http_exchange *x, const struct err *err, const char *key,
                        const struct uuid *id);

#endif
