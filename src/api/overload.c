#include "api/overload.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/metrics.h"
#include "api/overload_internal.h"
#include "base/json_members.h"
#include "base/log.h"
#include "base/must.h"
#include "runtime/event_names.h"

#include "base/banned.h"

enum { SLO_LOOK_MS = 1000, EVENT_NAME_MAX = 64 };

/* --- what is told, once for each change ---------------------------------------------------------------- */

static void tell_pressure(void *self, const struct pressure_gauge *g, enum pressure_level before)
{
    (void)self;
    enum log_level level = g->level >= PRESSURE_DEGRADED ? LOG_WARN : LOG_INFO;
    log_line(level, EVENT_PRESSURE_TRANSITION, "component", LOG_TEXT(pressure_component_text(g->component)),
             "partition", LOG_INT(g->partition), "pressure_level", LOG_TEXT(pressure_level_text(g->level)),
             "before", LOG_TEXT(pressure_level_text(before)), "depth", LOG_INT(g->depth), "capacity",
             LOG_INT(g->capacity), NULL);
}

/* Values in thousandths: log lines hold whole numbers. */
static void tell_slo(void *self, enum slo_id id, const struct slo_state *now, const struct slo_state *before)
{
    (void)self;
    const struct slo_row *row = &slo_rows[id];
    log_line(now->level == SLO_OK ? LOG_INFO : LOG_WARN, EVENT_PREFIX "slo.transition", "slo",
             LOG_TEXT(row->name), "sli", LOG_TEXT(row->sli), "level", LOG_TEXT(slo_level_text(id, now)),
             "before", LOG_TEXT(slo_level_text(id, before)), "value_thousandths",
             LOG_INT((int64_t)(now->value * 1000)), "target_thousandths",
             LOG_INT((int64_t)(now->target * 1000)), "samples", LOG_INT((int64_t)now->samples),
             "telemetry_event", LOG_TEXT(row->event), NULL);
}

/* --- making, asking ------------------------------------------------------------------------------------ */

struct overload *overload_new(const struct settings *s, const struct clock *clock, struct metrics *metrics)
{
    struct overload *o = must_alloc(sizeof *o);
    struct err err;
    o->settings = s;
    o->clock = clock;
    o->metrics = metrics;
    o->board = pressure_board_new(tell_pressure, o);
    o->slos = slo_board_new(s, tell_slo, o);
    for (int id = 0; id < SLO_COUNT; id++)
        o->bounds[id] = slo_bounds((enum slo_id)id, s);
    if (partition_count_all(s, partition_cpus(s), &o->partitions, &err) != ERR_OK)
        o->partitions = (struct partition_counts){{0}}; /* the program does not start like that */
    pthread_mutex_init(&o->lock, NULL);
    return o;
}

struct overload *overload_free(struct overload *o)
{
    if (!o)
        return NULL;
    pressure_board_free(o->board);
    slo_board_free(o->slos);
    pthread_mutex_destroy(&o->lock);
    free(o);
    return NULL;
}

enum pressure_level overload_level(const struct overload *o)
{
    return (enum pressure_level)atomic_load_explicit(&o->level, memory_order_relaxed);
}

enum pressure_level overload_worst(struct overload *o)
{
    pthread_mutex_lock(&o->lock);
    enum pressure_level worst = pressure_worst(o->board, false);
    pthread_mutex_unlock(&o->lock);
    return worst;
}

void overload_settle(struct overload *o)
{
    atomic_store_explicit(&o->level, (int)pressure_worst(o->board, true), memory_order_relaxed);
}

/* --- measuring ----------------------------------------------------------------------------------------- */

void overload_measure(struct overload *o, const struct overload_queues *q)
{
    const struct settings *s = o->settings;
    const struct kernel_stats *k = &q->kernel;
    /* Waiting commands are bounded by their number and by their bytes: the fuller counts. */
    bool by_bytes = (double)k->commands_waiting_bytes * (double)s->commands_max >
                    (double)k->commands_waiting * (double)s->commands_max_bytes;
    pthread_mutex_lock(&o->lock);
    pressure_set(o->board, PRESSURE_OF_COMMANDS, 0,
                 by_bytes ? k->commands_waiting_bytes : k->commands_waiting,
                 by_bytes ? s->commands_max_bytes : s->commands_max);
    pressure_set(o->board, PRESSURE_OF_CRITICAL, 0, k->critical_waiting, s->connections_max);
    pressure_set(o->board, PRESSURE_OF_CONNECTIONS, 0, q->connections, q->connections_max);
    pressure_set(o->board, PRESSURE_OF_BODIES, 0, q->held_bytes, s->bodies_max_bytes);
    pressure_set(o->board, PRESSURE_OF_TASKS, 0, k->queued, s->jobs_queue_size);
    pressure_set(o->board, PRESSURE_OF_ACTIVE, 0, k->live, s->jobs_max_active);
    pressure_set(o->board, PRESSURE_OF_OUTBOX, 0, k->deliveries, s->webhooks_outbox_size);
    if (q->policy_capacity)
        pressure_set(o->board, PRESSURE_OF_POLICY, 0, q->policy_questions, q->policy_capacity);
    if (q->span_capacity)
        pressure_set(o->board, PRESSURE_OF_SPANS, 0, q->spans, q->span_capacity);
    if (q->inbox_capacity)
        pressure_set(o->board, PRESSURE_OF_INBOX, 0, q->inbox, q->inbox_capacity);
    overload_settle(o);
    pthread_mutex_unlock(&o->lock);
}

/* Each counts from when it was: one that took the core before us, too, for the rest of its window. */
static void count_cascades(struct overload *o, const struct overload_cascades *c, int64_t now)
{
    int64_t first = c->count - (int64_t)c->times; /* the number of those whose time is not kept any more */
    if (c->count < o->cascades_seen)
        o->cascades_seen = 0; /* root began anew */
    for (size_t i = 0; i < c->times; i++) {
        if (first + (int64_t)i < o->cascades_seen || c->at_ms[i] > now)
            continue;
        slo_tally_count(&o->cascades, 1);
        slo_take(o->slos, SLO_CASCADES, &o->cascades, c->at_ms[i]);
    }
    o->cascades_seen = c->count;
}

void overload_tick(struct overload *o, const struct overload_cascades *cascades)
{
    int64_t now = clock_mono_ms(o->clock);
    pthread_mutex_lock(&o->lock);
    pressure_forget(o->board, now);
    overload_settle(o);
    if (now - o->slos_at_ms >= SLO_LOOK_MS) {
        o->slos_at_ms = now;
        count_cascades(o, cascades, now);
        slo_tally_look(&o->looks, o->board);
        for (int id = 0; id < SLO_COUNT; id++) {
            struct slo_tally sum = {0};
            metrics_slo_sum(o->metrics, (enum slo_id)id, &sum);
            slo_take(o->slos, (enum slo_id)id,
                     id == SLO_CASCADES   ? &o->cascades
                     : id == SLO_PRESSURE ? &o->looks
                                          : &sum,
                     now);
        }
    }
    pthread_mutex_unlock(&o->lock);
}

void overload_sample(struct overload *o, enum slo_id id, int64_t us)
{
    slo_tally_sample(metrics_slo(o->metrics, id), &o->bounds[id], us);
}

void overload_delivery(struct overload *o, bool delivered)
{
    slo_tally_result(metrics_slo(o->metrics, SLO_DELIVERY), delivered);
}

/* What was refused because the caller was wrong has been decided, too. */
void overload_ingested(struct overload *o, int status, int64_t us)
{
    overload_sample(o, SLO_INGEST, us);
    if (log_enabled(LOG_DEBUG))
        log_line(LOG_DEBUG, EVENT_INGEST_COMPLETED, "instance_id", LOG_TEXT("api"), "channel",
                 LOG_TEXT("api"), "outcome",
                 LOG_TEXT(status < 300   ? "accepted"
                          : status < 500 ? "refused"
                                         : "failed"),
                 "ingest_latency_ms", LOG_INT(us / 1000), NULL);
}

void overload_reconnected(struct overload *o, struct str instance, int64_t elapsed_ms, int64_t attempts,
                          struct str reason)
{
    overload_sample(o, SLO_RECONNECT, elapsed_ms * 1000);
    log_line(LOG_INFO, EVENT_INSTANCE_CONNECTED, "instance_id", LOG_STR(instance), "attempts",
             LOG_INT(attempts), "reason", LOG_STR(reason), "reconnect_mttr_ms", LOG_INT(elapsed_ms), NULL);
}

void overload_store(struct overload *o, bool storing, uint64_t errors)
{
    int64_t now = clock_mono_ms(o->clock), lost;
    pthread_mutex_lock(&o->lock);
    lost = storing ? o->store_lost_ms : 0;
    uint64_t attempts = errors - o->store_errors;
    if (storing)
        o->store_errors = errors;
    if (storing || !o->store_lost_ms)
        o->store_lost_ms = storing ? 0 : now;
    pthread_mutex_unlock(&o->lock);
    if (lost)
        overload_reconnected(o, STR("database"), now - lost, (int64_t)attempts, STR("commit failed"));
}

/* --- showing ------------------------------------------------------------------------------------------- */

void overload_write_pressure(struct overload *o, struct json_writer *w)
{
    pthread_mutex_lock(&o->lock);
    pressure_board_write(o->board, w);
    pthread_mutex_unlock(&o->lock);
}

/* A domain is called like the component that its processes report; sessions have no process yet. */
static int64_t depth_of(const struct overload *o, enum partition_domain domain, uint32_t partition)
{
    enum pressure_component component;
    const char *name = partition_rules[domain].name;
    bool reports = pressure_component_parse((struct str){name, strlen(name)}, &component);
    return reports ? pressure_depth(o->board, component, partition) : 0;
}

void overload_write_partitions(struct overload *o, struct json_writer *w)
{
    pthread_mutex_lock(&o->lock);
    jw_array(w);
    for (enum partition_domain d = 0; d < PARTITION_DOMAIN_COUNT; d++) {
        if (!o->partitions.of[d])
            continue; /* one child for each key */
        jw_object(w);
        encode_text(w, "domain", partition_rules[d].name);
        encode_text(w, "key", partition_rules[d].key);
        encode_int(w, "count", o->partitions.of[d]);
        jw_key(w, "depths");
        jw_array(w);
        for (uint32_t i = 0; i < o->partitions.of[d]; i++)
            jw_int(w, depth_of(o, d, i));
        jw_array_end(w);
        jw_object_end(w);
    }
    jw_array_end(w);
    pthread_mutex_unlock(&o->lock);
}

void overload_write_slos(struct overload *o, struct json_writer *w)
{
    pthread_mutex_lock(&o->lock);
    slo_board_write(o->slos, w);
    pthread_mutex_unlock(&o->lock);
}

static void write_gauges(struct overload *o, struct strbuf *out)
{
    size_t count;
    const struct pressure_gauge *g = pressure_gauges(o->board, &count);
    metrics_head(out, "weir_pressure_ratio", "gauge", "How full a queue is");
    for (size_t i = 0; i < count; i++)
        strbuf_addf(out, "weir_pressure_ratio{component=\"%s\",partition=\"%u\"} %.6f\n",
                    pressure_component_text(g[i].component), g[i].partition, pressure_ratio(&g[i]));
    metrics_head(out, "weir_pressure_level", "gauge", "0 normal, 1 warn, 2 degraded, 3 shed");
    for (size_t i = 0; i < count; i++)
        strbuf_addf(out, "weir_pressure_level{component=\"%s\",partition=\"%u\"} %d\n",
                    pressure_component_text(g[i].component), g[i].partition, (int)g[i].level);
    metrics_head(out, "weir_pressure_transitions_total", "counter", "Times a queue entered a level");
    for (int c = 0; c < PRESSURE_COMPONENT_COUNT; c++)
        for (int l = 0; l < PRESSURE_LEVEL_COUNT; l++) {
            uint64_t n = pressure_entered(o->board, (enum pressure_component)c, (enum pressure_level)l);
            if (n || c == PRESSURE_OF_COMMANDS)
                strbuf_addf(out,
                            "weir_pressure_transitions_total{component=\"%s\",pressure_level=\"%s\"} %llu\n",
                            pressure_component_text((enum pressure_component)c),
                            pressure_level_text((enum pressure_level)l), (unsigned long long)n);
        }
}

static void write_partitions(struct overload *o, struct strbuf *out)
{
    metrics_head(out, "weir_partitions", "gauge", "Partitions of a domain");
    for (enum partition_domain d = 0; d < PARTITION_DOMAIN_COUNT; d++)
        if (o->partitions.of[d])
            strbuf_addf(out, "weir_partitions{domain=\"%s\"} %u\n", partition_rules[d].name,
                        o->partitions.of[d]);
    metrics_head(out, "weir_partition_depth", "gauge", "What a partition holds; 0 while nobody works there");
    for (enum partition_domain d = 0; d < PARTITION_DOMAIN_COUNT; d++)
        for (uint32_t i = 0; i < o->partitions.of[d]; i++)
            strbuf_addf(out, "weir_partition_depth{domain=\"%s\",partition=\"%u\"} %lld\n",
                        partition_rules[d].name, i, (long long)depth_of(o, d, i));
}

static void write_slo_gauge(struct overload *o, struct strbuf *out, const char *name, const char *help,
                            double (*pick)(const struct slo_state *s))
{
    metrics_head(out, name, "gauge", help);
    for (int id = 0; id < SLO_COUNT; id++) {
        struct slo_state s;
        slo_state(o->slos, (enum slo_id)id, &s);
        strbuf_addf(out, "%s{slo=\"%s\"} %.9g\n", name, slo_rows[id].name, pick(&s));
    }
}

static double pick_value(const struct slo_state *s)
{
    return s->value;
}
static double pick_target(const struct slo_state *s)
{
    return s->target;
}
static double pick_level(const struct slo_state *s)
{
    return (double)s->level;
}
static double pick_samples(const struct slo_state *s)
{
    return (double)s->samples;
}

void overload_write_metrics(struct overload *o, struct strbuf *out)
{
    pthread_mutex_lock(&o->lock);
    write_gauges(o, out);
    write_partitions(o, out);
    write_slo_gauge(o, out, "weir_slo_value", "SLI over 5 minutes: milliseconds, ratio or number",
                    pick_value);
    write_slo_gauge(o, out, "weir_slo_target", "What it has to be at most; a reliability: at least",
                    pick_target);
    write_slo_gauge(o, out, "weir_slo_level", "0 ok, 1 warn, 2 critical", pick_level);
    write_slo_gauge(o, out, "weir_slo_samples", "What the value is worked out from", pick_samples);
    pthread_mutex_unlock(&o->lock);
}
