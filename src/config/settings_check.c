/* Rules that bind several keys, advice, and values worked out from several keys. */
#include <arpa/inet.h>
#include <unistd.h>

#include "base/must.h"
#include "config/settings_internal.h"

#include "base/banned.h"

static bool is_environment(const struct settings *s, const char *name)
{
    return strcmp(s->environment, name) == 0;
}

void settings_complete(struct settings *s)
{
    if (is_environment(s, "dev"))
        return;
#define X(field, value)                                                                                      \
    if (s->origin[SETTING_##field] == ORIGIN_DEFAULT)                                                        \
        s->field = value;
    SETTINGS_OUTSIDE_DEV(X)
#undef X
}

/* Section 14 of the control contract: dev 30 days, which is the key's own bound, stage 14, prod 7. */
static enum err_code check_rotation(const struct settings *s, struct err *err)
{
    int max = is_environment(s, "prod") ? 7 : is_environment(s, "stage") ? 14 : 30;
    if (s->tokens_rotation_days > max)
        return err_set(err, ERR_CONFIG_INVALID,
                       "tokens.rotation_days (%lld) must be at most %d in environment %s",
                       (long long)s->tokens_rotation_days, max, s->environment);
    return ERR_OK;
}

static enum err_code check_listeners(const struct settings *s, struct err *err)
{
    if (s->tls_listen && !(s->tls_cert && s->tls_key))
        return err_set(err, ERR_CONFIG_INVALID, "server.tls_listen needs server.tls_cert and server.tls_key");
    if (!s->tls_listen && (s->tls_cert || s->tls_key || s->tls_client_ca))
        return err_set(err, ERR_CONFIG_INVALID,
                       "%s is set, but nothing is served over TLS: set server.tls_listen",
                       s->tls_cert  ? "server.tls_cert"
                       : s->tls_key ? "server.tls_key"
                                    : "server.tls_client_ca");
    if (!s->tls_listen && strcmp(s->listen, "off") == 0)
        return err_set(err, ERR_CONFIG_INVALID, "server.listen is off: set server.tls_listen");
    return ERR_OK;
}

enum err_code settings_check(const struct settings *s, struct err *err)
{
    char url[SETTINGS_STORE_URL_MAX];
    if (s->queue_heartbeat_ms >= s->queue_lease_ms)
        return err_set(err, ERR_CONFIG_INVALID,
                       "queue.heartbeat_ms (%lld) must be below queue.lease_ms (%lld)",
                       (long long)s->queue_heartbeat_ms, (long long)s->queue_lease_ms);
    if (s->jobs_retry_base_ms > s->jobs_retry_cap_ms)
        return err_set(err, ERR_CONFIG_INVALID,
                       "jobs.retry_base_ms (%lld) must be at most jobs.retry_cap_ms (%lld)",
                       (long long)s->jobs_retry_base_ms, (long long)s->jobs_retry_cap_ms);
    if (s->webhooks_base_ms > s->webhooks_cap_ms)
        return err_set(err, ERR_CONFIG_INVALID,
                       "webhooks.base_ms (%lld) must be at most webhooks.cap_ms (%lld)",
                       (long long)s->webhooks_base_ms, (long long)s->webhooks_cap_ms);
    if (s->bodies_max_bytes < 4 * s->body_max_bytes)
        return err_set(
            err, ERR_CONFIG_INVALID,
            "server.bodies_max_bytes (%lld) must be at least four times server.body_max_bytes (%lld)",
            (long long)s->bodies_max_bytes, (long long)s->body_max_bytes);
    if (settings_is_on(s->engine_pseudonymize) && !(s->operator_token && *s->operator_token))
        return err_set(
            err, ERR_CONFIG_INVALID,
            "engine.pseudonymize needs operator.token: it is the key of the digests, and without one "
            "anybody could try names");
    if (check_rotation(s, err) != ERR_OK || check_listeners(s, err) != ERR_OK)
        return err->code;
    if (s->tokens_jwks_max_age_seconds < s->tokens_jwks_refresh_seconds)
        return err_set(
            err, ERR_CONFIG_INVALID,
            "tokens.jwks_max_age_seconds (%lld) must be at least tokens.jwks_refresh_seconds (%lld)",
            (long long)s->tokens_jwks_max_age_seconds, (long long)s->tokens_jwks_refresh_seconds);
    if (s->store_password && s->store_url && store_url_has_password(str_of(s->store_url)))
        return err_set(err, ERR_CONFIG_INVALID,
                       "store.url has a password and store.password is set: keep one");
    return settings_store_url(s, url, sizeof url, err);
}

/* Also one that is off. */
static bool listens_on_loopback(const struct settings *s)
{
    char host[SETTINGS_HOST_MAX];
    uint16_t port;
    if (!settings_listen_parts(s, host, sizeof host, &port))
        return true;
    return str_starts(str_of(host), "127.") || strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0;
}

static void warn_about_jobs(const struct settings *s, FILE *out)
{
    enum { LONGEST_CATALOG_RUN_MS = 120500 }; /* AJ-06: generated work runs up to 120000 ms */
    if (s->runner_processes && settings_runtime_max_ms(s, true) < LONGEST_CATALOG_RUN_MS)
        fprintf(out,
                "weir: warning: jobs.max_runtime_ms is below %d, so the longest catalog jobs "
                "time out\n",
                LONGEST_CATALOG_RUN_MS);
    if (s->queue_lease_ms < 3 * s->queue_heartbeat_ms)
        fprintf(out, "weir: warning: queue.lease_ms is below three times queue.heartbeat_ms, so "
                     "two late heartbeats lose a lease\n");
    if (s->jobs_payload_max_bytes >= s->body_max_bytes)
        fprintf(out, "weir: warning: jobs.payload_max_bytes is not below server.body_max_bytes, so "
                     "the largest payload does not fit in a request\n");
}

void settings_warn(const struct settings *s, FILE *out)
{
    bool dev = is_environment(s, "dev");
    warn_about_jobs(s, out);
    settings_warn_of_open_files(s, out);
    if (dev && !listens_on_loopback(s))
        fprintf(out,
                "weir: warning: environment is dev, yet server.listen (%s) is open to other "
                "machines\n",
                s->listen);
    if (dev)
        return;
    if (!s->operator_token)
        fprintf(out, "weir: warning: operator.token is not set, so clients are made and managed only with a "
                     "token of the role owner or Admin without tenant\n");
    if (settings_registration_is_open(s))
        fprintf(out,
                "weir: warning: clients.registration is open in %s, so anybody who reaches the server makes "
                "clients and keys\n",
                s->environment);
    if (settings_webhooks_private(s))
        fprintf(out,
                "weir: warning: webhooks.allow_private is true in %s, so webhooks reach the "
                "inner network\n",
                s->environment);
    if (s->runner_time_scale < 1 || s->runner_time_scale > 1)
        fprintf(out, "weir: warning: runner.time_scale is %g in %s; it is meant for tests\n",
                s->runner_time_scale, s->environment);
}

bool settings_listen_parts(const struct settings *s, char *ret_host, size_t host_size, uint16_t *ret_port)
{
    return listen_parse(str_of(s->listen), ret_host, host_size, ret_port);
}

bool settings_tls_listen_parts(const struct settings *s, char *ret_host, size_t host_size, uint16_t *ret_port)
{
    return s->tls_listen && listen_parse(str_of(s->tls_listen), ret_host, host_size, ret_port);
}

enum err_code settings_store_url(const struct settings *s, char *ret_url, size_t url_size, struct err *err)
{
    struct str password = str_of(settings_store_is_postgres(s) ? s->store_password : NULL);
    int n = s->store_url ? snprintf(ret_url, url_size, "%s", s->store_url)
                         : snprintf(ret_url, url_size, "sqlite:%s/weir.db", s->data_dir);
    if (n < 0 || (size_t)n >= url_size || !store_url_add_password(ret_url, url_size, password))
        return err_set(err, ERR_CONFIG_INVALID, "store.url: the path is too long");
    return ERR_OK;
}

bool settings_store_is_postgres(const struct settings *s)
{
    enum store_kind kind;
    return s->store_url && store_url_kind(str_of(s->store_url), &kind) && kind == STORE_POSTGRES;
}

enum err_code settings_store_path(const struct settings *s, char *ret_path, size_t path_size, struct err *err)
{
    char url[SETTINGS_STORE_URL_MAX];
    if (settings_store_url(s, url, sizeof url, err) != ERR_OK)
        return err->code;
    struct str file = store_url_file(str_of(url));
    if (!file.ptr)
        return err_set(err, ERR_CONFIG_INVALID, "store.url names no SQLite file but a PostgreSQL database");
    if (file.len >= path_size)
        return err_set(err, ERR_CONFIG_INVALID, "store.url: the path is too long");
    memcpy(ret_path, file.ptr, file.len + 1);
    return ERR_OK;
}

void settings_tokens_issuer(const struct settings *s, char ret_issuer[SETTINGS_ISSUER_MAX])
{
    if (s->tokens_issuer)
        snprintf(ret_issuer, SETTINGS_ISSUER_MAX, "%s", s->tokens_issuer);
    else
        snprintf(ret_issuer, SETTINGS_ISSUER_MAX, "weir-%s", s->environment);
}

bool settings_is_on(const char *value)
{
    return strcmp(value, "on") == 0;
}

int64_t settings_share_of_client(const struct settings *s, int64_t whole)
{
    int64_t own = s->jobs_max_active_per_client, all = s->jobs_max_active;
    int64_t share = !own         ? whole - (whole + 3) / 4
                    : own >= all ? whole
                                 : whole / all * own + whole % all * own / all;
    return share > 0 ? share : 1;
}

int64_t settings_runtime_max_ms(const struct settings *s, bool is_catalog)
{
    enum { CATALOG_RUNTIME_MS = 125000, OWN_RUNTIME_MS = 86400000 };
    if (s->jobs_max_runtime_ms)
        return s->jobs_max_runtime_ms;
    return is_catalog ? CATALOG_RUNTIME_MS : OWN_RUNTIME_MS;
}

bool settings_registration_is_open(const struct settings *s)
{
    if (s->clients_registration)
        return strcmp(s->clients_registration, "open") == 0;
    return is_environment(s, "dev");
}

bool settings_webhooks_private(const struct settings *s)
{
    if (s->webhooks_allow_private)
        return strcmp(s->webhooks_allow_private, "true") == 0;
    return is_environment(s, "dev");
}

int64_t settings_http_threads(const struct settings *s)
{
    if (s->server_threads > 0)
        return s->server_threads;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? online : 1;
}

enum log_level settings_log_level(const struct settings *s)
{
    static const struct {
        const char *name;
        enum log_level level;
    } levels[] = {{"debug", LOG_DEBUG}, {"info", LOG_INFO}, {"warn", LOG_WARN}, {"error", LOG_ERROR}};
    for (size_t i = 0; i < LENGTH_OF(levels); i++)
        if (strcmp(s->log_level, levels[i].name) == 0)
            return levels[i].level;
    MUST(s->log_level == NULL); /* checked when it was set */
    return LOG_INFO;
}

enum log_format settings_log_format(const struct settings *s)
{
    if (strcmp(s->log_format, "auto") == 0)
        return LOG_FORMAT_AUTO;
    return strcmp(s->log_format, "text") == 0 ? LOG_FORMAT_TEXT : LOG_FORMAT_JSON;
}
