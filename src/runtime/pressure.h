/* runtime/pressure.h - how full every bounded queue is, and the level that follows from it.
 *
 * Levels: normal, warn, degraded, shed (seed 004). A level is entered at its bound and left
 *         PRESSURE_LEAVE_PPM below it (AT-10), so a queue that hovers at a bound changes its level once. The
 *         effects of each level: docs/operations/pressure.md.
 * Gauges: one for each component and partition. Core's own gauges are set by pressure_set(); other processes
 *         report all their queues together (pressure_report): a queue that a report no longer names, and
 *         every queue of a process that has not reported for PRESSURE_REPORT_MS, is gone. Several processes
 *         that report the same partition are added up.
 * Pure:   no I/O, no clock, no lock; the owner (api/overload.h) serialises calls and is told of each change
 *         by `tell`, exactly once for each.
 * Bounded: PRESSURE_GAUGES_MAX gauges, PRESSURE_PARTS_MAX reported parts; more are refused. */
#ifndef WEIR_RUNTIME_PRESSURE_H
#define WEIR_RUNTIME_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

/* X(name, wire, entered from this occupancy on, in millionths) */
#define PRESSURE_LEVELS(X)                                                                                   \
    X(NORMAL, "normal", 0)                                                                                   \
    X(WARN, "warn", 700000)                                                                                  \
    X(DEGRADED, "degraded", 850000)                                                                          \
    X(SHED, "shed", 950000)

#define X(name, wire, bound) PRESSURE_##name,
enum pressure_level { PRESSURE_LEVELS(X) PRESSURE_LEVEL_COUNT };
#undef X

/* X(name, wire, whether its level decides what requests are refused or hurried, what it is)
 * A full queue towards the outside, or of spans, is no reason to refuse work. */
#define PRESSURE_COMPONENTS(X)                                                                               \
    X(COMMANDS, "commands", true, "changes that wait for the commit loop")                                   \
    X(CRITICAL, "critical_commands", true, "the same, of what is never refused for load")                    \
    X(CONNECTIONS, "connections", true, "open HTTP connections")                                             \
    X(BODIES, "request_bodies", true, "bytes of requests in memory")                                         \
    X(TASKS, "task_queue", true, "QUEUED jobs")                                                              \
    X(ACTIVE, "active_jobs", true, "unfinished jobs")                                                        \
    X(POLICY, "policy_questions", false, "signals that wait for the policy decision point")                  \
    X(SPANS, "spans", false, "trace spans that wait for the collector")                                      \
    X(INBOX, "inbox", false, "rows that one look into the inbox of a shared database takes")                 \
    X(OUTBOX, "outbox", false, "stored deliveries that are not yet made")                                    \
    X(OUTBOUND, "outbound", false, "deliveries that the gateway holds")                                      \
    X(INGEST, "ingest", false, "messages that the connectors hold")                                          \
    X(REPLAY, "replay", false, "dead letters that are delivered again")

#define X(name, wire, governs, what) PRESSURE_OF_##name,
enum pressure_component { PRESSURE_COMPONENTS(X) PRESSURE_COMPONENT_COUNT };
#undef X

enum {
    PRESSURE_LEAVE_PPM = 50000,
    PRESSURE_REPORT_MS = 10000,
    PRESSURE_GAUGES_MAX = 512,
    PRESSURE_PARTS_MAX = 1024,
    PRESSURE_PROCESS_MAX = 32, /* bytes of a process's name, the last 0 included */
    PRESSURE_PARTITION_MAX = 4095,
};

const char *pressure_level_text(enum pressure_level level);
int64_t pressure_bound_ppm(enum pressure_level level);
const char *pressure_component_text(enum pressure_component component);
bool pressure_component_parse(struct str text, enum pressure_component *ret);
bool pressure_component_governs(enum pressure_component component);

/* The level after `now` when so much of the capacity is taken. Without a capacity nothing is. */
enum pressure_level pressure_next_level(enum pressure_level now, int64_t depth, int64_t capacity);

struct pressure_gauge {
    enum pressure_component component;
    uint32_t partition;
    int64_t depth, capacity;
    enum pressure_level level;
};
double pressure_ratio(const struct pressure_gauge *g);

/* One queue of a report. */
struct pressure_part {
    enum pressure_component component;
    uint32_t partition;
    int64_t depth, capacity;
};

struct pressure_board;
/* `tell` hears of each change of a level, from inside the call that made it. */
struct pressure_board *pressure_board_new(void (*tell)(void *self, const struct pressure_gauge *g,
                                                       enum pressure_level before),
                                          void *self);
struct pressure_board *pressure_board_free(struct pressure_board *b); /* NULL is fine; always returns NULL */

void pressure_set(struct pressure_board *b, enum pressure_component component, uint32_t partition,
                  int64_t depth, int64_t capacity);
/* Everything that `process` holds, now. False: there are too many, nothing was taken. */
bool pressure_report(struct pressure_board *b, const char *process, const struct pressure_part *parts,
                     size_t count, int64_t now_ms);
/* Forgets those who have not reported for too long. */
void pressure_forget(struct pressure_board *b, int64_t now_ms);

/* The worst level there is; of those that govern the API only, if asked so. */
enum pressure_level pressure_worst(const struct pressure_board *b, bool governing);
double pressure_worst_ratio(const struct pressure_board *b);
/* Ordered by component and partition. */
const struct pressure_gauge *pressure_gauges(const struct pressure_board *b, size_t *ret_count);
/* 0: there is no such gauge. */
int64_t pressure_depth(const struct pressure_board *b, enum pressure_component component, uint32_t partition);
/* Times this level was entered by this component, all partitions. */
uint64_t pressure_entered(const struct pressure_board *b, enum pressure_component component,
                          enum pressure_level level);
/* An array of {"component","partition","ratio","level"}. */
void pressure_board_write(const struct pressure_board *b, struct json_writer *w);

#endif
