#include "base/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log_writer.h"
#include "base/time_text.h"

#include "base/banned.h"

static const char *process_name = "weir";
static enum log_level minimum = LOG_INFO;
static const char *const level_names[] = {"debug", "info", "warn", "error"};
static _Atomic uint64_t direct_dropped;

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

static void begin_line(struct json_writer *w, enum log_level level, const char *event)
{
    char at[TIME_TEXT_MAX];
    jw_object(w);
    jw_key(w, "at");
    jw_str(w, time_text_us(clock_wall_us(&clock_system), at));
    jw_key(w, "level");
    jw_text(w, level_names[level]);
    jw_key(w, "process");
    jw_text(w, process_name);
    jw_key(w, "event");
    jw_text(w, event);
}

static void end_line(struct json_writer *w, struct strbuf *line)
{
    jw_object_end(w);
    strbuf_add_char(line, '\n');
}

void log_dropped_line(uint64_t lines, struct strbuf *line)
{
    struct json_writer w;
    jw_start(&w, line);
    begin_line(&w, LOG_WARN, "log_dropped");
    jw_key(&w, "lines");
    jw_int(&w, (int64_t)lines);
    end_line(&w, line);
}

/* Whole characters; three dots say that there was more. */
static void write_text(struct json_writer *w, struct str text)
{
    char cut[LOG_VALUE_BYTES_MAX + 4];
    size_t len = LOG_VALUE_BYTES_MAX;
    if (text.len <= LOG_VALUE_BYTES_MAX) {
        jw_str(w, text);
        return;
    }
    while (len && ((unsigned char)text.ptr[len] & 0xC0) == 0x80)
        len--;
    memcpy(cut, text.ptr, len);
    memcpy(cut + len, "...", 3);
    jw_str(w, (struct str){cut, len + 3});
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
    struct strbuf line = {0};
    struct json_writer w;
    jw_start(&w, &line);
    begin_line(&w, level, event);
    va_list ap;
    va_start(ap, event);
    for (const char *name; (name = va_arg(ap, const char *));) {
        const struct log_value *v = va_arg(ap, const struct log_value *);
        if (v->kind == LOG_VALUE_STR && !v->text.ptr)
            continue;
        jw_key(&w, name);
        if (v->kind == LOG_VALUE_INT)
            jw_int(&w, v->number);
        else
            write_text(&w, v->text);
    }
    va_end(ap);
    end_line(&w, &line);
    put(strbuf_str(&line), level == LOG_ERROR);
    strbuf_free(&line);
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
