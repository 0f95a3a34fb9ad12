/* domains/gateway/gateway.h - sends deliveries to receivers that clients named, trace spans to the collector,
 * questions to the policy decision point and fetches of keys that the operator named. The only process that
 * calls out.
 *
 * Process:   `weir: gateway`. Holds no truth: it leases deliveries from core (worker_client/), sends each
 *            with egress/, and reports what came of it. Core decides order, retries, pauses and when to
 *            give up; it signs, too, so no secret is ever here. It may die at any instant: leases bring
 *            its deliveries back.
 * Threads:   one loop over both clients, thousands of requests in flight.
 * Partitions: each delivery belongs to one by its key (runtime/partition.h). A partition claims its own
 *            slots, has its own bounded room and its own restarts; one that fails gives back what it had and
 *            begins again alone. Too many restarts in the domain's window end the process (ACTOR_EXIT).
 * Roles:     `weir: replay` (domains/replay) is the same program over other queues.
 * Bounded:   in_flight_max deliveries at a time, shared evenly by the partitions; core hands out at most
 *            webhooks.slots of them per receiver.
 * Spans:     span_export.h; a collector that hangs or is away holds up no delivery.
 * Policy:    policy_asker.h; the same for the point.
 * Reports:   2xx is delivered; any other status is a failure (`http_status`), 410 a last one. What never
 *            reached a receiver is told by the wire names of egress/sender.h. Denied addresses are not
 *            tried again. */
#ifndef WEIR_DOMAINS_GATEWAY_H
#define WEIR_DOMAINS_GATEWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "egress/address.h"
#include "runtime/process_table.h"

/* What a process of this program is. */
struct gateway_role {
    const char *name;      /* of the process, in logs and reports */
    const char *queue;     /* its deliveries wait in "QUEUE.SLOT" */
    enum domain_id domain; /* its partitions' supervisor */
    const char *component; /* as which its partitions report how full they are (runtime/pressure.h) */
};
extern const struct gateway_role gateway_role;

struct gateway_config {
    const struct gateway_role *role;
    const char *socket_path; /* core's Unix socket */
    struct egress_policy policy;
    int64_t timeout_ms; /* of one request, from connect to the last byte of the answer */
    int64_t heartbeat_ms;
    int64_t drain_ms; /* after a stop, what is under way may go on this long */
    int64_t instance;
    int64_t idle_ms;             /* without a delivery for so long it ends, with 0; 0: it never does */
    uint32_t partitions;         /* a power of two, PARTITION_SLOTS at most */
    uint32_t in_flight_max;      /* over all of them */
    struct domain_limits limits; /* restarts of partitions */
    const char *otlp_endpoint;   /* OTEL_EXPORTER_OTLP_ENDPOINT; NULL: no spans are sent */
    const char *otlp_headers;    /* OTEL_EXPORTER_OTLP_HEADERS; NULL: none */
    const char *policy_url;      /* engine.policy_url; NULL: nobody is asked */
    bool fetches_keys;           /* tokens.issuers is set: core may want keys of outside issuers */
    bool (*stop_requested)(void);
    int stop_fd; /* readable once a stop is wanted; -1: none */
};

/* Runs until a stop is wanted, then drains: claims no more, waits for what is under way, hands back the rest.
 * Returns the process's exit status: 0, or ACTOR_EXIT. */
int gateway_main(const struct gateway_config *config);

#endif
