/* The work of the gateway beside its deliveries, and the way from the skeleton's verbs to the partitions. */
#include "domains/gateway/gateway.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/must.h"
#include "domains/gateway/gateway_internal.h"
#include "runtime/failure_modes.h"
#include "telemetry/otlp.h"

#include "base/banned.h"

enum {
    LAST_SPANS_MS = 1500,
    WATCH_MS = 1000,      /* at least so often: requests without an end */
    CALLS_OF_HELPERS = 5, /* spans, questions, answers, keys; and one to spare */
    REQUESTS_OF_HELPERS = 2 + POLICY_ASKED_MAX,
};

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
    struct request_owner *owner = result->owner;
    owner->over(owner, result);
    outbound_room(gateway);
}

/* ---- verbs ---- */

static void open_helpers(struct gateway *g)
{
    const struct settings *s = g->process->settings;
    struct worker_client *client = domain_client(g->domain);
    g->spans = span_export_new(&(struct span_export_config){.endpoint = otlp_endpoint(),
                                                            .headers = otlp_headers(),
                                                            .client = client,
                                                            .egress = g->egress,
                                                            .clock = &clock_system});
    g->policy = policy_asker_new(&(struct policy_asker_config){.url = s->engine_policy_url,
                                                               .client = client,
                                                               .egress = g->egress,
                                                               .clock = &clock_system,
                                                               .instance = g->process->instance});
    g->keys = key_fetcher_new(&(struct key_fetcher_config){
        .on = s->tokens_issuers != NULL, .client = client, .egress = g->egress, .clock = &clock_system});
}

static void gateway_open(void *self, struct domain *d)
{
    struct gateway *g = self;
    g->domain = d;
    uint32_t in_flight_max = outbound_open(g, clock_mono_ms(&clock_system));
    allow_descriptors(in_flight_max);
    g->egress = egress_new(&(struct egress_config){.policy = g->guard,
                                                   .in_flight_max = in_flight_max + REQUESTS_OF_HELPERS,
                                                   .connections_max = EGRESS_CONNECTIONS_MAX,
                                                   .lookups_max = EGRESS_LOOKUPS_MAX,
                                                   .bytes_max = EGRESS_BYTES_MAX,
                                                   .clock = &clock_system,
                                                   .done = request_over,
                                                   .self = g});
    domain_watch_fd(d, egress_fd(g->egress));
    if (g->role->serves_core)
        open_helpers(g);
}

static struct domain_task *take(void *self, struct domain_room *room, const struct worker_task *claimed)
{
    struct sending *s = sending_new(claimed);
    (void)self;
    s->partition = CONTAINER_OF(room, struct outbound, room);
    return &s->task;
}

static struct sending *of(struct domain_task *t)
{
    return CONTAINER_OF(t, struct sending, task);
}

static void begin(void *self, struct domain_task *t, int64_t now_ms)
{
    (void)now_ms;
    outbound_take(self, of(t));
}

static bool report(void *self, struct domain_task *t, size_t bytes, struct arena *a,
                   struct worker_finish *ret)
{
    (void)self;
    (void)bytes; /* of a few hundred, always */
    *ret = sending_report(of(t), a);
    return true;
}

static void drop(void *self, struct domain_task *t)
{
    (void)self;
    arena_free(of(t)->arena);
}

static void work(void *self, int64_t now_ms)
{
    struct gateway *g = self;
    outbound_run(g, now_ms);
    egress_poll(g->egress, 0);
    if (actors_ended(g->actors)) /* their deliveries go back, then root starts this process again */
        domain_end(g->domain, ACTOR_EXIT);
    span_export_pump(g->spans, now_ms);
    policy_asker_pump(g->policy, now_ms);
    key_fetcher_pump(g->keys, now_ms);
}

static int64_t next_at_ms(void *self, int64_t now_ms)
{
    const struct gateway *g = self;
    const int64_t due[] = {actors_due(g->actors), egress_deadline_ms(g->egress),
                           span_export_next_at_ms(g->spans)};
    /* Of these only future times count: due work is still waiting for a free call. */
    const int64_t to_come[] = {policy_asker_next_at_ms(g->policy), key_fetcher_next_at_ms(g->keys)};
    int64_t at_ms = now_ms + WATCH_MS;
    for (size_t i = 0; i < LENGTH_OF(due); i++)
        at_ms = due[i] < at_ms ? due[i] : at_ms;
    for (size_t i = 0; i < LENGTH_OF(to_come); i++)
        at_ms = to_come[i] > now_ms && to_come[i] < at_ms ? to_come[i] : at_ms;
    return at_ms;
}

static void time_over(void *self, int64_t now_ms)
{
    (void)now_ms;
    outbound_cancel(self);
}

/* The spans of the last deliveries are with core by now. The policy point is still asked until they are out:
 * no other process would ask. */
static bool is_over(void *self, int64_t now_ms, int64_t end_ms)
{
    struct gateway *g = self;
    int64_t spans_ms = now_ms + LAST_SPANS_MS;
    span_export_stop(g->spans, now_ms, spans_ms < end_ms ? spans_ms : end_ms);
    if (!span_export_is_over(g->spans, now_ms))
        return false;
    policy_asker_stop(g->policy);
    return policy_asker_is_over(g->policy);
}

static void stop(void *self)
{
    outbound_close(self);
}

static const struct domain_ops ops = {
    .tasks = "deliveries",
    .task_key = "delivery_id",
    .claims_max = PARTITION_SLOTS,
    .calls_max = CALLS_OF_HELPERS,
    .starts_with_claim = true,
    .beats_late = true,
    .open = gateway_open,
    .take = take,
    .begin = begin,
    .report = report,
    .drop = drop,
    .work = work,
    .next_at_ms = next_at_ms,
    .time_over = time_over,
    .is_over = is_over,
    .stop = stop,
};

/* ---- start ---- */

static enum err_code read_settings(struct gateway *g, struct err *err)
{
    const struct settings *s = g->process->settings;
    struct partition_counts counts;
    struct str cidrs = str_of(s->webhooks_allow_cidrs ? s->webhooks_allow_cidrs : "");
    if (egress_policy_parse(cidrs, settings_webhooks_private(s), &g->guard, err) != ERR_OK ||
        partition_count_all(s, partition_cpus(s), &counts, err) != ERR_OK)
        return err->code;
    g->partition_count = counts.of[g->role->partitions];
    g->limits = domain_limits(g->process->kind->domain, s);
    return ERR_OK;
}

int gateway_run(const struct process_start *start, const struct gateway_role *role)
{
    struct gateway g = {.role = role, .process = start};
    struct err err;
    if (read_settings(&g, &err) != ERR_OK) {
        failure_boot_config_invalid(start->name, err.detail, "egress");
        return PROCESS_EXIT_CONFIG;
    }
    int exit_code = domain_main(start, &ops, &g);
    egress_free(g.egress);
    span_export_free(g.spans);
    policy_asker_free(g.policy);
    key_fetcher_free(g.keys);
    free(g.partitions);
    free(g.loops);
    return exit_code;
}

int gateway_main(const struct process_start *start)
{
    return gateway_run(start, &(struct gateway_role){.queue = "~deliver",
                                                     .partitions = PARTITION_OF_OUTBOUND,
                                                     .in_flight = start->settings->gateway_in_flight,
                                                     .serves_core = true});
}
