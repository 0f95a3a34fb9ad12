#include "domains/gateway/gateway.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/heart.h"
#include "base/log.h"
#include "base/must.h"
#include "domains/gateway/gateway_internal.h"

#include "base/banned.h"

const struct gateway_role gateway_role = {
    .name = "gateway", .queue = "~deliver", .domain = DOMAIN_OUTBOUND, .component = "outbound"};

enum { REPORT_MS = 1500, LAST_SPANS_MS = 1500, WAIT_MS_MAX = 1000 };

/* Requests in flight and kept connections are descriptors. */
static void allow_descriptors(uint32_t in_flight_max)
{
    struct rlimit limit;
    rlim_t wanted = in_flight_max + EGRESS_CONNECTIONS_MAX + 256;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        log_line(LOG_WARN, "few_descriptors", "error_message", LOG_TEXT(strerror(errno)), NULL);
}

static void request_over(void *gateway, const struct egress_result *result)
{
    struct gateway *g = gateway;
    if (g->spans && result->owner == g->spans)
        span_export_over(g->spans, result);
    else if (policy_asker_owns(g->policy, result->owner))
        policy_asker_over(g->policy, result);
    else if (key_fetcher_owns(g->keys, result->owner))
        key_fetcher_over(g->keys, result);
    else
        sending_over(g, result);
    outbound_room(g);
}

static void open_gateway(struct gateway *g, const struct gateway_config *config)
{
    g->config = config;
    g->clock = &clock_system;
    TAILQ_INIT(&g->done);
    TAILQ_INIT(&g->back);
    snprintf(g->name, sizeof g->name, "%s %lld", config->role->name, (long long)config->instance);
    g->link = (struct link_watch){.component = config->role->name, .instance_id = g->name};
    g->busy_ms = clock_mono_ms(g->clock);
    outbound_open(g, clock_mono_ms(g->clock));
    uint32_t in_flight_max = g->partition_count * g->partition_room;
    allow_descriptors(in_flight_max);
    g->client = worker_client_new(&(struct worker_client_config){.socket_path = config->socket_path,
                                                                 .timeout_ms = CALL_TIMEOUT_MS,
                                                                 .calls_max = g->loop_count + 10,
                                                                 .clock = g->clock,
                                                                 .link = gateway_link,
                                                                 .link_self = g});
    g->egress = egress_new(&(struct egress_config){.policy = config->policy,
                                                   .in_flight_max = in_flight_max + 2 + POLICY_ASKED_MAX,
                                                   .connections_max = EGRESS_CONNECTIONS_MAX,
                                                   .lookups_max = EGRESS_LOOKUPS_MAX,
                                                   .bytes_max = EGRESS_BYTES_MAX,
                                                   .clock = g->clock,
                                                   .done = request_over,
                                                   .self = g});
    g->spans = span_export_new(&(struct span_export_config){.endpoint = config->otlp_endpoint,
                                                            .headers = config->otlp_headers,
                                                            .client = g->client,
                                                            .egress = g->egress,
                                                            .clock = g->clock});
    g->policy = policy_asker_new(&(struct policy_asker_config){.url = config->policy_url,
                                                               .client = g->client,
                                                               .egress = g->egress,
                                                               .clock = g->clock,
                                                               .instance = config->instance});
    g->keys = key_fetcher_new(&(struct key_fetcher_config){
        .on = config->fetches_keys, .client = g->client, .egress = g->egress, .clock = g->clock});
}

static void free_list(struct sending_list *list)
{
    struct sending *s;
    while ((s = TAILQ_FIRST(list))) {
        TAILQ_REMOVE(list, s, link);
        arena_free(s->arena);
    }
}

static void free_batch(struct gateway_batch *b)
{
    for (size_t i = 0; b->call && i < b->count; i++)
        arena_free(b->items[i]->arena);
}

/* What is left was not answered in time: its leases run out, and core hands it out again. */
static void close_gateway(struct gateway *g)
{
    actors_free(g->actors);
    for (size_t i = 0; g->heartbeat.call && i < g->heartbeat.count; i++)
        if (g->heartbeat.items[i]->gone) /* held by the heartbeat alone */
            arena_free(g->heartbeat.items[i]->arena);
    egress_free(g->egress);
    worker_client_free(g->client);
    span_export_free(g->spans);
    policy_asker_free(g->policy);
    key_fetcher_free(g->keys);
    free_batch(&g->finish);
    free_batch(&g->release);
    free_list(&g->done);
    free_list(&g->back);
    free(g->partitions);
    free(g->loops);
}

/* When a drain has to look again at the latest. */
static int64_t drain_at_ms(const struct gateway *g, int64_t now_ms)
{
    if (!g->draining)
        return INT64_MAX;
    return now_ms < g->drain_until_ms ? g->drain_until_ms : g->drain_until_ms + REPORT_MS;
}

static int wait_ms(const struct gateway *g, int64_t now_ms)
{
    int64_t idle_at_ms = g->config->idle_ms && !g->draining ? g->busy_ms + g->config->idle_ms : INT64_MAX;
    const int64_t times[] = {gateway_next_at_ms(g, now_ms), egress_deadline_ms(g->egress),
                             worker_client_deadline_ms(g->client), drain_at_ms(g, now_ms), idle_at_ms};
    int64_t at = INT64_MAX;
    for (size_t i = 0; i < LENGTH_OF(times); i++)
        if (times[i] < at)
            at = times[i];
    int64_t ms = at == INT64_MAX ? WAIT_MS_MAX : at - now_ms;
    return ms < 0 ? 0 : ms > WAIT_MS_MAX ? WAIT_MS_MAX : (int)ms;
}

static void wait_for_something(const struct gateway *g, int64_t now_ms)
{
    struct pollfd watched[] = {{.fd = worker_client_fd(g->client), .events = POLLIN},
                               {.fd = egress_fd(g->egress), .events = POLLIN},
                               {.fd = g->draining ? -1 : g->config->stop_fd, .events = POLLIN}};
    int n = poll(watched, LENGTH_OF(watched), heart_sleep_ms(wait_ms(g, now_ms)));
    MUST(n >= 0 || errno == EINTR);
}

static void begin_drain(struct gateway *g, int64_t until_ms)
{
    log_line(LOG_INFO, "draining", "deliveries", LOG_INT((int64_t)g->count), NULL);
    g->draining = true;
    g->drain_until_ms = until_ms;
    outbound_abandon_claims(g);
}

/* Partitions failed too often: what they had goes back, then root starts this process again. */
static void begin_end(struct gateway *g, int64_t now_ms)
{
    g->exit_code = ACTOR_EXIT;
    begin_drain(g, now_ms);
}

/* Nothing to do for long. A claim that core answers in this instant is lost on the way, and comes back when
 * its lease ends. */
static bool is_idle(struct gateway *g, int64_t now_ms)
{
    if (outbound_has_work(g))
        g->busy_ms = now_ms;
    return g->config->idle_ms && now_ms - g->busy_ms >= g->config->idle_ms;
}

/* True when nothing is left, or no time to wait for it. */
static bool is_drained(struct gateway *g, int64_t now_ms)
{
    if (!g->draining)
        return false;
    if (now_ms >= g->drain_until_ms)
        outbound_cancel(g);
    int64_t end_ms = g->drain_until_ms + REPORT_MS, spans_ms = now_ms + LAST_SPANS_MS;
    if (g->count == 0) /* the spans of the last deliveries are with core by now */
        span_export_stop(g->spans, now_ms, spans_ms < end_ms ? spans_ms : end_ms);
    bool last = g->count == 0 && span_export_is_over(g->spans, now_ms);
    if (last) /* until now it was asked as ever: nobody else would */
        policy_asker_stop(g->policy);
    return now_ms >= end_ms || (last && policy_asker_is_over(g->policy));
}

int gateway_main(const struct gateway_config *config)
{
    struct gateway *g = must_alloc(sizeof *g);
    struct heart *heart = heart_open(config->role->name);
    open_gateway(g, config);
    for (;;) {
        heart_beat(heart);
        int64_t now_ms = clock_mono_ms(g->clock);
        if (!g->draining && config->stop_requested())
            begin_drain(g, now_ms + config->drain_ms);
        else if (!g->draining && is_idle(g, now_ms))
            begin_drain(g, now_ms);
        if (!g->exit_code && actors_ended(g->actors))
            begin_end(g, now_ms);
        if (is_drained(g, now_ms))
            break;
        gateway_pump(g, now_ms);
        wait_for_something(g, now_ms);
        worker_client_work(g->client);
        outbound_run(g, clock_mono_ms(g->clock));
        egress_poll(g->egress, 0);
    }
    heart_close(heart);
    int exit_code = g->exit_code;
    close_gateway(g);
    free(g);
    return exit_code;
}
