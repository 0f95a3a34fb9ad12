/* base/log_writer.h - the thread behind log.c: two pages, one filled by the loggers, one being written.
 *
 * Owner:   log.c alone; nothing else calls it. One writer per process.
 * Lines:   written in chunks of whole lines, none longer than PIPE_BUF unless a single line is: such a write
 *          is not cut apart by another process that shares the pipe.
 * Bounded: two pages of LOG_PAGE_BYTES. Adding costs a copy under a lock that is never held while writing.
 * Failure: when the thread cannot be started, log.c goes on writing by itself. Lines that stderr refuses
 *          (closed, disk full) are dropped and counted. */
#ifndef WEIR_BASE_LOG_WRITER_H
#define WEIR_BASE_LOG_WRITER_H

#include "base/str.h"

void log_writer_start(void);
bool log_writer_runs(void);
/* The line ends in a newline. `wait`: give it LOG_ERROR_WAIT_MS to get out. */
void log_writer_add(struct str line, bool wait);
bool log_writer_flush(int64_t wait_ms);
uint64_t log_writer_dropped(void);

/* log.c's: the line that tells of dropped ones; the caller frees it. */
struct strbuf log_dropped_line(uint64_t lines);

#endif
