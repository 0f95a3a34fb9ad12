/* weir serve: which function each process of the table runs, and what people see when it is ready. */
#include "cli/serve.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/must.h"
#include "base/store_url.h"
#include "cli/command.h"
#include "core/core.h"
#include "domains/replay/replay.h"
#include "domains/runner/runner.h"
#include "runtime/failure_modes.h"
#include "runtime/partition.h"
#include "runtime/supervisor.h"
#include "telemetry/otlp.h"

#include "base/banned.h"

static int run_runner(const struct process_start *start)
{
    const struct settings *s = start->settings;
    struct runner_config config = {
        .workers = s->runner_workers,
        .concurrency = s->runner_concurrency,
        .time_scale = s->runner_time_scale,
        .heartbeat_ms = s->queue_heartbeat_ms,
        .drain_ms = s->runtime_drain_ms,
        .socket_path = start->socket_path,
        .scratch_fd = start->scratch_fd,
        .instance = start->instance,
        .stop_requested = process_stop_requested,
        .stop_fd = process_stop_fd(),
    };
    process_ready(start); /* it reconnects by itself, so there is nothing to wait for */
    return runner_main(&config);
}

/* What both that connect out have in common, and the address guard. */
static int run_sender(const struct process_start *start, struct gateway_config *config,
                      enum partition_domain partitions)
{
    const struct settings *s = start->settings;
    struct err err;
    struct partition_counts counts;
    struct str cidrs = str_of(s->webhooks_allow_cidrs ? s->webhooks_allow_cidrs : "");
    config->socket_path = start->socket_path;
    config->timeout_ms = s->webhooks_timeout_ms;
    config->heartbeat_ms = s->queue_heartbeat_ms;
    config->drain_ms = s->runtime_drain_ms;
    config->instance = start->instance;
    config->limits = domain_limits(config->role->domain, s);
    config->stop_requested = process_stop_requested;
    config->stop_fd = process_stop_fd();
    if (egress_policy_parse(cidrs, settings_webhooks_private(s), &config->policy, &err) != ERR_OK ||
        partition_count_all(s, partition_cpus(s), &counts, &err) != ERR_OK) {
        failure_boot_config_invalid(start->name, err.detail, "egress");
        return PROCESS_EXIT_CONFIG;
    }
    config->partitions = counts.of[partitions];
    process_ready(start);
    return gateway_main(config);
}

static int run_gateway(const struct process_start *start)
{
    const struct settings *s = start->settings;
    struct gateway_config config = {.role = &gateway_role,
                                    .in_flight_max = (uint32_t)s->gateway_in_flight,
                                    .otlp_endpoint = otlp_endpoint(),
                                    .otlp_headers = otlp_headers(),
                                    .policy_url = s->engine_policy_url};
    return run_sender(start, &config, PARTITION_OF_OUTBOUND);
}

static int run_replay(const struct process_start *start)
{
    const struct settings *s = start->settings;
    struct gateway_config config = {.role = &replay_role,
                                    .in_flight_max = (uint32_t)s->replay_in_flight,
                                    .idle_ms = process_rests(PROCESS_REPLAY, s) ? REPLAY_IDLE_MS : 0};
    return run_sender(start, &config, PARTITION_OF_REPLAY);
}

/* An address to connect to: a wildcard is where to listen, not where to call. */
static bool base_url(const struct settings *s, char *out, size_t size)
{
    char host[SETTINGS_HOST_MAX];
    uint16_t port;
    if (!settings_listen_parts(s, host, sizeof host, &port) || !port)
        return false;
    bool any = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
    bool brackets = !any && strchr(host, ':');
    snprintf(out, size, "http://%s%s%s:%u", brackets ? "[" : "", any ? "127.0.0.1" : host,
             brackets ? "]" : "", port);
    return true;
}

static void print_first_job(const char *url, const char *program)
{
    printf("\nA first job with curl:\n"
           "  client=$(curl -sS -X POST %s/v1/clients | sed 's/.*\"client_id\":\"\\([^\"]*\\)\".*/\\1/')\n"
           "  key=$(curl -sS -X POST %s/v1/clients/$client/keys | sed "
           "'s/.*\"api_key\":\"\\([^\"]*\\)\".*/\\1/')\n"
           "  curl -sS %s/v1/jobs -H \"Authorization: Bearer $key\" -H 'Content-Type: application/json' "
           "-d '{\"type\":\"EXECUTE\",\"work_kind\":\"SUCCESS_FAST\"}'\n",
           url, url, url);
    printf("or:\n"
           "  export WEIR_URL=%s\n"
           "  eval \"$(%s client create --with-key --quiet)\"\n"
           "  %s job submit --kind SUCCESS_FAST --wait\n",
           url, program, program);
}

struct greeting {
    const struct settings *settings;
    const char *program; /* as it was called, so that the lines shown can be pasted */
    bool quiet;
};

static void greet(void *self)
{
    const struct greeting *g = self;
    char url[SETTINGS_HOST_MAX + 16], store_url[SETTINGS_STORE_URL_MAX] = "";
    struct strbuf shown CLEANUP(strbuf_free) = {0};
    struct err err;
    if (settings_store_url(g->settings, store_url, sizeof store_url, &err) != ERR_OK)
        store_url[0] = 0;
    const char *file = store_url_file(str_of(store_url)).ptr;
    store_url_show(str_of(file ? file : store_url), &shown);
    if (base_url(g->settings, url, sizeof url)) {
        printf("weir " WEIR_VERSION " serves %s; data in %s (%s)\n", url, g->settings->data_dir, shown.ptr);
        if (!g->quiet)
            print_first_job(url, g->program);
    } else { /* port 0: the port was chosen by the system and stands in core's log line */
        printf("weir " WEIR_VERSION " serves %s; data in %s (%s)\n", g->settings->listen,
               g->settings->data_dir, shown.ptr);
    }
    fflush(stdout);
}

static int run_with_greeting(const struct settings *s, bool quiet, int argc, char **argv)
{
    /* Process titles are written over argv, so its text has to be kept. */
    char *program = must_strdup(argc > 0 && argv ? argv[0] : "weir");
    struct greeting greeting = {s, program, quiet};
    const struct supervisor_config config = {
        .settings = s,
        .mains = {[PROCESS_CORE] = core_main,
                  [PROCESS_RUNNER] = run_runner,
                  [PROCESS_GATEWAY] = run_gateway,
                  [PROCESS_REPLAY] = run_replay},
        .argc = argc,
        .argv = argv,
        .on_ready = greet,
        .on_ready_self = &greeting,
    };
    log_minimum(settings_log_level(s));
    if (otlp_endpoint() && !s->gateway_processes)
        log_line(LOG_WARN, "spans_not_exported", "error_message",
                 LOG_TEXT("OTEL_EXPORTER_OTLP_ENDPOINT is set, but gateway.processes is 0"), NULL);
    if (s->engine_policy_url && !s->gateway_processes)
        log_line(LOG_WARN, "policy_point_not_asked", "error_message",
                 LOG_TEXT("engine.policy_url is set, but gateway.processes is 0: the fallback decides"),
                 NULL);
    int code = supervisor_run(&config);
    free(program);
    return code;
}

int serve_run(const struct settings *s, int argc, char **argv)
{
    return run_with_greeting(s, false, argc, argv);
}

int command_serve(const struct invocation *in)
{
    struct settings s CLEANUP(settings_free);
    struct err err;
    if (cli_settings_load(in, &s, &err) != ERR_OK) {
        log_process("root");
        failure_boot_config_invalid("serve", err.detail, "settings");
        return cli_err(&err);
    }
    settings_warn(&s, stderr);
    return run_with_greeting(&s, in->quiet, in->argc, in->argv);
}
