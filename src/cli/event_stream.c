#include "cli/event_stream.h"

#include "base/banned.h"

void event_stream_free(struct event_stream *s)
{
    strbuf_free(&s->line);
    strbuf_free(&s->data);
    strbuf_free(&s->last_id);
}

void event_stream_reset(struct event_stream *s)
{
    strbuf_clear(&s->line);
    strbuf_clear(&s->data);
    s->after_cr = false;
}

static bool end_event(struct event_stream *s, event_stream_fn *fn, void *self)
{
    if (!s->data.len)
        return true;
    struct str data = {s->data.ptr, s->data.len - 1}; /* without the last LF */
    bool go_on = fn(self, strbuf_str(&s->last_id), data);
    strbuf_clear(&s->data);
    return go_on;
}

static void take_field(struct event_stream *s, struct str line)
{
    struct str value = line;
    struct str name = str_cut(&value, ':');
    if (name.len == line.len)
        value = STR("");
    else if (value.len && value.ptr[0] == ' ')
        value = (struct str){value.ptr + 1, value.len - 1};
    if (str_is(name, "data")) {
        strbuf_add_str(&s->data, value);
        strbuf_add_char(&s->data, '\n');
    } else if (str_is(name, "id") && !memchr(value.ptr, 0, value.len)) {
        strbuf_clear(&s->last_id);
        strbuf_add_str(&s->last_id, value);
    }
}

static bool end_line(struct event_stream *s, event_stream_fn *fn, void *self)
{
    struct str line = strbuf_str(&s->line);
    bool go_on = true;
    if (!line.len)
        go_on = end_event(s, fn, self);
    else
        take_field(s, line);
    strbuf_clear(&s->line);
    return go_on;
}

bool event_stream_feed(struct event_stream *s, struct str bytes, event_stream_fn *fn, void *self)
{
    for (size_t i = 0; i < bytes.len; i++) {
        char c = bytes.ptr[i];
        bool second_half = c == '\n' && s->after_cr;
        s->after_cr = c == '\r';
        if (second_half)
            continue;
        if (c == '\n' || c == '\r') {
            if (!end_line(s, fn, self))
                return false;
        } else {
            strbuf_add_char(&s->line, c);
        }
        if (s->line.len + s->data.len > EVENT_STREAM_BYTES_MAX) {
            s->broken = true;
            return false;
        }
    }
    return true;
}
