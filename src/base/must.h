/* base/must.h - promises of our own: broken means a bug of ours, so we stop and are restarted.
 *
 * Never used on data from outside: that gets an error (base/err.h). Always compiled in. */
#ifndef WEIR_BASE_MUST_H
#define WEIR_BASE_MUST_H

#include <stddef.h>

#define MUST(condition) ((condition) ? (void)0 : must_fail(#condition, __FILE__, __LINE__, __func__))

_Noreturn void must_fail(const char *condition, const char *file, int line, const char *function);

/* Allocation that never returns NULL: out of memory ends the process (exit 70), and since nothing
 * was answered before its commit, nothing promised is lost. The supervisor starts a new one. */
void *must_alloc(size_t size); /* zeroed */
void *must_realloc(void *ptr, size_t size);
char *must_strdup(const char *text);

#define LENGTH_OF(array) (sizeof(array) / sizeof *(array))

#endif
