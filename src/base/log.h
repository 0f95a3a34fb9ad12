/* base/log.h - one line per event on stderr. Only edges log (process mains, the HTTP edge, the commit loop's
 * edge); libraries return errors instead.
 *
 * log_line(LOG_INFO, "job_started", "job_id", LOG_TEXT(id), "duration_ms", LOG_INT(ms), NULL) writes
 * {"at":..,"level":"info","process":"core","event":"job_started",...}, or for people on a terminal
 * "15:04:05.123Z INFO  core      job_started job_id=.. duration_ms=..". Never pass a secret.
 *
 * No thread waits long for a stuck stderr. Before log_background() a line is written by its caller, and
 * dropped when stderr takes none for LOG_DIRECT_WAIT_MS: root works like this, since a process that forks has
 * no threads. After log_background() lines are copied into a bounded page, and a thread of the module writes
 * them; a line that finds the page full is dropped. Dropped lines are counted, and told by a line of its own
 * once lines leave again. A caller waits for an error line, LOG_ERROR_WAIT_MS at most and not again until
 * stderr moves: the line is out, whatever the process does next. Exit and abort wait as long for the rest. */
#ifndef WEIR_BASE_LOG_H
#define WEIR_BASE_LOG_H

#include <stdint.h>

#include "base/str.h"

enum {
    LOG_VALUE_BYTES_MAX = 1024,
    LOG_DIRECT_WAIT_MS = 100,
    LOG_ERROR_WAIT_MS = 100,
    LOG_EXIT_WAIT_MS = 1000,
    LOG_PAGE_BYTES = 512 << 10
};

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

/* AUTO: TEXT when stderr is a terminal, else JSON. Text has colours on a terminal, unless NO_COLOR is set. */
enum log_format { LOG_FORMAT_AUTO, LOG_FORMAT_TEXT, LOG_FORMAT_JSON };
/* AUTO until it is called. A child that is forked keeps what its parent had. */
void log_use_format(enum log_format format);
bool log_is_text(void); /* people read it */

void log_process(const char *name); /* names this process in every line; kept by pointer */
void log_minimum(enum log_level level);
bool log_enabled(enum log_level level);
/* Name and value alternate, ended by NULL. Absent strings are left out, those longer than
 * LOG_VALUE_BYTES_MAX are cut. */
void log_line(enum log_level level, const char *event, ...) __attribute__((sentinel));

/* "weir: " and one line for the person who started the program, as patient as an error line and no more. */
void log_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Once, in a process that will not fork any more. The thread takes no signals; it is ended at exit. */
void log_background(void);
/* Waits until everything logged so far is written; false: it was not after wait_ms. */
bool log_flush(int64_t wait_ms);
uint64_t log_dropped(void); /* lines, since this process began to log */

#endif
