/* Tokens and calls of the Engine API. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/must.h"
#include "cli/run_internal.h"
#include "cli/token_internal.h"
#include "tokens/token_mint.h"

#include "base/banned.h"

enum { MADE_TTL_SECONDS = 300, MADE_FRESH_MS = 60000 };

static const char no_token[] = "no token: set WEIR_TOKEN or give --token (`weir token mint` makes one); on "
                               "the server's machine --data DIR "
                               "with its data directory is enough";

/* Is there this path, which only a server makes, in the data directory? */
static bool holds(const char *data_dir, const char *name)
{
    struct strbuf path CLEANUP(strbuf_free) = {0};
    struct stat found;
    strbuf_addf(&path, "%s/%s", data_dir, name);
    return stat(path.ptr, &found) == 0;
}

static bool is_of_server(const char *data_dir)
{
    return holds(data_dir, "core.sock") || holds(data_dir, "weir.db") || holds(data_dir, "keys");
}

/* A token made here goes to this machine only. */
static bool server_is_here(const struct invocation *in)
{
    struct strbuf url CLEANUP(strbuf_free) = {0};
    server_url(in, &url);
    const char *host = strstr(url.ptr, "://") + 3;
    struct str rest = str_of(host);
    return str_starts(rest, "127.") || str_starts(rest, "localhost") || str_starts(rest, "[::1]");
}

static struct str flag_or(const struct invocation *in, enum flag_id id, const char *otherwise)
{
    return str_of(in->flags->value[id] ? in->flags->value[id] : otherwise);
}

static int make_token(struct run_access *x)
{
    struct token_tool t CLEANUP(token_tool_free) = {0};
    struct token_key key CLEANUP(token_key_free) = {0};
    char kid[KEY_ID_MAX + 1];
    struct err err;
    int code = token_tool_open(x->in, &t);
    if (code != CLI_OK)
        return code;
    if (!server_is_here(x->in) || !is_of_server(t.settings.data_dir)) {
        cli_fault("%s", no_token);
        return CLI_AUTH;
    }
    struct token_order order = {.subject = flag_or(x->in, FLAG_SUB, t.actor),
                                .roles = flag_or(x->in, FLAG_ROLE, "Admin"),
                                .tenant = flag_or(x->in, FLAG_TENANT, "default"),
                                .ttl_seconds = MADE_TTL_SECONDS};
    if (key_files_signer(&t.place, TOKEN_ALG_ES256, str_of(t.actor), t.now, kid, &key, &err) != ERR_OK)
        return cli_err(&err);
    strbuf_clear(&x->made);
    if (token_mint(&order, &t.policy, str_of(kid), &key, t.now, &x->made, &err) != ERR_OK) {
        cli_fault("%s", err.detail);
        return err.code == ERR_REQUEST_MALFORMED ? CLI_USAGE : CLI_FAILED;
    }
    x->made_at_ms = clock_mono_ms(&clock_system);
    return CLI_OK;
}

int run_access_open(const struct invocation *in, struct run_access *ret_access)
{
    static const enum flag_id of_made[] = {FLAG_TENANT, FLAG_ROLE, FLAG_SUB};
    const char *found = getenv("WEIR_TOKEN");
    *ret_access = (struct run_access){.in = in, .given = in->flags->value[FLAG_TOKEN]};
    for (size_t i = 0; i < LENGTH_OF(of_made); i++) {
        if (!flags_has(in->flags, of_made[i]))
            continue;
        if (ret_access->given) {
            cli_fault("--%s is for a token made here; --token says already who calls",
                      flag_table[of_made[i]].name);
            return CLI_USAGE;
        }
        found = NULL; /* arguments count more than files found nearby */
    }
    if (!ret_access->given && found && *found)
        ret_access->given = found;
    return ret_access->given ? CLI_OK : make_token(ret_access);
}

void run_access_free(struct run_access *x)
{
    strbuf_free(&x->made);
}

const char *run_access_bearer(struct run_access *x)
{
    if (x->given)
        return x->given;
    if (clock_mono_ms(&clock_system) >= x->made_at_ms + MADE_FRESH_MS && make_token(x) != CLI_OK)
        return NULL;
    return x->made.ptr;
}

/* ---- what to do about a problem ---- */

static const char *advise(long status, struct str code)
{
    static const struct {
        enum err_code code;
        const char *advice;
    } ours[] = {
        {ERR_AUTHZ_REASON_REQUIRED, "say why with --reason"},
        {ERR_REQUEST_MALFORMED, "fix what is named; the contract is at /openapi/engine.yaml"},
        {ERR_RUN_CONFLICT, "use another --run-id, or none"},
        {ERR_SIGNAL_DUPLICATE, "leave --signal-id out, or use a new one"},
        {ERR_PLAN_NOT_FOUND, "check id, version and tenant; `weir run plan put FILE` stores a plan"},
        {ERR_RUN_NOT_FOUND, "check the run id and the tenant; `weir run list` shows them"},
        {ERR_RUN_TERMINAL, "`weir run signal RUN_ID retry-run` starts it again as a new run"},
    };
    if (status == 404 && str_is(code, err_wire(ERR_RUN_HIDDEN)))
        return "check the run id and the tenant; `weir run list` shows them";
    for (size_t i = 0; i < LENGTH_OF(ours); i++)
        if (str_is(code, err_wire(ours[i].code)))
            return ours[i].advice;
    return NULL;
}

static const char *advise_given(long status, struct str code)
{
    if (status == 401)
        return "check --token or WEIR_TOKEN; `weir token verify` says what is wrong with it";
    return advise(status, code);
}

static const char *advise_made(long status, struct str code)
{
    if (status == 401)
        return "the server does not know the keys of this data directory: give --data, or a --token";
    return advise(status, code);
}

server_advice_fn *run_access_advice(const struct run_access *x)
{
    return x->given ? advise_given : advise_made;
}

/* ---- calls ---- */

struct str run_path(struct arena *a, const char *run_id, const char *rest)
{
    struct strbuf id CLEANUP(strbuf_free) = {0};
    http_escape(&id, str_of(run_id));
    return arena_printf(a, "/engine/v1/runs/%.*s%s", STR_ARG(strbuf_str(&id)), rest);
}

int run_call(struct run_access *x, const char *method, struct str path, struct str body,
             struct server_answer *ret_answer)
{
    struct server_call call = {.method = method,
                               .path = path,
                               .body = body,
                               .bearer = run_access_bearer(x),
                               .advice = run_access_advice(x)};
    return call.bearer ? server_call(x->in, &call, ret_answer) : CLI_AUTH;
}

int run_read(struct run_access *x, const char *rest, struct server_answer *ret_answer)
{
    struct arena *a = arena_new(512);
    int code = run_call(x, "GET", run_path(a, x->in->args[0], rest), STR_ABSENT, ret_answer);
    arena_free(a);
    return code;
}
