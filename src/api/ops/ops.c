/* Probes, metrics and the contracts themselves. No authentication, nothing secret; but for the topology. */
#include <stdatomic.h>

#include "api/handlers.h"
#include "api/issuer_fetches.h"
#include "api/jobs/encode.h"
#include "api/ops/operators.h"
#include "base/log.h"
#include "base/must.h"
#include "schema/embedded.h"

#include "base/banned.h"

static void timestamp(struct call *c, struct json_writer *w)
{
    encode_time_us(w, "timestamp", c->x->received_us);
}

static void send_status(struct call *c, bool good, const char *yes, const char *no)
{
    struct json_writer w;
    call_object(c, good ? 200 : 503, &w);
    encode_text(&w, "status", good ? yes : no);
    timestamp(c, &w);
    call_send_object(c, &w);
}

void handle_get_health(struct call *c)
{
    send_status(c, !atomic_load(&c->api->fatal), "ok", "error");
}

void handle_get_startup(struct call *c)
{
    send_status(c, atomic_load(&c->api->started), "started", "starting");
}

static void stats_of(const struct api *a, struct kernel_stats *ret)
{
    *ret = (struct kernel_stats){0};
    if (atomic_load(&a->opened))
        kernel_stats(a->kernel, ret);
}

/* The store answers a read, and the last commit went through. */
static bool store_is_up(struct call *c, const struct kernel_stats *stats)
{
    if (!atomic_load(&c->api->opened))
        return false;
    struct err err;
    struct stats_row row = {.client = 0};
    bool found;
    struct reader *r = api_read_begin(c->api, &err);
    bool up = r && r->ops->reader_row(r, &table_stats_row, &row, c->x->arena, &found, &err) == ERR_OK;
    if (!up)
        reads_end(c->api->reads);
    return up && stats->storing && !atomic_load(&c->api->fatal);
}

static void add_if(struct json_writer *w, bool holds, const char *what, const char *how)
{
    if (!holds)
        return;
    encode_text(w, what, how);
}

void handle_get_readiness(struct call *c)
{
    struct err err;
    struct str require;
    struct kernel_stats stats;
    struct json_writer w;
    const struct settings *limits = c->api->config.settings;
    if (http_query(c->x, "require", &require, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    stats_of(c->api, &stats);
    bool store = store_is_up(c, &stats), draining = atomic_load(&c->api->draining);
    if (store && !draining && !stats.workers && str_is(require, "workers")) {
        call_fail(c, ERR_EXEC_WORKER_UNAVAILABLE, "no worker has been heard of lately");
        return;
    }
    call_object(c, store && !draining ? 200 : 503, &w);
    encode_text(&w, "status", store && !draining ? "ready" : "not_ready");
    jw_key(&w, "checks");
    jw_object(&w);
    encode_text(&w, "store", store ? "ok" : "down");
    encode_text(&w, "workers", stats.workers ? "ok" : "degraded");
    encode_text(&w, "pressure", pressure_level_text(overload_worst(c->api->overload)));
    add_if(&w, stats.live >= (uint64_t)limits->jobs_max_active, "jobs", "full");
    add_if(&w, stats.queued >= (uint64_t)limits->jobs_queue_size, "queue", "full");
    add_if(&w, stats.client_is_full, "client_share", "full");
    add_if(&w, stats.clock_in_doubt, "clock", "warn");
    add_if(&w, atomic_load(&c->api->mark_missing), "mark", "warn");
    add_if(&w, draining, "server", "down");
    jw_object_end(&w);
    timestamp(c, &w);
    call_send_object(c, &w);
}

static void look_at_server(const struct http_server *s, struct metrics_around *around)
{
    const struct tls *tls = http_server_tls(s);
    around->connections = http_server_connections(s);
    around->unsent_bytes = (uint64_t)http_server_unsent_bytes(s);
    around->has_tls = tls != NULL;
    around->tls_expires_at = tls ? tls_expires_at(tls) : 0;
    for (int end = 0; end < HTTP_HANDSHAKE_END_COUNT; end++)
        around->handshakes[end] = http_server_handshakes(s, (enum http_handshake_end)end);
}

/* The kernel takes it up with its next batch, within a second. */
void handle_accept_clock(struct call *c)
{
    struct json_writer w;
    log_line(LOG_WARN, "clock_accepted", NULL);
    kernel_accept_clock(c->api->kernel);
    call_object(c, 200, &w);
    encode_text(&w, "status", "accepted");
    timestamp(c, &w);
    call_send_object(c, &w);
}

void handle_get_metrics(struct call *c)
{
    struct metrics_around around = {.log_dropped = log_dropped()};
    if (c->api->server) /* not yet known to us in the first moment of its threads */
        look_at_server(c->api->server, &around);
    stats_of(c->api, &around.kernel);
    traces_counts(c->api->traces, &around.spans, &around.spans_dropped);
    metrics_write(c->api->metrics, &around, &c->x->reply_body);
    contract_set_write_metrics(&c->api->contracts, c, &around.kernel);
    topology_metrics(c->api->topology, &c->x->reply_body);
    issuer_metrics(c->api, &c->x->reply_body);
    overload_write_metrics(c->api->overload, &c->x->reply_body);
    c->x->status = 200;
    c->x->content_type = "text/plain; version=0.0.4; charset=utf-8";
    call_send(c);
}

void handle_get_contract(struct call *c)
{
    struct str name = route_param(&c->match, "name");
    for (const struct embedded_file *file = embedded_contracts; file->name; file++) {
        size_t len = strlen(file->name);
        if (!str_starts(name, file->name) || !str_is((struct str){name.ptr + len, name.len - len}, ".yaml"))
            continue;
        strbuf_add_str(&c->x->reply_body, file->text);
        c->x->status = 200;
        c->x->content_type = "application/yaml";
        call_send(c);
        return;
    }
    call_fail(c, ERR_REQUEST_ROUTE_NOT_FOUND, "there is no contract of this name");
}

/* Caches keep it for a minute at most (Q16): as long before a new key signs, it is here. */
void handle_get_key_set(struct call *c)
{
    struct err err = {0};
    struct json_writer w;
    int64_t now = clock_wall_ms(c->api->config.clock) / 1000;
    call_json(c, 200, &w);
    if (key_ring_jwks(c->api->keys, now, &c->x->reply_body, &err) != ERR_OK) {
        log_line(LOG_ERROR, "keys_unreadable", "detail", LOG_TEXT(err.detail), NULL); /* it names a path */
        call_fail(c, ERR_CONFIG_INVALID, "the key set cannot be read; the log says why");
        return;
    }
    http_reply_header(c->x, "Cache-Control", STR("public, max-age=60"));
    call_send(c);
}
