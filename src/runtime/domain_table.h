/* runtime/domain_table.h - the topology: which failure domains there are, and what each has declared.
 *
 * One list with seed 004's matrix (DOMAIN_LIST) and one with the rest of the six things that a subsystem must
 * state before it may merge (DOMAIN_GATE). Root's windows, `GET /ops/v1/topology`, the settings and
 * docs/operations/topology.md follow from them; tools/check_topology.py refuses a domain that leaves one out.
 * A domain whose processes come later is declared here all the same and shows with no processes.
 *
 * To add a domain: its line in both lists, its two settings, `tools/generate_docs.py`, and CONTRIBUTING.md's
 * recipe. Strategy is one_for_one in all of them. */
#ifndef WEIR_RUNTIME_DOMAIN_TABLE_H
#define WEIR_RUNTIME_DOMAIN_TABLE_H

#include <stdint.h>

#include "config/settings.h"
#include "runtime/failure_modes.h"

/* X(id, name, owner, supervisor, settings field of max_restarts, and of the window in seconds, intent) ROOT
 * is the domain of the program itself: a failure that it cannot restart ends the program. */
#define DOMAIN_LIST(X)                                                                                       \
    X(ROOT, "root", "Weir.Supervisor", "Weir.Supervisor", runtime_root_max_restarts,                         \
      runtime_root_max_seconds, "The whole stays alive; repeated failures to start are fatal.")              \
    X(ROOMS, "rooms", "RoomSupervisor", "Weir.RoomSupervisor", runtime_rooms_max_restarts,                   \
      runtime_rooms_max_seconds, "A room's crash stays within its room_id.")                                 \
    X(AGENTS, "agents", "AgentSupervisor", "Weir.AgentSupervisor", runtime_agents_max_restarts,              \
      runtime_agents_max_seconds, "An agent's failure stays within its worker set.")                         \
    X(INSTANCES, "instances", "InstanceSupervisor", "Weir.InstanceSupervisor",                               \
      runtime_instances_max_restarts, runtime_instances_max_seconds,                                         \
      "A channel instance's crash stays within its instance_id.")                                            \
    X(INSTANCE, "instance_subtree", "Instance.<instance_id>", "Weir.Instance.<instance_id>",                 \
      runtime_instance_subtree_max_restarts, runtime_instance_subtree_max_seconds,                           \
      "Listeners and pollers restart locally before anything escalates.")                                    \
    X(OUTBOUND, "outbound", "OutboundGatewaySupervisor", "Weir.OutboundGateway.Supervisor",                  \
      runtime_outbound_max_restarts, runtime_outbound_max_seconds,                                           \
      "Partition workers may churn; no other partition notices.")                                            \
    X(SESSIONS, "sessions", "SessionManagerSupervisor", "Weir.SessionManager.Supervisor",                    \
      runtime_sessions_max_restarts, runtime_sessions_max_seconds,                                           \
      "The failure of a route partition stays in its shard.")                                                \
    X(OPERATIONS, "operations", "OnboardingSupervisor / ReplaySupervisor",                                   \
      "Weir.OnboardingSupervisor / Weir.ReplaySupervisor", runtime_operations_max_restarts,                  \
      runtime_operations_max_seconds, "Control plane and replay never crash ingest or outbound.")

/* X(id, failure modes F(mode).., partition key, scaling rule, SLO target and thresholds, events E(event)..)
 * The class of a mode is in FAILURE_MODES, the dimensions of an event in event_names.h. */
#define DOMAIN_GATE(X)                                                                                       \
    X(ROOT, F(BOOT_CONFIG) F(ADAPTER_INIT) F(PROCESS_ENDED) F(PROCESS_HUNG) F(EXHAUSTED), "store lane",      \
      "one core per data directory; store.lanes of a shared store",                                          \
      "cascade_count = 0 (critical >= 1); queue ratio < 0.70 (warn >= 0.70, degraded >= 0.85, "              \
      "shed >= 0.95)",                                                                                       \
      E(RUNTIME_FAILURE) E(SUPERVISOR_ESCALATION) E(PRESSURE_TRANSITION))                                    \
    X(ROOMS, F(ACTOR_FAILED) F(POISON) F(EXHAUSTED), "room_id", "one actor per active room",                 \
      "ingest_latency_ms p95 <= 100 (warn > 75, critical > 100)",                                            \
      E(RUNTIME_FAILURE) E(SUPERVISOR_ESCALATION) E(INGEST_COMPLETED))                                       \
    X(AGENTS, F(PROCESS_ENDED) F(PROCESS_HUNG) F(EXHAUSTED), "agent_id (queue and worker)",                  \
      "runner.processes x runner.workers",                                                                   \
      "cascade_count = 0 (critical >= 1); queue ratio < 0.70 (warn >= 0.70, degraded >= 0.85, "              \
      "shed >= 0.95)",                                                                                       \
      E(RUNTIME_FAILURE) E(SUPERVISOR_ESCALATION))                                                           \
    X(INSTANCES, F(PROCESS_ENDED) F(PROCESS_HUNG) F(POISON) F(POLICY_TIMEOUT) F(EXHAUSTED), "instance_id",   \
      "one subtree per instance; policy partitions hash(instance_id:room_id), at least one a CPU",           \
      "ingest_latency_ms p95 <= 100 (warn > 75, critical > 100)",                                            \
      E(RUNTIME_FAILURE) E(SUPERVISOR_ESCALATION) E(INGEST_COMPLETED) E(PRESSURE_TRANSITION))                \
    X(INSTANCE, F(LISTENER) F(ACTOR_FAILED) F(EXHAUSTED), "instance_id", "one server and its listeners",     \
      "reconnect_mttr_ms p95 <= 60000 (warn > 30000, critical > 60000)",                                     \
      E(RUNTIME_FAILURE) E(SUPERVISOR_ESCALATION) E(INSTANCE_CONNECTED))                                     \
    X(OUTBOUND, F(OUTBOUND) F(POISON) F(ACTOR_FAILED) F(PROCESS_ENDED) F(PROCESS_HUNG) F(EXHAUSTED),         \
      "hash(instance_id:external_room_id)", "at least two partitions a CPU",                                 \
      "outbound_enqueue_ms p95 <= 50 (warn > 40, critical > 50); delivery_success_ratio >= 0.995 "           \
      "(warn < 0.997, critical < 0.995)",                                                                    \
      E(RUNTIME_FAILURE) E(SUPERVISOR_ESCALATION) E(OUTBOUND_ENQUEUED) E(OUTBOUND_RESULT)                    \
          E(PRESSURE_TRANSITION))                                                                            \
    X(SESSIONS, F(ACTOR_FAILED) F(POISON) F(EXHAUSTED), "hash(session_key)", "as many shards as outbound",   \
      "queue ratio < 0.70 (warn >= 0.70, degraded >= 0.85, shed >= 0.95)",                                   \
      E(RUNTIME_FAILURE) E(SUPERVISOR_ESCALATION) E(PRESSURE_TRANSITION))                                    \
    X(OPERATIONS, F(ACTOR_FAILED) F(PROCESS_ENDED) F(PROCESS_HUNG) F(POISON) F(EXHAUSTED),                   \
      "onboarding_id; hash(dead_letter_id)",                                                                 \
      "one actor per active flow; replay partitions apart from live ones",                                   \
      "cascade_count = 0 (critical >= 1); queue ratio < 0.70 (warn >= 0.70, degraded >= 0.85, "              \
      "shed >= 0.95)",                                                                                       \
      E(RUNTIME_FAILURE) E(SUPERVISOR_ESCALATION) E(PRESSURE_TRANSITION))

#define X(id, name, owner, supervisor, restarts, seconds, intent) DOMAIN_##id,
enum domain_id { DOMAIN_LIST(X) DOMAIN_COUNT };
#undef X

struct domain_row {
    const char *name, *owner, *supervisor, *strategy, *intent;
};

struct domain_gate {
    uint32_t failures; /* bit FAILURE_MODE_x for each mode it knows */
    const char *partition_key, *scaling_rule, *slo;
    const char *events; /* names, each behind a blank */
};

struct domain_limits {
    int64_t max_restarts, window_seconds;
};

extern const struct domain_row domain_rows[DOMAIN_COUNT];
extern const struct domain_gate domain_gates[DOMAIN_COUNT];

const char *domain_name(enum domain_id id);
struct domain_limits domain_limits(enum domain_id id, const struct settings *s);

#endif
