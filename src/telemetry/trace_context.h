/* telemetry/trace_context.h - W3C Trace Context: the `traceparent` header in and out.
 *
 * Reading is strict (W3C Recommendation 2021-11-23, section 3.2.2): lower-case hexadecimal, no zero ids, no
 * version ff; version 00 has exactly 55 characters, a later version may go on behind a dash and is read as if
 * it were 00. An unreadable header counts as none. Written is version 00 and the flag we know. */
#ifndef WEIR_TELEMETRY_TRACE_CONTEXT_H
#define WEIR_TELEMETRY_TRACE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8, TRACEPARENT_LEN = 55 };

struct trace_context {
    uint8_t trace_id[TRACE_ID_BYTES];
    uint8_t span_id[SPAN_ID_BYTES];
    bool sampled;
};

bool traceparent_parse(struct str text, struct trace_context *ret_context);
struct str traceparent_text(const struct trace_context *context, char out[TRACEPARENT_LEN + 1]);

struct trace_context trace_context_new(bool sampled); /* a trace of its own */
void span_id_random(uint8_t out[SPAN_ID_BYTES]);
/* The same numbers give the same id, so code that knows them need not be told. Never zero. */
void span_id_derived(uint64_t a, uint64_t b, uint64_t c, uint8_t out[SPAN_ID_BYTES]);
bool span_id_is_set(const uint8_t id[SPAN_ID_BYTES]);

#endif
