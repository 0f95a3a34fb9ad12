/* telemetry/otlp.h - spans as the body of POST /v1/traces (OTLP/HTTP 1.x, JSON encoding): ids in hexadecimal,
 * 64-bit numbers as texts, kinds and status codes as numbers. And where that body goes. */
#ifndef WEIR_TELEMETRY_OTLP_H
#define WEIR_TELEMETRY_OTLP_H

#include "base/json.h"
#include "telemetry/span.h"

void otlp_write(struct json_writer *w, const struct span *spans, size_t count);

/* OTEL_EXPORTER_OTLP_ENDPOINT; NULL when unset or empty: then nothing is recorded or sent. */
const char *otlp_endpoint(void);
/* endpoint + "/v1/traces", whether or not the endpoint ends in a slash. False: it does not fit. */
bool otlp_traces_url(const char *endpoint, char *out, size_t size);

#endif
