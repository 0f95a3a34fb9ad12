#include "telemetry/trace_context.h"

#include "base/hash.h"
#include "base/random.h"

#include "base/banned.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* `count` bytes from twice as many digits; false when one is none. */
static bool read_hex(const char *text, uint8_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static char *write_hex(char *to, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    return to;
}

static bool any_set(const uint8_t *bytes, size_t count)
{
    uint8_t all = 0;
    for (size_t i = 0; i < count; i++)
        all |= bytes[i];
    return all != 0;
}

/* 00-TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT-SSSSSSSSSSSSSSSS-FF */
enum { AT_TRACE = 3, AT_SPAN = 36, AT_FLAGS = 53 };

bool traceparent_parse(struct str text, struct trace_context *ret_context)
{
    struct trace_context c = {0};
    uint8_t version, flags;
    const char *t = text.ptr;
    if (text.len < TRACEPARENT_LEN || t[AT_TRACE - 1] != '-' || t[AT_SPAN - 1] != '-' ||
        t[AT_FLAGS - 1] != '-' || !read_hex(t, &version, 1) || version == 0xff)
        return false;
    if (text.len > TRACEPARENT_LEN && (version == 0 || t[TRACEPARENT_LEN] != '-'))
        return false;
    if (!read_hex(t + AT_TRACE, c.trace_id, sizeof c.trace_id) ||
        !read_hex(t + AT_SPAN, c.span_id, sizeof c.span_id) || !read_hex(t + AT_FLAGS, &flags, 1) ||
        !any_set(c.trace_id, sizeof c.trace_id) || !span_id_is_set(c.span_id))
        return false;
    c.sampled = flags & 1;
    *ret_context = c;
    return true;
}

struct str traceparent_text(const struct trace_context *context, char out[TRACEPARENT_LEN + 1])
{
    uint8_t version = 0, flags = context->sampled;
    char *to = write_hex(out, &version, 1);
    *to++ = '-';
    to = write_hex(to, context->trace_id, sizeof context->trace_id);
    *to++ = '-';
    to = write_hex(to, context->span_id, sizeof context->span_id);
    *to++ = '-';
    to = write_hex(to, &flags, 1);
    *to = 0;
    return (struct str){out, TRACEPARENT_LEN};
}

bool span_id_is_set(const uint8_t id[SPAN_ID_BYTES])
{
    return any_set(id, SPAN_ID_BYTES);
}

void span_id_random(uint8_t out[SPAN_ID_BYTES])
{
    do
        random_bytes(out, SPAN_ID_BYTES);
    while (!span_id_is_set(out));
}

void span_id_derived(uint64_t a, uint64_t b, uint64_t c, uint8_t out[SPAN_ID_BYTES])
{
    uint64_t x = hash_mix(hash_mix(hash_mix(a) ^ b) + c);
    x |= x == 0;
    memcpy(out, &x, SPAN_ID_BYTES);
}

struct trace_context trace_context_new(bool sampled)
{
    struct trace_context c = {.sampled = sampled};
    do
        random_bytes(c.trace_id, sizeof c.trace_id);
    while (!any_set(c.trace_id, sizeof c.trace_id));
    span_id_random(c.span_id);
    return c;
}
