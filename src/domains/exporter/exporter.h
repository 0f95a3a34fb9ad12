/* domains/exporter/exporter.h - takes finished spans from core and sends them to a collector.
 *
 * Process:   `weir: exporter`, only there while OTEL_EXPORTER_OTLP_ENDPOINT is set. Holds no truth: what it
 *            has taken and not yet sent is lost with it, like any span that found no room.
 * Way:       POST /internal/v1/spans:take on core's Unix socket, then the `otlp` of the answer as the body of
 *            POST ENDPOINT/v1/traces. One batch at a time; a batch the collector does not take is tried again
 *            EXPORT_TRIES times with growing pauses, while core's ring fills up and counts what it drops.
 * Connects:  to the endpoint the operator named, and nowhere else: no redirects, no proxies, http and https.
 * Stop:      one last batch; no call takes longer than STOP_MS then. */
#ifndef WEIR_DOMAINS_EXPORTER_H
#define WEIR_DOMAINS_EXPORTER_H

#include <stdbool.h>
#include <stdint.h>

struct exporter_config {
    const char *socket_path; /* core's Unix socket */
    const char *endpoint;    /* as in OTEL_EXPORTER_OTLP_ENDPOINT */
    bool (*stop_requested)(void);
    bool (*wait_stop)(int64_t wait_ms); /* true once a stop is wanted */
};

/* Runs until a stop is wanted; the process's exit status. */
int exporter_main(const struct exporter_config *config);

#endif
