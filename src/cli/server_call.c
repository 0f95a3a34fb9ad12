#include "cli/server_call.h"

#include <stdlib.h>

#include "cli/table.h"

#include "base/banned.h"

/* NULL when unset or empty. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

void server_url(const struct invocation *in, struct strbuf *out)
{
    const char *url = in->flags->value[FLAG_URL];
    if (!url)
        url = variable("WEIR_URL");
    if (!url)
        url = "http://127.0.0.1:8080";
    strbuf_clear(out);
    if (!strstr(url, "://"))
        strbuf_add_text(out, "http://");
    strbuf_add_text(out, url);
    while (out->len && out->ptr[out->len - 1] == '/')
        out->ptr[--out->len] = 0;
}

static const char *flag_or_variable(const struct invocation *in, enum flag_id flag, const char *name)
{
    return in->flags->value[flag] ? in->flags->value[flag] : variable(name);
}

struct http_trust server_trust(const struct invocation *in)
{
    return (struct http_trust){
        .ca = flag_or_variable(in, FLAG_CA, "WEIR_CA"),
        .client_cert = flag_or_variable(in, FLAG_CLIENT_CERT, "WEIR_CLIENT_CERT"),
        .client_key = flag_or_variable(in, FLAG_CLIENT_KEY, "WEIR_CLIENT_KEY"),
    };
}

const char *server_key(const struct invocation *in)
{
    const char *key = in->flags->value[FLAG_KEY];
    return key ? key : variable("WEIR_API_KEY");
}

const char *server_operator(const struct invocation *in)
{
    const char *token = in->flags->value[FLAG_OPERATOR_TOKEN];
    return token ? token : variable("WEIR_OPERATOR_TOKEN");
}

const char *server_operator_or_key(const struct invocation *in)
{
    if (in->flags->value[FLAG_OPERATOR_TOKEN])
        return in->flags->value[FLAG_OPERATOR_TOKEN];
    if (in->flags->value[FLAG_KEY])
        return in->flags->value[FLAG_KEY];
    const char *token = variable("WEIR_OPERATOR_TOKEN");
    return token ? token : variable("WEIR_API_KEY");
}

bool server_key_is_flag(const struct invocation *in)
{
    return flags_has(in->flags, FLAG_OPERATOR_TOKEN) || flags_has(in->flags, FLAG_KEY);
}

void server_answer_free(struct server_answer *a)
{
    http_answer_free(&a->http);
    a->arena = arena_free(a->arena);
}

enum err_code server_ask(const struct invocation *in, const struct server_call *call,
                         struct server_answer *ret_answer, struct err *err)
{
    struct strbuf url CLEANUP(strbuf_free) = {0};
    struct err no_json;
    *ret_answer = (struct server_answer){.arena = arena_new(16384)};
    server_url(in, &url);
    strbuf_add_str(&url, call->path);
    struct http_call http = {
        .method = call->method,
        .url = url.ptr,
        .trust = server_trust(in),
        .bearer = call->bearer,
        .idempotency_key = call->idempotency_key,
        .accept = call->accept,
        .body = call->body,
        .timeout_ms = call->timeout_ms ? call->timeout_ms : HTTP_CALL_TIMEOUT_MS,
    };
    if (http_call(&http, &ret_answer->http, err) != ERR_OK)
        return err->code;
    struct str body = strbuf_str(&ret_answer->http.body);
    if (json_parse(ret_answer->arena, body, &ret_answer->json, &no_json) != ERR_OK)
        ret_answer->json = NULL;
    return ERR_OK;
}

int server_try(const struct invocation *in, const struct server_call *call, struct server_answer *ret_answer)
{
    struct err err;
    return server_ask(in, call, ret_answer, &err) == ERR_OK ? CLI_OK : cli_err(&err);
}

/* The advice of our own list of errors for this code; the answer itself has no room for it. */
static const char *advice_for(struct str wire)
{
    for (int i = 0; i < ERR_CODE_COUNT; i++)
        if (wire.ptr && str_is(wire, err_wire((enum err_code)i)))
            return err_advice((enum err_code)i);
    return "";
}

/* Outside text for stderr: the table makes it harmless. */
static void tell(struct str title, struct str detail, struct str code, const char *advice)
{
    struct strbuf line CLEANUP(strbuf_free) = {0};
    struct text_table *t = text_table_new(NULL, 1);
    strbuf_addf(&line, "weir: %.*s", STR_ARG(title));
    if (detail.len)
        strbuf_addf(&line, ": %.*s", STR_ARG(detail));
    if (code.len)
        strbuf_addf(&line, " (%.*s)", STR_ARG(code));
    text_table_add(t, strbuf_str(&line));
    if (*advice) {
        strbuf_clear(&line);
        strbuf_addf(&line, "      %s", advice);
        text_table_add(t, strbuf_str(&line));
    }
    text_table_print(t, stderr, 0, false);
    text_table_free(t);
}

static bool is_credentials(struct str code)
{
    return str_is(code, err_wire(ERR_AUTH_INVALID_CREDENTIALS)); /* the advice for these is about headers */
}

const char *server_advice_key(long status, struct str code)
{
    (void)status;
    return is_credentials(code) ? "check --key or WEIR_API_KEY" : NULL;
}

const char *server_advice_no_key(long status, struct str code)
{
    (void)status;
    return is_credentials(code) ? "give --key or set WEIR_API_KEY; `weir client create --with-key` makes one"
                                : NULL;
}

const char *server_advice_operator(long status, struct str code)
{
    (void)code;
    return status == 401 || status == 403
               ? "give --operator-token or set WEIR_OPERATOR_TOKEN; a token of the "
                 "role owner or Admin without tenant is one, too"
               : NULL;
}

int server_judge(const struct server_answer *answer, server_advice_fn *advice)
{
    long status = answer->http.status;
    enum cli_exit code = exit_code_of_status(status);
    const struct json *problem = answer->json;
    if (code == CLI_OK && problem)
        return CLI_OK;
    struct str title = json_text(problem, "title"), wire = json_text(problem, "code");
    if (code == CLI_OK || !title.ptr) {
        cli_fault("the server answered %ld with something that is not Weir's API; check --url", status);
        return code == CLI_OK ? CLI_FAILED : (int)code;
    }
    const char *own = advice(status, wire);
    tell(title, json_text(problem, "detail"), wire, own ? own : advice_for(wire));
    return (int)code;
}

int server_call(const struct invocation *in, const struct server_call *call, struct server_answer *ret_answer)
{
    server_advice_fn *by_key = call->bearer ? server_advice_key : server_advice_no_key;
    int code = server_try(in, call, ret_answer);
    return code == CLI_OK ? server_judge(ret_answer, call->advice ? call->advice : by_key) : code;
}

void server_print_json(const struct server_answer *a)
{
    struct str body = str_trim(strbuf_str(&a->http.body));
    fwrite(body.ptr, 1, body.len, stdout);
    fputc('\n', stdout);
}

int server_show(const struct invocation *in, const struct server_answer *a,
                void (*show)(const struct json *answer))
{
    if (in->json)
        server_print_json(a);
    else
        show(a->json);
    return CLI_OK;
}
