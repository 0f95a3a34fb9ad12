#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#include "base/banned.h"

void jw_start(struct json_writer *w, struct strbuf *out)
{
    w->out = out;
    w->comma = false;
}

static void before_value(struct json_writer *w)
{
    if (w->comma)
        strbuf_add_char(w->out, ',');
    w->comma = true;
}

static void open_container(struct json_writer *w, char bracket)
{
    before_value(w);
    strbuf_add_char(w->out, bracket);
    w->comma = false;
}

static void close_container(struct json_writer *w, char bracket)
{
    strbuf_add_char(w->out, bracket);
    w->comma = true;
}

void jw_object(struct json_writer *w)
{
    open_container(w, '{');
}
void jw_object_end(struct json_writer *w)
{
    close_container(w, '}');
}
void jw_array(struct json_writer *w)
{
    open_container(w, '[');
}
void jw_array_end(struct json_writer *w)
{
    close_container(w, ']');
}

/* How many bytes from the start of s go out as they are: no quote, backslash, control or bad UTF-8.
 */
static size_t plain_run(struct str s)
{
    size_t i = 0;
    for (;;) {
        i += str_json_plain((struct str){s.ptr + i, s.len - i});
        if (i == s.len || (unsigned char)s.ptr[i] < 0x80)
            return i;
        size_t n = str_utf8_sequence((struct str){s.ptr + i, s.len - i});
        if (!n)
            return i;
        i += n;
    }
}

static void add_escaped(struct strbuf *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char short_form[0x20] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    if (c >= 0x80) { /* bytes that are not UTF-8 must not spoil the document */
        strbuf_add_text(out, "\xEF\xBF\xBD");
    } else if (c == '"' || c == '\\') {
        strbuf_add(out, (char[]){'\\', (char)c}, 2);
    } else if (short_form[c]) {
        strbuf_add(out, (char[]){'\\', short_form[c]}, 2);
    } else {
        strbuf_add(out, (char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
    }
}

static void add_quoted(struct strbuf *out, struct str s)
{
    strbuf_reserve(out, s.len + 2);
    strbuf_add_char(out, '"');
    while (s.len) {
        size_t n = plain_run(s);
        strbuf_add(out, s.ptr, n);
        if (n < s.len)
            add_escaped(out, (unsigned char)s.ptr[n++]);
        s.ptr += n;
        s.len -= n;
    }
    strbuf_add_char(out, '"');
}

void jw_key(struct json_writer *w, const char *key)
{
    before_value(w);
    strbuf_add_char(w->out, '"');
    strbuf_add_text(w->out, key);
    strbuf_add(w->out, "\":", 2);
    w->comma = false;
}

void jw_key_str(struct json_writer *w, struct str key)
{
    before_value(w);
    add_quoted(w->out, key);
    strbuf_add_char(w->out, ':');
    w->comma = false;
}

void jw_str(struct json_writer *w, struct str s)
{
    if (!s.ptr) {
        jw_null(w);
        return;
    }
    before_value(w);
    add_quoted(w->out, s);
}

void jw_text(struct json_writer *w, const char *text)
{
    jw_str(w, str_of(text));
}

void jw_int(struct json_writer *w, int64_t value)
{
    before_value(w);
    strbuf_add_int(w->out, value);
}

/* The shortest decimal that reads back as the same double; JSON has no word for NaN or infinity. */
void jw_double(struct json_writer *w, double value)
{
    if (!isfinite(value)) {
        jw_null(w);
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    jw_raw(w, str_of(text));
}

void jw_bool(struct json_writer *w, bool value)
{
    jw_raw(w, str_of(value ? "true" : "false"));
}

void jw_null(struct json_writer *w)
{
    jw_raw(w, STR("null"));
}

/* Outside of texts, where they would be escaped, the end of a line says no more than a blank. */
static void join_lines(struct strbuf *out, size_t from, char line_end)
{
    char *at;
    while (from < out->len && (at = memchr(out->ptr + from, line_end, out->len - from))) {
        *at = ' ';
        from = (size_t)(at - out->ptr) + 1;
    }
}

void jw_raw(struct json_writer *w, struct str json)
{
    before_value(w);
    size_t from = w->out->len;
    strbuf_add_str(w->out, json);
    join_lines(w->out, from, '\n');
    join_lines(w->out, from, '\r');
}
