/* log_lines.h - what the code under test writes to the log, for tests that judge it. */
#ifndef WEIR_TESTS_LOG_LINES_H
#define WEIR_TESTS_LOG_LINES_H

/* From now on lines from INFO on are kept; after the end nothing is logged. */
void log_listen(void);
void log_stop_listening(void);
/* How many of them hold all of these words; NULL: any. */
int log_lines_with(const char *one, const char *two, const char *three);

#endif
