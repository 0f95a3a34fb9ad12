/* telemetry/span.h - one finished or growing span: plain data without pointers to anything that dies.
 *
 * Keys of attributes are literals of ours. Texts are copied and cut at SPAN_TEXT_MAX bytes; attributes beyond
 * SPAN_ATTRIBUTES_MAX are left out. Never pass a secret or a payload: spans leave the machine. */
#ifndef WEIR_TELEMETRY_SPAN_H
#define WEIR_TELEMETRY_SPAN_H

#include "telemetry/trace_context.h"

enum { SPAN_NAME_MAX = 63, SPAN_TEXT_MAX = 63, SPAN_ATTRIBUTES_MAX = 12 };

/* The numbers are OTLP's. */
enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2, SPAN_CLIENT = 3, SPAN_PRODUCER = 4, SPAN_CONSUMER = 5 };

struct span_attribute {
    const char *key;
    int64_t number; /* when there is no text */
    bool is_text;
    char text[SPAN_TEXT_MAX + 1];
};

struct span {
    struct trace_context context;  /* its own id */
    uint8_t parent[SPAN_ID_BYTES]; /* zero: the first of its trace */
    struct trace_context link;     /* another trace it has to do with; a zero span id: none */
    enum span_kind kind;
    bool failed;
    uint8_t attribute_count;
    int64_t start_us, end_us; /* wall clock */
    char name[SPAN_NAME_MAX + 1];
    struct span_attribute attributes[SPAN_ATTRIBUTES_MAX];
};

void span_name(struct span *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void span_text(struct span *s, const char *key, struct str text); /* absent: nothing is added */
void span_number(struct span *s, const char *key, int64_t number);

#endif
