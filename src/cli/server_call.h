/* cli/server_call.h - calls of the server as commands make them: address, key or token, JSON, problems.
 *
 * A problem is told on stderr (title, detail, advice) and becomes an exit code. */
#ifndef WEIR_CLI_SERVER_CALL_H
#define WEIR_CLI_SERVER_CALL_H

#include "base/json_members.h"
#include "cli/command.h"
#include "cli/http_call.h"

/* Advice about a problem of this code; NULL: that of the list of errors. */
typedef const char *server_advice_fn(long status, struct str code);

struct server_call {
    const char *method;
    struct str path;    /* "/v1/jobs?limit=5" */
    struct str body;    /* absent: none */
    const char *bearer; /* NULL: none */
    const char *idempotency_key;
    const char *accept;       /* NULL: application/json */
    int64_t timeout_ms;       /* 0: HTTP_CALL_TIMEOUT_MS */
    server_advice_fn *advice; /* NULL: server_advice_key, or _no_key without a bearer */
};

struct server_answer {
    struct http_answer http;
    struct arena *arena;
    const struct json *json; /* NULL when the body is no JSON */
};

/* CLI_OK on any 2xx with JSON. Free the answer with server_answer_free in every case. */
int server_call(const struct invocation *in, const struct server_call *call,
                struct server_answer *ret_answer);
/* Without a word: ERR_OK means there is an answer, whatever its status. */
enum err_code server_ask(const struct invocation *in, const struct server_call *call,
                         struct server_answer *ret_answer, struct err *err);
/* Without words about refusals: CLI_OK means there is an answer, whatever its status. */
int server_try(const struct invocation *in, const struct server_call *call, struct server_answer *ret_answer);
/* Tells the problem, if it is one; gives the exit code of its status. */
int server_judge(const struct server_answer *answer, server_advice_fn *advice);
server_advice_fn server_advice_key, server_advice_no_key;
server_advice_fn server_advice_operator; /* of calls that take no client's key: --key is not sent with them */
void server_answer_free(struct server_answer *a);

/* The answer as it came, one line. */
void server_print_json(const struct server_answer *a);
/* The same with -o json, else as people read it. Gives CLI_OK. */
int server_show(const struct invocation *in, const struct server_answer *a,
                void (*show)(const struct json *answer));

/* "http://127.0.0.1:8080", without a slash at the end; into `out`. */
void server_url(const struct invocation *in, struct strbuf *out);
/* --ca, --client-cert, --client-key, or WEIR_CA, WEIR_CLIENT_CERT, WEIR_CLIENT_KEY */
struct http_trust server_trust(const struct invocation *in);
const char *server_key(const struct invocation *in);      /* --key or WEIR_API_KEY, or NULL */
const char *server_operator(const struct invocation *in); /* --operator-token, WEIR_OPERATOR_TOKEN, or NULL */
const char *server_operator_or_key(const struct invocation *in); /* the operator token first */
bool server_key_is_flag(const struct invocation *in);            /* given by hand, not found around */

#endif
