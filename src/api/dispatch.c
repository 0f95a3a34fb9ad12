/* A request's way in and out: checks in their one order (AJ-12), the handler, the log line. */
#include <stdatomic.h>

#include "api/checks.h"
#include "api/issuer_fetches.h"
#include "base/log.h"

#include "base/banned.h"

/* Routes for our other processes, outside the contracts. */
static bool is_internal(const struct http_exchange *x)
{
    return x->over_unix_socket && str_starts(x->path, "/internal/");
}

static bool serve_internal(struct api *a, struct http_exchange *x)
{
    return is_internal(x) && (traces_serve(a->traces, x) || contract_set_serve_internal(&a->contracts, x) ||
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
           check_scope(c) && check_accept(c) && check_query(c) && check_body_head(c);
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

/* A key may have been revoked, or have expired, while the body was on its way. Requests without credentials
 * were counted before. */
static bool check_again(struct call *c)
{
    return (c->x->body_arrived || call_is_anonymous(c) || check_auth(c)) &&
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

static void log_request(struct call *c, int64_t duration_us)
{
    bool failed = c->err.code != ERR_OK;
    /* An operator's calls about all clients are logged, reads as well as changes. */
    bool by_operator = !failed && c->info && c->info->auth == AUTH_ADMINISTRATOR;
    /* A probe that says 503 has done what it is for. */
    enum log_level level = by_operator           ? LOG_INFO
                           : !failed             ? LOG_DEBUG
                           : c->x->status >= 500 ? LOG_ERROR
                                                 : LOG_INFO;
    if (!log_enabled(level) ||
        (failed && call_is_anonymous(c) && !address_limits_may_log(c->api->address_limits, &c->x->peer)))
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
