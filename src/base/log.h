/* base/log.h - one JSON object per line on stderr. Only edges log (process mains, the HTTP edge, the
 * commit loop's edge); libraries return errors instead.
 *
 * log_line(LOG_INFO, "job_started", "job_id", LOG_TEXT(id), "duration_ms", LOG_INT(ms), NULL) writes
 * {"at":..,"level":"info","process":"core","event":"job_started",...}. Never pass a secret. */
#ifndef WEIR_BASE_LOG_H
#define WEIR_BASE_LOG_H

#include <stdint.h>

#include "base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

enum log_value_kind { LOG_VALUE_STR, LOG_VALUE_INT };
struct log_value {
    enum log_value_kind kind;
    struct str text;
    int64_t number;
};
#define LOG_STR(s)  (&(const struct log_value){LOG_VALUE_STR, (s), 0})
#define LOG_TEXT(t) (&(const struct log_value){LOG_VALUE_STR, str_of(t), 0})
#define LOG_INT(n)  (&(const struct log_value){LOG_VALUE_INT, {0}, (n)})

void log_process(const char *name); /* names this process in every line; kept by pointer */
void log_minimum(enum log_level level);
bool log_enabled(enum log_level level);
/* Name and value alternate, ended by NULL. Absent strings are left out. One write(2) a line. */
void log_line(enum log_level level, const char *event, ...) __attribute__((sentinel));

#endif
