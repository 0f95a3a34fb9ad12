/* runtime/event_names.h - the telemetry events of seed 004: dotted names under one prefix, the `event` of a
 * log line. Above each name stand the dimensions it must carry, named as in the seed;
 * tools/check_topology.py reads them. */
#ifndef WEIR_RUNTIME_EVENT_NAMES_H
#define WEIR_RUNTIME_EVENT_NAMES_H

#define EVENT_PREFIX "weir." /* AT-08 */

/* mode component failure_class, and the dimensions of its mode (runtime/failure_modes.h) */
#define EVENT_RUNTIME_FAILURE EVENT_PREFIX "runtime.failure"
/* domain source_child restart_count */
#define EVENT_SUPERVISOR_ESCALATION EVENT_PREFIX "supervisor.escalation"
/* component partition pressure_level */
#define EVENT_PRESSURE_TRANSITION EVENT_PREFIX "pressure.transition"
/* instance_id channel outcome */
#define EVENT_INGEST_COMPLETED EVENT_PREFIX "ingest.completed"
/* instance_id partition operation */
#define EVENT_OUTBOUND_ENQUEUED EVENT_PREFIX "outbound.enqueued"
/* channel provider_code classification */
#define EVENT_OUTBOUND_RESULT EVENT_PREFIX "outbound.result"
/* instance_id attempts reason */
#define EVENT_INSTANCE_CONNECTED EVENT_PREFIX "instance.connected"

#endif
