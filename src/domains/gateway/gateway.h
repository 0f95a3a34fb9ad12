/* domains/gateway/gateway.h - sends deliveries to receivers that clients named, trace spans to the collector,
 * questions to the policy decision point and fetches of keys that the operator named. The only program that
 * calls out.
 *
 * Process:   `weir: gateway`, on the skeleton of domains/skeleton/domain.h. It sends each delivery with
 *            egress/ and reports the result. Core decides order, retries, pauses and when to give up; it
 *            signs, too, so no secret is ever here.
 * Threads:   one loop over core's socket and the network, thousands of requests in flight.
 * Partitions: each delivery belongs to one by its key (runtime/partition.h). A partition claims its own
 *             slots, has its own bounded room and its own restarts; one that fails gives its deliveries back
 *             and begins again alone. Too many restarts in the domain's window end the process (ACTOR_EXIT).
 * Roles:     `weir: replay` (domains/replay) is the same program over other queues.
 * Bounded:   in_flight deliveries at a time, shared evenly by the partitions; core hands out at most
 *            webhooks.slots of them per receiver.
 * Spans:     span_export.h; a collector that hangs or is away holds up no delivery.
 * Policy:    policy_asker.h; the same for the point.
 * Reports:   2xx is delivered; any other status is a failure (`http_status`), 410 a last one. A delivery that
 *            never reached its receiver is reported by the wire names of egress/sender.h. Denied addresses
 *            are not tried again. */
#ifndef WEIR_DOMAINS_GATEWAY_H
#define WEIR_DOMAINS_GATEWAY_H

#include "runtime/partition.h"
#include "runtime/process_signals.h"

/* The role of a process of this program. */
struct gateway_role {
    const char *queue; /* its deliveries wait in "QUEUE.SLOT" */
    enum partition_domain partitions;
    int64_t in_flight; /* deliveries at a time, over all partitions */
    bool serves_core;  /* it exports spans, asks the policy point and fetches keys, too */
};

/* A main function. Claims no more once a stop is wanted, waits for what is under way, hands back the rest. */
int gateway_run(const struct process_start *start, const struct gateway_role *role);

#endif
