/* Set-up: routes, contracts; the work after a commit, and at the end of a loop's round. */
#include "api/api.h"

#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

enum err_code api_new(const struct api_config *config, struct api **ret_api, struct err *err)
{
    struct api *a = must_alloc(sizeof *a);
    a->config = *config;
    a->router = router_new(api_routes, api_route_count);
    a->key_uses = key_uses_new();
    a->is_dev = strcmp(config->settings->environment, "dev") == 0;
    a->auth = auth_new(config->settings, a->key_uses);
    a->rate_limit = rate_limit_new(config->settings);
    a->address_limits = address_limits_new(config->settings, config->clock);
    a->metrics = metrics_new(api_routes, api_route_count);
    a->overload = overload_new(config->settings, config->clock, a->metrics);
    a->traces = traces_new(config->clock, config->settings->traces_sample_ratio);
    a->client_ids = client_ids_new();
    a->followers = followers_new();
    a->topology = topology_new(config->topology_path);
    a->keys = key_ring_new(&(struct key_place){.data_dir = config->settings->data_dir,
                                               .environment = config->settings->environment});
    if (route_bodies_new(&a->bodies, err) != ERR_OK ||
        token_auth_new(config->settings, a->keys, clock_wall_ms(config->clock), &a->token_auth, err) !=
            ERR_OK ||
        contract_set_open(&a->contracts, config->contracts, a, err) != ERR_OK) {
        api_free(a);
        return err->code;
    }
    *ret_api = a;
    return ERR_OK;
}

void api_open(struct api *a, struct store *store, struct kernel *kernel)
{
    a->reads = reads_new(store);
    a->kernel = kernel;
    atomic_store(&a->opened, true);
}

void api_stop(struct api *a)
{
    if (a)
        contract_set_stop(&a->contracts);
}

struct api *api_free(struct api *a)
{
    if (!a)
        return NULL;
    contract_set_close(&a->contracts);
    reads_free(a->reads);
    token_auth_free(a->token_auth);
    key_ring_free(a->keys);
    route_bodies_free(a->bodies);
    router_free(a->router);
    auth_free(a->auth);
    rate_limit_free(a->rate_limit);
    key_uses_free(a->key_uses);
    address_limits_free(a->address_limits);
    overload_free(a->overload);
    metrics_free(a->metrics);
    traces_free(a->traces);
    client_ids_free(a->client_ids);
    followers_free(a->followers);
    topology_free(a->topology);
    free(a);
    return NULL;
}

/* --- after a commit ------------------------------------------------------------------------------ */

/* Streams look whether they were opened with one of those. */
void api_keys_changed(struct api *a)
{
    auth_keys_changed(a->auth);
    if (a->server)
        http_server_tick(a->server);
}

void api_committed(void *self, const struct unit *u)
{
    struct api *a = self;
    reads_log_pages(a->reads, u->store->wal_pages);
    metrics_committed(a->metrics, u);
    contract_set_committed(&a->contracts, u);
    if (followers_publish(a->followers, u) && a->server)
        http_server_tick(a->server);
}

void api_hint(struct api *a, unsigned hints)
{
    contract_set_hinted(&a->contracts, hints);
    if ((hints & HINT_EVENTS) && followers_look_again(a->followers) && a->server)
        http_server_tick(a->server);
}

/* --- housekeeping ---------------------------------------------------------------------------------- */

bool api_housekeep(void *self, struct unit *u)
{
    const struct api *a = self;
    return contract_set_housekeep(&a->contracts, u);
}

bool api_save(void *self, struct unit *u)
{
    struct api *a = self;
    bool more = rate_limit_save(a->rate_limit, u);
    more |= key_uses_save(a->key_uses, u);
    return contract_set_save(&a->contracts, u) || more;
}

void api_saved(void *self, bool stored)
{
    struct api *a = self;
    rate_limit_saved(a->rate_limit, stored);
    key_uses_saved(a->key_uses, stored);
    contract_set_saved(&a->contracts, stored);
}

/* --- load ------------------------------------------------------------------------------------------ */

static void measure(struct api *a, const struct kernel_stats *stats)
{
    struct overload_queues q = {.kernel = *stats};
    if (a->server) {
        q.connections = http_server_connections(a->server);
        q.connections_max = http_server_connections_max(a->server);
        q.held_bytes = http_server_held_bytes(a->server);
    }
    contract_set_measure(&a->contracts, &q);
    traces_depth(a->traces, &q.spans, &q.span_capacity);
    overload_measure(a->overload, &q);
    if (settings_store_is_postgres(a->config.settings))
        overload_store(a->overload, stats->storing, stats->commit_errors);
    enum pressure_level level = overload_level(a->overload);
    kernel_set_pressure(a->kernel, level >= PRESSURE_DEGRADED, level >= PRESSURE_SHED);
}

/* A token's key may have been revoked: calls that wait with a token of it wait no longer. */
static void look_at_token_keys(struct api *a)
{
    uint64_t changes = key_ring_changes(a->keys, clock_wall_ms(a->config.clock) / 1000);
    if (changes == a->token_key_changes)
        return;
    a->token_key_changes = changes;
    api_keys_changed(a);
    kernel_hint(a->kernel, HINT_READY); /* claims that wait are looked through */
}

void api_tick(struct api *a, struct heart *heart)
{
    struct kernel_stats stats;
    struct overload_cascades cascades;
    kernel_stats(a->kernel, &stats);
    measure(a, &stats);
    heart_waits(heart, true); /* files */
    topology_cascades(a->topology, &cascades);
    look_at_token_keys(a);
    heart_waits(heart, false);
    overload_tick(a->overload, &cascades);
    address_limits_tick(a->address_limits);
}

static void count_batch(struct api *a)
{
    struct kernel_stats stats;
    kernel_stats(a->kernel, &stats);
    metrics_batch(a->metrics, &stats);
    measure(a, &stats);
}

void api_batch_end(void *self)
{
    struct api *a = self;
    count_batch(a);
    if (a->server)
        http_wake(a->server);
}

void api_inline_batch_end(void *self)
{
    struct api *a = self;
    http_answer_resumed(a->server);
    count_batch(a);
    reads_end(a->reads); /* the snapshot of the answers; this round has ended its own already */
}

void api_inline_commit_begins(void *self)
{
    (void)self;
    http_round_waits();
}

/* --- reading ------------------------------------------------------------------------------------- */

struct reader *api_read_begin(struct api *a, struct err *err)
{
    return reads_begin(a->reads, err);
}

void api_on_round_end(void *context)
{
    struct api *a = context;
    if (!atomic_load(&a->opened))
        return;
    reads_end(a->reads);
    kernel_round_end(a->kernel);
}
