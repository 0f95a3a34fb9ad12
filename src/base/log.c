#include "base/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_members.h"
#include "base/log_text.h"
#include "base/log_writer.h"
#include "base/time_text.h"

#include "base/banned.h"

static const char *process_name = "weir";
static enum log_level minimum = LOG_INFO;
static const char *const level_names[] = {"debug", "info", "warn", "error"};
static _Atomic uint64_t direct_dropped;

/* Found out with the first line: text or JSON, with colours or without. */
static _Atomic enum log_format chosen = LOG_FORMAT_AUTO;
static _Atomic bool is_coloured;

void log_use_format(enum log_format wanted)
{
    const char *no_colour = getenv("NO_COLOR");
    bool terminal = isatty(STDERR_FILENO);
    chosen = wanted != LOG_FORMAT_AUTO ? wanted : terminal ? LOG_FORMAT_TEXT : LOG_FORMAT_JSON;
    is_coloured = terminal && !(no_colour && *no_colour);
}
bool log_is_text(void)
{
    if (chosen == LOG_FORMAT_AUTO)
        log_use_format(LOG_FORMAT_AUTO);
    return chosen == LOG_FORMAT_TEXT;
}
void log_process(const char *name)
{
    process_name = name;
}
void log_minimum(enum log_level level)
{
    minimum = level;
}
bool log_enabled(enum log_level level)
{
    return level >= minimum;
}

/* One write(2): lines of several processes share a pipe. */
static void write_direct(struct str line)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    bool takes = poll(&out, 1, LOG_DIRECT_WAIT_MS) == 1;
    if (!takes || write(STDERR_FILENO, line.ptr, line.len) < 0)
        atomic_fetch_add_explicit(&direct_dropped, 1, memory_order_relaxed);
}

/* A line on its way, in one of the two formats. */
struct log_entry {
    struct strbuf line;
    struct json_writer w;
    bool text;
};

static void begin_line(struct log_entry *e, enum log_level level, const char *event)
{
    char at[TIME_TEXT_MAX];
    struct str time = time_text_us(clock_wall_us(&clock_system), at);
    *e = (struct log_entry){.text = log_is_text()};
    if (e->text) {
        log_text_begin(&e->line, is_coloured, level, time, process_name, event);
        return;
    }
    jw_start(&e->w, &e->line);
    jw_object(&e->w);
    encode_str(&e->w, "at", time);
    encode_text(&e->w, "level", level_names[level]);
    encode_text(&e->w, "process", process_name);
    encode_text(&e->w, "event", event);
}

static void end_line(struct log_entry *e)
{
    if (!e->text)
        jw_object_end(&e->w);
    strbuf_add_char(&e->line, '\n');
}

static void add_int(struct log_entry *e, const char *name, int64_t number)
{
    if (e->text) {
        log_text_name(&e->line, is_coloured, name);
        strbuf_add_int(&e->line, number);
        return;
    }
    encode_int(&e->w, name, number);
}

static void add_whole(struct log_entry *e, const char *name, struct str text)
{
    if (e->text) {
        log_text_name(&e->line, is_coloured, name);
        log_text_value(&e->line, text);
        return;
    }
    encode_str(&e->w, name, text);
}

/* Whole characters; three dots say that there was more. */
static void add_text(struct log_entry *e, const char *name, struct str text)
{
    char cut[LOG_VALUE_BYTES_MAX + 4];
    size_t len = LOG_VALUE_BYTES_MAX;
    if (text.len <= LOG_VALUE_BYTES_MAX) {
        add_whole(e, name, text);
        return;
    }
    while (len && ((unsigned char)text.ptr[len] & 0xC0) == 0x80)
        len--;
    memcpy(cut, text.ptr, len);
    memcpy(cut + len, "...", 3);
    add_whole(e, name, (struct str){cut, len + 3});
}

struct strbuf log_dropped_line(uint64_t lines)
{
    struct log_entry e;
    begin_line(&e, LOG_WARN, "log_dropped");
    add_int(&e, "lines", (int64_t)lines);
    end_line(&e);
    return e.line;
}

static void put(struct str line, bool wait)
{
    if (log_writer_runs())
        log_writer_add(line, wait);
    else
        write_direct(line);
}

void log_line(enum log_level level, const char *event, ...)
{
    if (level < minimum)
        return;
    struct log_entry e;
    begin_line(&e, level, event);
    va_list ap;
    va_start(ap, event);
    for (const char *name; (name = va_arg(ap, const char *));) {
        const struct log_value *v = va_arg(ap, const struct log_value *);
        if (v->kind == LOG_VALUE_INT)
            add_int(&e, name, v->number);
        else if (v->text.ptr)
            add_text(&e, name, v->text);
    }
    va_end(ap);
    end_line(&e);
    put(strbuf_str(&e.line), level == LOG_ERROR);
    strbuf_free(&e.line);
}

void log_say(const char *format, ...)
{
    char text[LOG_VALUE_BYTES_MAX];
    struct strbuf line = {0};
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    strbuf_add_text(&line, "weir: ");
    strbuf_add_text(&line, text);
    strbuf_add_char(&line, '\n');
    put(strbuf_str(&line), true);
    strbuf_free(&line);
}

void log_background(void)
{
    log_writer_start();
}

bool log_flush(int64_t wait_ms)
{
    return !log_writer_runs() || log_writer_flush(wait_ms);
}

uint64_t log_dropped(void)
{
    return log_writer_dropped() + atomic_load_explicit(&direct_dropped, memory_order_relaxed);
}
