/* api/overload.h - core's own load: how full every queue is, how good the service is, and the effect on
 * requests.
 *
 * Owner of: the board of runtime/pressure.h and the one of runtime/slo.h. Changes of a level are logged here,
 *           once each, under the event names of seed 004.
 * Hot path: overload_level() is one relaxed read. A request needs nothing else.
 * Measured: after each batch by the commit thread, and a few times a second by core's main thread, which
 *           waits for no disk; so a commit loop that stands still is seen, too.
 * Reports:  other processes report their queues; see overload_serve().
 * Threads:  any; one lock, held for moments. */
#ifndef WEIR_API_OVERLOAD_H
#define WEIR_API_OVERLOAD_H

#include "base/clock.h"
#include "base/json.h"
#include "config/settings.h"
#include "http/server.h"
#include "kernel/kernel.h"
#include "runtime/pressure.h"
#include "runtime/slo.h"
#include "runtime/supervision.h"

enum {
    OVERLOAD_TICK_MS = 250,
    OVERLOAD_REPORT_QUEUES_MAX = 256,
    OVERLOAD_REPORT_ITEMS_MAX = 64, /* reconnects */
};

struct metrics;
struct overload;
/* Samples of SLOs are counted in `metrics`, each thread for itself. */
struct overload *overload_new(const struct settings *s, const struct clock *clock, struct metrics *metrics);
struct overload *overload_free(struct overload *o); /* NULL is fine; always returns NULL */

/* The worst level of the queues that govern the API. */
enum pressure_level overload_level(const struct overload *o);
/* The worst of all, for people and probes. */
enum pressure_level overload_worst(struct overload *o);

/* Figures that other modules count; 0 as capacity: there is no such queue here. */
struct overload_queues {
    struct kernel_stats kernel;
    int64_t connections, connections_max, held_bytes, policy_questions, policy_capacity, spans, span_capacity,
        inbox, inbox_capacity;
};
void overload_measure(struct overload *o, const struct overload_queues *q);
/* Restarts that left their domain, since root began, and when the last of them were, oldest first. */
struct overload_cascades {
    int64_t count, at_ms[CASCADE_TIMES_MAX];
    size_t times;
};
/* Forgets old reports; about once a second also looks at the SLOs. */
void overload_tick(struct overload *o, const struct overload_cascades *cascades);

/* --- samples of SLOs, any thread ------------------------------------------------------------------------ */

void overload_sample(struct overload *o, enum slo_id id, int64_t us); /* of those that are a p95 */
void overload_delivery(struct overload *o, bool delivered);           /* one ended: made, or given up */
/* A request that brought work or events was answered so, after so long. Logged at debug. */
void overload_ingested(struct overload *o, int status, int64_t us);
/* A connection is back after `elapsed_ms`. Logged, too. */
void overload_reconnected(struct overload *o, struct str instance, int64_t elapsed_ms, int64_t attempts,
                          struct str reason);

/* Whether a database elsewhere takes commits; its way back is a sample. `errors`: failed commits so far. */
void overload_store(struct overload *o, bool storing, uint64_t errors);

/* --- showing -------------------------------------------------------------------------------------------- */

/* Arrays for GET /ops/v1/topology: [{"component","partition","ratio","level"}],
 * [{"domain","key","count","depths"}] of the domains that are hashed, whether anybody works there or not, and
 * [{"name","sli","window_s","value","target","level","samples"}]. */
void overload_write_pressure(struct overload *o, struct json_writer *w);
void overload_write_partitions(struct overload *o, struct json_writer *w);
void overload_write_slos(struct overload *o, struct json_writer *w);
void overload_write_metrics(struct overload *o, struct strbuf *out);

/* POST /internal/v1/pressure, over the Unix socket only; a process sends it about once a second, and at
 * once when a level of its own changes:
 *
 *   {"process":"gateway 1",
 *    "queues":[{"component":"outbound","partition":0,"depth":3,"capacity":256}, ...],     all it holds
 *    "reconnects":[{"instance_id":"gateway 1","elapsed_ms":120,"attempts":2,"reason":"refused"}]}   new ones
 *
 * All but the process may be left out; without "queues" those it has told of stay. Answers 200
 * {"level":"normal"}, the level that governs the API; 400 when it cannot be read. Queues of a process that
 * has not reported for 10 s are dropped. Components are those of PRESSURE_COMPONENTS. Not part of the
 * contracts: it is between processes of one program. False: the request is not this one. */
#define OVERLOAD_REPORT_PATH "/internal/v1/pressure"
bool overload_serve(struct overload *o, struct http_exchange *x);

#endif
