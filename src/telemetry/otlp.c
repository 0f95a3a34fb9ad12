#include "telemetry/otlp.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json_members.h"

#include "base/banned.h"

enum { STATUS_ERROR = 2 };

static void hex_member(struct json_writer *w, const char *key, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    char text[2 * TRACE_ID_BYTES];
    for (size_t i = 0; i < count; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    encode_str(w, key, (struct str){text, 2 * count});
}

static void long_member(struct json_writer *w, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    encode_text(w, key, text);
}

static void write_attribute(struct json_writer *w, const struct span_attribute *a)
{
    jw_object(w);
    encode_text(w, "key", a->key);
    jw_key(w, "value");
    jw_object(w);
    if (a->is_text) {
        encode_text(w, "stringValue", a->text);
    } else {
        long_member(w, "intValue", a->number);
    }
    jw_object_end(w);
    jw_object_end(w);
}

static void write_link(struct json_writer *w, const struct trace_context *link)
{
    jw_key(w, "links");
    jw_array(w);
    jw_object(w);
    hex_member(w, "traceId", link->trace_id, TRACE_ID_BYTES);
    hex_member(w, "spanId", link->span_id, SPAN_ID_BYTES);
    jw_object_end(w);
    jw_array_end(w);
}

static void write_span(struct json_writer *w, const struct span *s)
{
    jw_object(w);
    hex_member(w, "traceId", s->context.trace_id, TRACE_ID_BYTES);
    hex_member(w, "spanId", s->context.span_id, SPAN_ID_BYTES);
    if (span_id_is_set(s->parent))
        hex_member(w, "parentSpanId", s->parent, SPAN_ID_BYTES);
    encode_text(w, "name", s->name);
    encode_int(w, "kind", s->kind);
    long_member(w, "startTimeUnixNano", s->start_us * 1000);
    long_member(w, "endTimeUnixNano", (s->end_us < s->start_us ? s->start_us : s->end_us) * 1000);
    jw_key(w, "attributes");
    jw_array(w);
    for (size_t i = 0; i < s->attribute_count; i++)
        write_attribute(w, &s->attributes[i]);
    jw_array_end(w);
    if (span_id_is_set(s->link.span_id))
        write_link(w, &s->link);
    jw_key(w, "status");
    jw_object(w);
    if (s->failed)
        encode_int(w, "code", STATUS_ERROR);
    jw_object_end(w);
    jw_object_end(w);
}

static void write_resource(struct json_writer *w)
{
    static const struct span_attribute service = {.key = "service.name", .is_text = true, .text = "weir"};
    jw_key(w, "resource");
    jw_object(w);
    jw_key(w, "attributes");
    jw_array(w);
    write_attribute(w, &service);
    jw_array_end(w);
    jw_object_end(w);
}

void otlp_write(struct json_writer *w, const struct span *spans, size_t count)
{
    jw_object(w);
    jw_key(w, "resourceSpans");
    jw_array(w);
    jw_object(w);
    write_resource(w);
    jw_key(w, "scopeSpans");
    jw_array(w);
    jw_object(w);
    jw_key(w, "scope");
    jw_object(w);
    encode_text(w, "name", "weir");
    jw_object_end(w);
    jw_key(w, "spans");
    jw_array(w);
    for (size_t i = 0; i < count; i++)
        write_span(w, &spans[i]);
    jw_array_end(w);
    jw_object_end(w);
    jw_array_end(w);
    jw_object_end(w);
    jw_array_end(w);
    jw_object_end(w);
}

const char *otlp_endpoint(void)
{
    const char *endpoint = getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    return endpoint && *endpoint ? endpoint : NULL;
}

bool otlp_traces_url(const char *endpoint, char *out, size_t size)
{
    size_t len = strlen(endpoint);
    while (len && endpoint[len - 1] == '/')
        len--;
    int n = snprintf(out, size, "%.*s/v1/traces", (int)len, endpoint);
    return n > 0 && (size_t)n < size;
}
