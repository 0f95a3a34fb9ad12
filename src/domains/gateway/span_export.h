/* domains/gateway/span_export.h - takes finished trace spans from core and posts them to a collector.
 *
 * Way:      POST /internal/v1/spans:take (api/traces.h), then the `otlp` of the answer as the body of POST
 *           ENDPOINT/v1/traces, by the sender that the deliveries use. The endpoint is the operator's, so its
 *           address is not judged (egress/trusted.h).
 * Phases:   IDLE ─► TAKING ─► HOLDING ─► SENDING ─► IDLE      nothing there: TAKING ─► IDLE
 *                                ▲──────────┘ not taken, tries left
 * Bounded:  one batch at a time. One that fails in a way that OTLP lets be tried again is sent SEND_TRIES
 *           times, with growing pauses (Retry-After is heard); then it is dropped, said in a line
 *           (`spans_lost`), and counted by core with the next take (weir_spans_dropped_total). Meanwhile
 *           core's ring fills up and counts what it drops.
 * Waits:    nobody for it, neither deliveries, which have a request of their own each, nor core.
 * Several:  each gateway takes what no other has taken. Only a batch whose answer was lost may arrive twice.
 * Owner:    the gateway's thread. A NULL export does nothing: there is no endpoint. */
#ifndef WEIR_GATEWAY_SPAN_EXPORT_H
#define WEIR_GATEWAY_SPAN_EXPORT_H

#include "egress/sender.h"
#include "worker_client/worker_client.h"

struct span_export;

struct span_export_config {
    const char *endpoint; /* as in OTEL_EXPORTER_OTLP_ENDPOINT; NULL: none */
    const char *headers;  /* as in OTEL_EXPORTER_OTLP_HEADERS; NULL: none. Never shown */
    struct worker_client *client;
    struct egress *egress;
    const struct clock *clock;
};

/* NULL when there is no endpoint, or it or the headers are of no use: then a line says so, and nothing is
 * exported. */
struct span_export *span_export_new(const struct span_export_config *config);
/* After client and sender: no answer comes any more. NULL is fine; always returns NULL. */
struct span_export *span_export_free(struct span_export *x);

/* How many spans core's answer has, and them as it is to be sent on. 0: none, or it is of no use. */
int64_t span_export_read(const struct json *answer, struct str *ret_otlp);

void span_export_pump(struct span_export *x, int64_t now_ms); /* does what is due */
int64_t span_export_next_at_ms(const struct span_export *x);  /* mono; INT64_MAX: it waits for an answer */

/* The remaining spans of core are sent now, each batch tried once; over when there are no more, or at
 * `until_ms`. The first call counts. */
void span_export_stop(struct span_export *x, int64_t now_ms, int64_t until_ms);
bool span_export_is_over(const struct span_export *x, int64_t now_ms); /* after a stop */

#endif
