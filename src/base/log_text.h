/* base/log_text.h - a log line as people read it on a terminal; for log.c alone. Pure.
 *
 * 15:04:05.123Z INFO  core      core_started port=8080 note="two words"
 *
 * A value is quoted when it holds anything but plain visible characters, unless it is a JSON object; control
 * characters are written as escapes, so that no value can steer the terminal or forge a line. */
#ifndef WEIR_BASE_LOG_TEXT_H
#define WEIR_BASE_LOG_TEXT_H

#include "base/log.h"

/* `time` is RFC 3339 in UTC; its date is left out. */
void log_text_begin(struct strbuf *out, bool coloured, enum log_level level, struct str time,
                    const char *process, const char *event);
void log_text_name(struct strbuf *out, bool coloured, const char *name); /* " name=" */
void log_text_value(struct strbuf *out, struct str text);

#endif
