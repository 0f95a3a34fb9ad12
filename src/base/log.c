#include "base/log.h"

#include <stdarg.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/time_text.h"

#include "base/banned.h"

static const char *process_name = "weir";
static enum log_level minimum = LOG_INFO;
static const char *const level_names[] = {"debug", "info", "warn", "error"};

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

void log_line(enum log_level level, const char *event, ...)
{
    if (level < minimum)
        return;
    struct strbuf line = {0};
    struct json_writer w;
    char at[TIME_TEXT_MAX];
    jw_start(&w, &line);
    jw_object(&w);
    jw_key(&w, "at");
    jw_str(&w, time_text_us(clock_wall_us(&clock_system), at));
    jw_key(&w, "level");
    jw_text(&w, level_names[level]);
    jw_key(&w, "process");
    jw_text(&w, process_name);
    jw_key(&w, "event");
    jw_text(&w, event);
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
            jw_str(&w, v->text);
    }
    va_end(ap);
    jw_object_end(&w);
    strbuf_add_char(&line, '\n');
    ssize_t ignored = write(STDERR_FILENO, line.ptr, line.len); /* nowhere left to complain */
    (void)ignored;
    strbuf_free(&line);
}
