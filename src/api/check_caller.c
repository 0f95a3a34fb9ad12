/* Checks of the head, first part: host, route, credentials, rate, scope (checks.h). */
#include <stdatomic.h>

#include "api/checks.h"
#include "api/host_check.h"
#include "base/must.h"
#include "base/time_text.h"

#include "base/banned.h"

enum { HOST_REMEMBERED_MAX = 64 };

/* The last Host that passed on this thread: the next caller mostly has the same. */
static _Thread_local struct {
    size_t len;
    char text[HOST_REMEMBERED_MAX];
} last_host;

static bool host_passes(const struct settings *s, struct str host)
{
    if (host.len && host.len == last_host.len && memcmp(host.ptr, last_host.text, host.len) == 0)
        return true;
    if (!host_is_known(s, host))
        return false;
    last_host.len = host.len <= sizeof last_host.text ? host.len : 0;
    memcpy(last_host.text, host.ptr, last_host.len);
    return true;
}

bool check_host(struct call *c)
{
    if (!c->x->peer_is_loopback || c->x->over_unix_socket || !c->api->is_dev)
        return true;
    struct str host = http_header(c->x, "Host");
    if (!host.ptr || host_passes(c->api->config.settings, host))
        return true;
    c->route_number = api_route_count;
    call_fail(c, ERR_REQUEST_HOST_UNKNOWN, "in dev a caller on this machine may not call the server %.*s",
              (int)(host.len < 100 ? host.len : 100), host.ptr);
    return false;
}

bool check_route(struct call *c)
{
    struct http_exchange *x = c->x;
    enum http_method method = x->method == HTTP_HEAD ? HTTP_GET : x->method;
    router_find(c->api->router, method, x->path, &c->match);
    if (c->match.route) {
        c->route_number = (size_t)(c->match.route - api_routes);
        c->info = c->match.route->info;
        call_trace_begin(c);
        return true;
    }
    c->route_number = api_route_count;
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

bool check_open(struct call *c)
{
    enum auth_need need = c->info->auth;
    if (atomic_load(&c->api->opened) || need == AUTH_NONE || need == AUTH_PROBE || need == AUTH_OPERATOR)
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

bool check_auth(struct call *c)
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

bool call_is_anonymous(const struct call *c)
{
    return c->who.kind == PRINCIPAL_NONE && !c->claims && !c->x->over_unix_socket;
}

bool check_rate(struct call *c)
{
    struct err err;
    struct rate_standing standing = {0};
    if (c->info->rate != RATE_CLASS_CLIENT || c->who.kind != PRINCIPAL_KEY)
        return true;
    enum err_code code = rate_limit_take(c->api->rate_limit, c->api->reads, c->x->arena, c->who.client,
                                         &c->who.client_id, c->x->received_us / 1000, &standing, &err);
    rate_limit_headers(&standing, &c->x->reply_headers);
    if (code != ERR_OK)
        call_problem(c, &err);
    return code == ERR_OK;
}

bool check_scope(struct call *c)
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
