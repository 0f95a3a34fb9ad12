#include "telemetry/span.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/banned.h"

void span_name(struct span *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->name, sizeof s->name, fmt, ap);
    va_end(ap);
}

static struct span_attribute *next_attribute(struct span *s, const char *key)
{
    if (s->attribute_count == SPAN_ATTRIBUTES_MAX)
        return NULL;
    struct span_attribute *a = &s->attributes[s->attribute_count++];
    a->key = key;
    return a;
}

void span_text(struct span *s, const char *key, struct str text)
{
    struct span_attribute *a = text.ptr ? next_attribute(s, key) : NULL;
    size_t len = text.len;
    if (!a)
        return;
    if (len > SPAN_TEXT_MAX) {
        len = SPAN_TEXT_MAX;
        while (len && ((unsigned char)text.ptr[len] & 0xC0) == 0x80) /* not inside a character */
            len--;
    }
    a->is_text = true;
    memcpy(a->text, text.ptr, len);
    a->text[len] = 0;
}

void span_number(struct span *s, const char *key, int64_t number)
{
    struct span_attribute *a = next_attribute(s, key);
    if (!a)
        return;
    a->is_text = false;
    a->number = number;
}
