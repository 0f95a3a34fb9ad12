/* telemetry/otlp.h - spans as the body of POST /v1/traces (OTLP/HTTP 1.x, JSON encoding): ids in hexadecimal,
 * 64-bit numbers as texts, kinds and status codes as numbers. And where that body goes. */
#ifndef WEIR_TELEMETRY_OTLP_H
#define WEIR_TELEMETRY_OTLP_H

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "telemetry/span.h"

void otlp_write(struct json_writer *w, const struct span *spans, size_t count);

/* OTEL_EXPORTER_OTLP_ENDPOINT; NULL when unset or empty: then nothing is recorded or sent. */
const char *otlp_endpoint(void);
/* endpoint + "/v1/traces", whether or not the endpoint ends in a slash. False: it does not fit. */
bool otlp_traces_url(const char *endpoint, char *out, size_t size);

/* OTEL_EXPORTER_OTLP_HEADERS; NULL when unset. To be sent along, and never to be shown. */
const char *otlp_headers(void);
/* "name=value,name=value" as lines "name: value" in the arena; values are percent-decoded, spaces around
 * names and values and empty items are nothing (W3C Baggage without its properties, as OpenTelemetry has it).
 * ERR_CONFIG_INVALID names the item that is wrong by its number. */
enum { OTLP_HEADERS_MAX = 16 };
MUST_CHECK enum err_code otlp_headers_parse(struct arena *a, struct str text,
                                            struct str lines[OTLP_HEADERS_MAX], size_t *ret_count,
                                            struct err *err);

#endif
