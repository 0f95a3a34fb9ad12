/* runtime/slo.h - the service levels of seed 004: the measures, their targets, their present values.
 *
 * Window:  the last SLO_WINDOW_S seconds, in slices of SLO_SLICE_S: a sample leaves after 290 to 300 seconds.
 * Levels:  ok, warn, critical (AT-09); queue pressure has the words of pressure.h. No samples: ok, a ratio of
 *          1 (AT-11). `>` for latencies, `<` for the ratio, `>=` for the rest. Levels are exact: samples
 *          above each bound are counted, not read off a histogram. The value of a p95 is the upper end of its
 *          bucket. Queue pressure is a p95 as well, of looks at the fullest queue: the level that holds for
 *          all but a twentieth of the time. Its level counts looks by the level that the queues had; its
 *          value is in steps of SLO_OCCUPANCY_STEP_PPM.
 * Samples: each measuring thread adds to a tally of its own (one writer each, no lock, no memory); once a
 *          second the owner hands in the sum of all tallies of an SLO (slo_take); the difference goes into
 *          the window.
 * Targets: a setting may make a target stricter; its bounds in config/settings_list.h are the baselines, so
 *          no looser one is taken (TOP-058). The warning moves with its target.
 * Pure:    no I/O, no clock, no lock. Memory is fixed. */
#ifndef WEIR_RUNTIME_SLO_H
#define WEIR_RUNTIME_SLO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "config/settings.h"
#include "runtime/pressure.h"

enum slo_kind { SLO_P95, SLO_RATIO, SLO_OCCUPANCY, SLO_COUNT_OF };

/* X(id, name, sli, kind, target, warn, telemetry event, its dimensions)
 * Bounds in microseconds (P95), millionths (RATIO, OCCUPANCY), or as a number (COUNT_OF). Beyond the target
 * is critical. */
#define SLO_LIST(X)                                                                                          \
    X(INGEST, "ingest_decision_latency", "ingest_latency_ms", SLO_P95, 100000, 75000, "ingest.completed",    \
      "instance_id,channel,outcome")                                                                         \
    X(ENQUEUE, "outbound_enqueue_latency", "outbound_enqueue_ms", SLO_P95, 50000, 40000,                     \
      "outbound.enqueued", "instance_id,partition,operation")                                                \
    X(DELIVERY, "outbound_delivery_reliability", "delivery_success_ratio", SLO_RATIO, 995000, 997000,        \
      "outbound.result", "channel,provider_code,classification")                                             \
    X(RECONNECT, "instance_reconnect_recovery", "reconnect_mttr_ms", SLO_P95, 60000000, 30000000,            \
      "instance.connected", "instance_id,attempts,reason")                                                   \
    X(PRESSURE, "queue_pressure_safety", "queue_occupancy_ratio", SLO_OCCUPANCY, 700000, 700000,             \
      "pressure.transition", "component,partition,pressure_level")                                           \
    X(CASCADES, "crash_containment", "cascade_count", SLO_COUNT_OF, 0, 1, "supervisor.escalation",           \
      "domain,source_child,restart_count")

#define X(id, ...) SLO_##id,
enum slo_id { SLO_LIST(X) SLO_COUNT };
#undef X

/* Words of the first three are ok, warn, critical. */
enum slo_level { SLO_OK, SLO_WARN, SLO_CRITICAL, SLO_LEVEL_COUNT };

enum {
    SLO_WINDOW_S = 300,
    SLO_SLICE_S = 10,
    SLO_SLICES = SLO_WINDOW_S / SLO_SLICE_S,
    SLO_BUCKETS = 44,
    SLO_OCCUPANCY_STEP_PPM = 25000, /* a bucket of an occupancy; those of latencies: slo.c */
};

struct slo_row {
    const char *name, *sli, *event, *dimensions; /* event without its prefix */
    enum slo_kind kind;
    int64_t target, warn;
};
extern const struct slo_row slo_rows[SLO_COUNT]; /* the baselines */

struct slo_bounds {
    int64_t target, warn;
};
/* The target in force: the baseline, or the stricter one of a setting. */
struct slo_bounds slo_bounds(enum slo_id id, const struct settings *s);

/* Numbers since the start; one writer. P95: `count` samples. RATIO: `count` results, `bad` of them failures.
 * OCCUPANCY: `count` looks, of which at warn or above, at degraded or above, and `bad` at shed.
 * COUNT_OF: `count` only. */
struct slo_tally {
    _Atomic uint64_t count, above_warn, above_target, bad;
    _Atomic uint64_t buckets[SLO_BUCKETS + 1]; /* the last: above every bound */
};
void slo_tally_sample(struct slo_tally *t, const struct slo_bounds *b, int64_t us); /* P95 */
void slo_tally_result(struct slo_tally *t, bool good);                              /* RATIO */
void slo_tally_look(struct slo_tally *t, const struct pressure_board *p);           /* OCCUPANCY */
void slo_tally_count(struct slo_tally *t, uint64_t n);                              /* COUNT_OF */
void slo_tally_sum(struct slo_tally *into, const struct slo_tally *from); /* `into` has one writer too */

struct slo_state {
    enum slo_level level;
    enum pressure_level pressure; /* SLO_OCCUPANCY only: its level in those words */
    double value;                 /* milliseconds, ratio, number */
    double target;
    uint64_t samples; /* in the window */
};

struct slo_board;
/* `tell` hears of each change of a level, from inside the call that made it. */
struct slo_board *slo_board_new(const struct settings *s,
                                void (*tell)(void *self, enum slo_id id, const struct slo_state *now,
                                             const struct slo_state *before),
                                void *self);
struct slo_board *slo_board_free(struct slo_board *b); /* NULL is fine; always returns NULL */

/* The sum of an SLO's tallies as it is now; call it for each about once a second. */
void slo_take(struct slo_board *b, enum slo_id id, const struct slo_tally *sum, int64_t now_ms);
void slo_state(const struct slo_board *b, enum slo_id id, struct slo_state *ret);
const char *slo_level_text(enum slo_id id, const struct slo_state *s);
/* An array of {"name","sli","window_s","value","target","level","samples"}. */
void slo_board_write(const struct slo_board *b, struct json_writer *w);

#endif
