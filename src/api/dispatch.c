/* The one order of checks (AJ-12), and the steps every handler shares. */
#include <stdatomic.h>
#include <stdio.h>

#include "api/api.h"
#include "api/engine/policy_point.h"
#include "api/host_check.h"
#include "api/issuer_fetches.h"
#include "base/digest.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/must.h"
#include "base/time_text.h"

#include "base/banned.h"

enum { ANONYMOUS_BODY_MAX = 16 * 1024 };

static bool is_of_credentials(enum err_code code)
{
    return code == ERR_AUTH_INVALID_CREDENTIALS || code == ERR_AUTH_TOKEN_EXPIRED ||
           code == ERR_AUTH_API_KEY_DISABLED;
}

/* Whoever tries credentials is told how good they are only so often. */
static struct err limited(const struct call *c, const struct err *err)
{
    struct err instead;
    bool counts = is_of_credentials(err->code) && !c->x->over_unix_socket;
    bool may = !counts || address_limits_take(c->api->address_limits, &c->x->peer, ADDRESS_ANONYMOUS,
                                              &instead) == ERR_OK;
    return may ? *err : instead;
}

void call_problem(struct call *c, const struct err *err)
{
    struct err shown = limited(c, err);
    c->err = shown;
    metrics_problem(c->api->metrics, shown.code);
    if (err_http_status(shown.code) >= 500)
        reads_end(c->api->reads); /* it may have been a read that failed: the next one begins anew */
    if (shown.code == ERR_STORE_FSYNC)
        shown.code = ERR_STORAGE_DB_ERROR; /* the catalog's codes and words; the log has the exact ones */
    if (shown.code == ERR_STORE_CORRUPT)
        err_set(&shown, ERR_INTERNAL, "stored data of this request is damaged; the log says which");
    problem_reply(c->x, &shown);
    http_answer(c->x);
}

void call_problem_of_policy(struct call *c, const struct err *err, const struct uuid *policy_id)
{
    c->err = *err;
    metrics_problem(c->api->metrics, err->code);
    problem_reply_with(c->x, err, "policyDecisionId", policy_id);
    http_answer(c->x);
}

void call_fail(struct call *c, enum err_code code, const char *fmt, ...)
{
    struct err err = {.code = code};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err.detail, sizeof err.detail, fmt, ap);
    va_end(ap);
    call_problem(c, &err);
}

void call_json(struct call *c, int status, struct json_writer *w)
{
    c->x->status = status;
    c->x->content_type = "application/json";
    strbuf_clear(&c->x->reply_body);
    jw_start(w, &c->x->reply_body);
}

void call_send(struct call *c)
{
    http_answer(c->x);
}

/* --- the way to the commit thread and back ------------------------------------------------------- */

static void command_done(struct command *command)
{
    http_resume(((struct call *)command->owner)->x);
}

/* Of one that is parked. It is asked for nothing when keys have changed: its handler looks whether the
 * caller's still holds, and posts it again. */
static bool command_abandoned(const struct command *command)
{
    const struct call *c = command->owner;
    return atomic_load_explicit(&c->x->gone, memory_order_relaxed) || credential_is_stale(c);
}

static void resumed(struct http_exchange *x)
{
    struct call *c = x->data;
    if (c->command->result != ERR_OK)
        call_problem(c, &c->command->err);
    else
        c->finish(c);
    reads_request_end(c->api->reads);
}

static void timed_out(struct http_exchange *x)
{
    call_fail(x->data, ERR_EXEC_TIMEOUT,
              "the server did not get to it in time; it may still be done: ask again with the same key");
}

/* Who takes turns with whom when there is much to do: clients, tenants, and the built-in domains as one. */
static int64_t flow_of(const struct call *c)
{
    if (!c->claims || c->who.client)
        return c->who.client;
    struct str tenant = c->claims->tenant_id;
    return (int64_t)hash_fnv1a(HASH_FNV_START, tenant.ptr, tenant.len);
}

/* From degraded on nobody waits as long as usual, except for what is never refused. */
static int64_t timeout_ms(const struct call *c, const struct command_type *type)
{
    int64_t ms = c->api->config.settings->request_timeout_ms;
    bool hurries = !type->critical && overload_level(c->api->overload) >= PRESSURE_DEGRADED;
    return hurries ? ms / 2 : ms;
}

void call_post(struct call *c, struct command *command, const struct command_type *type,
               int64_t extra_wait_ms, void (*finish)(struct call *c))
{
    command->type = type;
    command->owner = c;
    command->done = command_done;
    command->abandoned = command_abandoned;
    command->received_us = c->x->received_us;
    command->bytes = c->x->body.len;
    c->command = command;
    c->finish = finish;
    c->x->on_resume = resumed;
    c->x->on_timeout = timed_out;
    command->client = flow_of(c);
    c->x->timeout_at_ms = clock_mono_ms(c->api->config.clock) + extra_wait_ms + timeout_ms(c, type);
    if (!kernel_post_in_round(c->api->kernel, command))
        call_problem(c, &command->err);
}

/* --- shared decoding ------------------------------------------------------------------------------ */

bool call_uuid_param(struct call *c, const char *name, struct uuid *ret)
{
    return uuid_parse(route_param(&c->match, name), ret);
}

bool call_job_id(struct call *c, int64_t *ret_key, uint64_t *ret_low)
{
    struct uuid id;
    c->job_id = route_param(&c->match, "job_id");
    if (call_uuid_param(c, "job_id", &id) && uuid_split_v7(&id, ret_key, ret_low))
        return true;
    if (c->x->method == HTTP_POST && !uuid_parse(c->job_id, &id))
        call_fail(c, ERR_REQUEST_MALFORMED, "job_id is not a UUID");
    else
        call_fail(c, ERR_JOB_NOT_FOUND, "no job has this id");
    return false;
}

bool call_idempotency_key(struct call *c, struct str *ret_key)
{
    struct str key = http_header(c->x, "Idempotency-Key");
    bool ok = !key.ptr || (key.len >= 1 && key.len <= CREATE_NAME_MAX);
    for (size_t i = 0; ok && i < key.len; i++)
        ok = key.ptr[i] > 0x1f && key.ptr[i] < 0x7f;
    if (!ok) {
        call_fail(c, ERR_REQUEST_MALFORMED, "Idempotency-Key must have 1 to 255 visible ASCII characters");
        return false;
    }
    *ret_key = key;
    return true;
}

void call_body_fingerprint(const struct json *body, const char *skip_key, uint8_t out[16])
{
    uint8_t digest[DIGEST_BYTES];
    struct strbuf text = {0};
    json_canonical(body, skip_key, &text);
    digest_sha256(text.ptr, text.len, digest);
    memcpy(out, digest, 16);
    strbuf_free(&text);
}

bool call_take_from_address(struct call *c, enum address_budget budget)
{
    struct err err;
    if (c->x->over_unix_socket ||
        address_limits_take(c->api->address_limits, &c->x->peer, budget, &err) == ERR_OK)
        return true;
    call_problem(c, &err);
    return false;
}

/* --- the checks, in order -------------------------------------------------------------------------- */

/* See host_check.h. HTTP/1.0 needs no Host, and no browser speaks it. */
static bool check_host(struct call *c)
{
    if (!c->x->peer_is_loopback || c->x->over_unix_socket || !c->api->is_dev)
        return true;
    struct str host = http_header(c->x, "Host");
    if (!host.ptr || host_is_known(c->api->config.settings, host))
        return true;
    api_routes(&c->route_number); /* counts as "none" */
    call_fail(c, ERR_REQUEST_HOST_UNKNOWN, "in dev a caller on this machine may not call the server %.*s",
              (int)(host.len < 100 ? host.len : 100), host.ptr);
    return false;
}

static bool check_route(struct call *c)
{
    struct http_exchange *x = c->x;
    enum http_method method = x->method == HTTP_HEAD ? HTTP_GET : x->method;
    router_find(c->api->router, method, x->path, &c->match);
    if (c->match.route) {
        size_t count;
        c->route_number = (size_t)(c->match.route - api_routes(&count));
        c->info = c->match.route->info;
        call_trace_begin(c);
        return true;
    }
    api_routes(&c->route_number); /* counts as "none" */
    if (!call_take_from_address(c, ADDRESS_ANONYMOUS))
        return false;
    if (c->match.path_known) {
        http_reply_header(x, "Allow", str_of(c->match.allow));
        call_fail(c, ERR_REQUEST_METHOD_NOT_ALLOWED, "this path takes %s", c->match.allow);
    } else {
        call_fail(c, ERR_REQUEST_ROUTE_NOT_FOUND, "there is nothing at this path");
    }
    return false;
}

/* Routes of ops/ need no store to answer, but for those about clients and jobs. */
static bool check_open(struct call *c)
{
    bool is_ops = c->route_number >= job_route_count + worker_route_count + engine_route_count;
    if (atomic_load(&c->api->opened) || (is_ops && c->info->auth != AUTH_ADMINISTRATOR))
        return true;
    struct err err;
    err_set(&err, ERR_STORAGE_UNAVAILABLE, "the server waits for its database; nothing was done");
    err.retry_after_s = 1;
    call_problem(c, &err);
    return false;
}

/* Which roles a token needs; none named: any will do. */
static const struct {
    enum auth_need need;
    const char *roles[2];
} token_needs[] = {
    {AUTH_WORKER, {"Worker", NULL}},
    {AUTH_TOKEN, {NULL, NULL}},
    {AUTH_ENGINEER, {"Engineer", "Admin"}},
    {AUTH_OPERATOR, {"owner", "Admin"}},
    {AUTH_ADMINISTRATOR, {"owner", "Admin"}},
    {AUTH_ENGINE, {"Engine", "Admin"}},
    {AUTH_ADMIN, {"Admin", NULL}},
    {AUTH_SIGNAL, {NULL, NULL}},
};

static bool has_role(const struct call *c, const char *const roles[2])
{
    if (!roles[0])
        return true;
    for (size_t i = 0; i < 2 && roles[i]; i++)
        if (claims_has_role(c->claims, str_of(roles[i])))
            return true;
    return false;
}

/* A worker's token stands for its tenant, whose number its tasks have. One nobody has heard of has none. */
static enum err_code find_tenant(struct call *c, struct err *err)
{
    struct tenant_row row = {.name = c->claims->tenant_id};
    bool found = false;
    struct reader *r = api_read_begin(c->api, err);
    if (!r || r->ops->reader_row(r, &table_tenant_row, &row, c->x->arena, &found, err) != ERR_OK)
        return err->code;
    c->who = (struct principal){
        .kind = PRINCIPAL_KEY, .client = found ? row.num : -1, .power = {.scopes = SCOPE_ALL}};
    return ERR_OK;
}

/* For a call that needs `need`. */
static bool check_token(struct call *c, enum auth_need need)
{
    struct err err = {.code = ERR_OK};
    bool needs_tenant = need != AUTH_OPERATOR && need != AUTH_ADMINISTRATOR;
    if (token_auth_check(c->api->token_auth, http_header(c->x, "Authorization"), c->x->received_us / 1000,
                         c->x->arena, needs_tenant, &c->claims, &err) != ERR_OK) {
        call_problem(c, &err);
        return false;
    }
    for (size_t i = 0; i < LENGTH_OF(token_needs); i++)
        if (token_needs[i].need == need && !has_role(c, token_needs[i].roles)) {
            const char *const *roles = token_needs[i].roles;
            call_fail(c, ERR_AUTHZ_DENIED, "this call needs the role %s%s%s", roles[0],
                      roles[1] ? " or " : "", roles[1] ? roles[1] : "");
            return false;
        }
    if (need == AUTH_WORKER && find_tenant(c, &err) != ERR_OK) {
        call_problem(c, &err);
        return false;
    }
    return true;
}

/* Works without the store: an operator looks when something is wrong. */
static bool check_operator(struct call *c)
{
    struct str header = http_header(c->x, "Authorization");
    if ((c->api->is_dev && c->x->peer_is_loopback) || auth_is_operator(c->api->auth, header)) {
        c->who.kind = PRINCIPAL_OPERATOR;
        return true;
    }
    if (token_auth_is_token(header))
        return check_token(c, AUTH_OPERATOR);
    call_fail(c, ERR_AUTH_INVALID_CREDENTIALS,
              "this call needs the operator token, or a token with the role owner or Admin");
    return false;
}

/* A token that stands for the operator: a tenant's own Admin does not. */
static bool check_administrator_token(struct call *c)
{
    if (!check_token(c, AUTH_ADMINISTRATOR))
        return false;
    if (c->claims->tenant_id.ptr) {
        call_fail(c, ERR_AUTHZ_TENANT_FORBIDDEN,
                  "this call is not a tenant's: use a token without tenant_id");
        return false;
    }
    c->who.kind = PRINCIPAL_OPERATOR;
    return true;
}

/* In dev the machine's own user needs no credentials; but a page in the user's browser, which names its
 * Origin, is somebody else. Credentials that are sent are judged. */
static bool check_administrator(struct call *c)
{
    struct str header = http_header(c->x, "Authorization");
    if (auth_is_operator(c->api->auth, header) ||
        (c->api->is_dev && c->x->peer_is_loopback && !header.ptr && !http_header(c->x, "Origin").ptr)) {
        c->who.kind = PRINCIPAL_OPERATOR;
        return true;
    }
    if (token_auth_is_token(header))
        return check_administrator_token(c);
    call_fail(c, ERR_AUTH_INVALID_CREDENTIALS,
              "this call needs the operator token, or a token with the role owner or Admin and no tenant");
    return false;
}

static bool check_auth(struct call *c)
{
    struct api *a = c->api;
    struct err err = {.code = ERR_OK};
    if (c->info->auth == AUTH_NONE)
        return call_take_from_address(c, ADDRESS_ANONYMOUS);
    if (c->info->auth == AUTH_PROBE)
        return c->x->peer_is_loopback || call_take_from_address(c, ADDRESS_PROBES);
    credential_note(c);
    if (c->info->auth == AUTH_OPERATOR)
        return check_operator(c);
    if (c->info->auth == AUTH_ADMINISTRATOR)
        return check_administrator(c);
    if ((c->info->auth == AUTH_WORKER || c->info->auth == AUTH_SIGNAL) && c->x->over_unix_socket) {
        c->who.kind = PRINCIPAL_DOMAIN;
        return true;
    }
    bool is_token = token_auth_is_token(http_header(c->x, "Authorization"));
    if (c->info->auth >= AUTH_TOKEN || (c->info->auth == AUTH_WORKER && is_token))
        return check_token(c, c->info->auth);
    if ((c->info->auth == AUTH_OPTIONAL || c->info->auth == AUTH_KEEPER) && is_token)
        return check_administrator_token(c);
    if (auth_check(a->auth, a->reads, c->x->arena, http_header(c->x, "Authorization"),
                   c->x->received_us / 1000, &c->who, &err) == ERR_OK) {
        if (c->who.kind == PRINCIPAL_KEY)
            client_ids_note(a->client_ids, c->who.client, &c->who.client_id);
        if (c->who.kind == PRINCIPAL_NONE && c->info->auth == AUTH_OPTIONAL)
            return call_take_from_address(c, ADDRESS_ANONYMOUS);
        if (c->who.kind == PRINCIPAL_KEY || c->info->auth == AUTH_OPTIONAL ||
            (c->info->auth == AUTH_KEEPER && c->who.kind == PRINCIPAL_OPERATOR))
            return true;
        if (c->who.kind == PRINCIPAL_OPERATOR)
            err_set(&err, ERR_AUTH_FORBIDDEN, "the operator token manages keys; use a client's API key here");
        else
            err_set(&err, ERR_AUTH_INVALID_CREDENTIALS, "this call needs an API key%s",
                    c->info->auth == AUTH_KEEPER ? " of the client, or the operator token" : "");
    }
    call_problem(c, &err);
    return false;
}

static bool check_rate(struct call *c)
{
    struct err err;
    struct rate_standing standing = {0};
    if (!c->info->rate_limited || c->who.kind != PRINCIPAL_KEY)
        return true;
    enum err_code code = rate_limit_take(c->api->rate_limit, c->api->reads, c->x->arena, c->who.client,
                                         &c->who.client_id, c->x->received_us / 1000, &standing, &err);
    rate_limit_headers(&standing, &c->x->reply_headers);
    if (code != ERR_OK)
        call_problem(c, &err);
    return code == ERR_OK;
}

/* What the route needs of a key (ROUTE). A key that ends soon is warned about, whatever it asks. */
static bool check_scope(struct call *c)
{
    if (c->who.kind != PRINCIPAL_KEY)
        return true;
    char text[TIME_TEXT_MAX];
    if (c->who.key && c->who.ends_ms - c->x->received_us / 1000 < (int64_t)KEY_WARN_SECONDS * 1000)
        http_reply_header(c->x, "Weir-Key-Expires-At", time_text_ms(c->who.ends_ms, text));
    unsigned lacks = c->info->scope & SCOPE_ALL & ~c->who.power.scopes;
    for (int s = 0; s < KEY_SCOPE_COUNT; s++)
        if (lacks & 1u << s) {
            call_fail(c, ERR_AUTH_FORBIDDEN, "this call needs a key with the scope %s",
                      key_scope_text((enum key_scope)s));
            return false;
        }
    if (c->info->scope & EVERY_QUEUE && c->who.power.queues.ptr) {
        call_fail(c, ERR_AUTH_FORBIDDEN, "this call is about every queue; the key is limited to %.*s",
                  STR_ARG(c->who.power.queues));
        return false;
    }
    return true;
}

static const struct {
    unsigned kind;
    const char *type, *range;
} media[] = {
    {ACCEPT_JSON, "application/json", "application/*"}, {ACCEPT_CSV, "text/csv", "text/*"},
    {ACCEPT_EVENTS, "text/event-stream", "text/*"},     {ACCEPT_TEXT, "text/plain", "text/*"},
    {ACCEPT_YAML, "application/yaml", "application/*"},
};

/* One media range of an Accept header, q=0 refuses. Earlier ranges win; q values beyond 0 do not reorder. */
static unsigned accept_one(struct str range, unsigned offers)
{
    struct str rest = range;
    struct str type = str_trim(str_cut(&rest, ';'));
    while (rest.len) {
        struct str parameter = str_trim(str_cut(&rest, ';'));
        if (str_starts(parameter, "q=0") && !str_is(parameter, "q=0.") &&
            strspn(parameter.ptr + 2, "0.") >= parameter.len - 2)
            return 0;
    }
    if (str_is(type, "*/*"))
        return offers & -offers;
    for (size_t i = 0; i < LENGTH_OF(media); i++)
        if (offers & media[i].kind &&
            (str_equal_nocase(type, str_of(media[i].type)) || str_is(type, media[i].range)))
            return media[i].kind;
    if (str_equal_nocase(type, STR("application/problem+json")) ||
        (offers & ACCEPT_TEXT && str_equal_nocase(type, STR("application/openmetrics-text"))))
        return offers & -offers;
    return 0;
}

static bool check_accept(struct call *c)
{
    struct str rest = http_header(c->x, "Accept");
    unsigned offers = c->info->accepts;
    c->accept = offers & -offers;
    if (!rest.ptr || !str_trim(rest).len)
        return true;
    while (rest.len)
        if ((c->accept = accept_one(str_trim(str_cut(&rest, ',')), offers)))
            return true;
    struct strbuf known = {0};
    for (size_t i = 0; i < LENGTH_OF(media); i++)
        if (offers & media[i].kind)
            strbuf_addf(&known, "%s%s", known.len ? " or " : "", media[i].type);
    call_fail(c, ERR_REQUEST_NOT_ACCEPTABLE, "this call answers %.*s", STR_ARG(strbuf_str(&known)));
    strbuf_free(&known);
    return false;
}

static bool is_json_type(struct str value)
{
    struct str rest = value;
    struct str type = str_trim(str_cut(&rest, ';'));
    if (!str_equal_nocase(type, STR("application/json")))
        return false;
    struct str parameter = str_trim(rest);
    return !parameter.len || str_equal_nocase(parameter, STR("charset=utf-8")) ||
           str_equal_nocase(parameter, STR("charset=\"utf-8\""));
}

/* Nobody knows who sends it: there is little that he can have to say. */
static bool is_anonymous(const struct call *c)
{
    return c->who.kind == PRINCIPAL_NONE && !c->claims && !c->x->over_unix_socket;
}

/* Type, coding and size of the body as the head has them. Of a chunked one they are looked at again when it
 * is whole: an empty body needs no type. */
static bool check_body_head(struct call *c)
{
    struct http_exchange *x = c->x;
    struct str coding = http_header(x, "Content-Encoding");
    bool any = x->body_declared > 0 || x->body.len || x->body_too_large;
    if (any && x->method != HTTP_GET && x->method != HTTP_HEAD &&
        !is_json_type(http_header(x, "Content-Type"))) {
        call_fail(c, ERR_REQUEST_UNSUPPORTED_MEDIA_TYPE, "the body must be application/json in UTF-8");
        return false;
    }
    if (coding.ptr && !str_equal_nocase(coding, STR("identity"))) {
        call_fail(c, ERR_REQUEST_UNSUPPORTED_MEDIA_TYPE,
                  "the body has a Content-Encoding; send it as it is, without one");
        return false;
    }
    if (is_anonymous(c) && x->body_max > ANONYMOUS_BODY_MAX)
        x->body_max = ANONYMOUS_BODY_MAX;
    if (x->body_too_large || x->body_declared > x->body_max) {
        call_fail(c, ERR_REQUEST_PAYLOAD_TOO_LARGE, "the body is larger than %lld bytes (%s)",
                  (long long)x->body_max,
                  is_anonymous(c) ? "of a caller without credentials" : "server.body_max_bytes");
        return false;
    }
    return true;
}

static const struct json empty_object = {.type = JSON_OBJECT};

static bool check_body(struct call *c)
{
    struct err err;
    const struct contract_operation *o = c->api->operations[c->route_number];
    c->body = &empty_object;
    if (c->x->method == HTTP_GET || c->x->method == HTTP_HEAD)
        return true;
    if (c->x->body.len && json_parse(c->x->arena, c->x->body, &c->body, &err) != ERR_OK) {
        call_problem(c, &err);
        return false;
    }
    if (!o->request_body) {
        if (c->body->type == JSON_OBJECT && !c->body->count)
            return true;
        call_fail(c, ERR_REQUEST_MALFORMED, "this call takes no body");
        return false;
    }
    struct schema_violation v;
    if (schema_check(o->request_body, c->body, &v))
        return true;
    call_fail(c, ERR_REQUEST_MALFORMED, "%s", v.text);
    return false;
}

/* What other processes of ours ask core, beside the contracts. */
static bool is_internal(const struct http_exchange *x)
{
    return x->over_unix_socket && str_starts(x->path, "/internal/");
}

static bool serve_internal(struct api *a, struct http_exchange *x)
{
    return is_internal(x) && (traces_serve(a->traces, x) || policy_point_serve(a->policy_point, x) ||
                              issuer_fetches_serve(a, x) || overload_serve(a->overload, x));
}

/* Everything that the head tells; false: refused and answered. */
static bool check_head(struct http_exchange *x)
{
    struct api *a = x->context;
    struct call *c = ARENA_NEW(x->arena, struct call);
    c->x = x;
    c->api = a;
    x->data = c;
    enum pressure_level level = overload_level(a->overload);
    if (level >= PRESSURE_WARN)
        http_reply_header(x, "Weir-Pressure", str_of(pressure_level_text(level)));
    return check_host(c) && check_route(c) && check_open(c) && check_auth(c) && check_rate(c) &&
           check_scope(c) && check_accept(c) && check_body_head(c);
}

static void callback_ends(struct api *a)
{
    if (atomic_load(&a->opened))
        reads_request_end(a->reads);
}

void api_on_head(struct http_exchange *x)
{
    if (is_internal(x))
        return;
    bool passes = check_head(x);
    if (!passes || !x->body_arrived)
        callback_ends(x->context);
}

/* A key may have been revoked, or have expired, while the body was on its way. Who has none was counted. */
static bool check_again(struct call *c)
{
    return (c->x->body_arrived || is_anonymous(c) || check_auth(c)) &&
           (c->x->body_declared >= 0 || check_body_head(c));
}

void api_on_request(struct http_exchange *x)
{
    struct api *a = x->context;
    if (serve_internal(a, x) || (!x->data && !check_head(x)))
        return;
    struct call *c = x->data;
    if (check_again(c) && check_body(c))
        c->info->handle(c);
    callback_ends(a);
}

void api_on_bad_request(struct http_exchange *x, int status, const struct err *why)
{
    struct api *a = x->context;
    if (x->data) /* its head was taken, its body was not */
        metrics_problem(a->metrics, why->code);
    problem_reply_status(x, status, why);
}

struct str call_actor(const struct call *c)
{
    if (c->claims)
        return c->claims->subject;
    return http_header(c->x, "Authorization").ptr ? STR("operator") : STR("local");
}

static void log_request(struct call *c, int64_t duration_us)
{
    bool failed = c->err.code != ERR_OK;
    /* Who looks at what is every client's leaves a trace, as who changes it does. */
    bool by_operator = !failed && c->info && c->info->auth == AUTH_ADMINISTRATOR;
    /* A probe that says 503 has done what it is for. */
    enum log_level level = by_operator           ? LOG_INFO
                           : !failed             ? LOG_DEBUG
                           : c->x->status >= 500 ? LOG_ERROR
                                                 : LOG_INFO;
    if (!log_enabled(level) ||
        (failed && is_anonymous(c) && !address_limits_may_log(c->api->address_limits, &c->x->peer)))
        return;
    char request_id[UUID_TEXT_LEN + 1], client_id[UUID_TEXT_LEN + 1];
    uuid_text(&c->x->request_id, request_id);
    uuid_text(&c->who.client_id, client_id);
    log_line(level, "request", "request_id", LOG_TEXT(request_id), "client_id",
             LOG_TEXT(c->who.client ? client_id : NULL), "job_id", LOG_STR(c->job_id), "action",
             LOG_TEXT(c->info ? c->info->action : "none"), "method", LOG_STR(c->x->method_text), "path",
             LOG_STR(c->x->path), "peer", LOG_STR(http_peer(c->x)), "actor",
             LOG_STR(by_operator ? call_actor(c) : STR_ABSENT), "status", LOG_INT(c->x->status), "error_code",
             LOG_TEXT(failed ? err_wire(c->err.code) : NULL), "error_message",
             LOG_TEXT(failed ? c->err.detail : NULL), "duration_us", LOG_INT(duration_us), NULL);
}

void api_on_done(struct http_exchange *x)
{
    struct call *c = x->data;
    if (!c)
        return;
    int64_t duration_us = clock_wall_us(c->api->config.clock) - x->received_us;
    if (x->on_stream_tick)
        metrics_stream(c->api->metrics, c->route_number, x->status);
    else
        metrics_request(c->api->metrics, c->route_number, x->status, duration_us);
    log_request(c, duration_us);
    if (c->ingests)
        overload_ingested(c->api->overload, c->x->status, duration_us);
    call_trace_end(c);
}
