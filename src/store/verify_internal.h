/* store/verify_internal.h - the check itself, for its own files; rules of others include verify_rules.h. */
#ifndef WEIR_STORE_VERIFY_INTERNAL_H
#define WEIR_STORE_VERIFY_INTERNAL_H

#include <stdarg.h>

#include "store/verify.h"
#include "store/verify_rules.h"

enum { VERIFY_RULES_MAX = 16 };

struct verify {
    struct reader *reader;
    void (*problem)(void *arg, const char *line);
    void (*progress)(void *arg, uint64_t rows);
    void *arg;
    struct verify_result *result;
    struct arena *arena;
    void *selves[VERIFY_RULES_MAX]; /* in the order of verify_rules */
    bool scanned[TABLES_MAX];
    uint64_t rows;
};

/* `who` stands before the difference. */
void verify_vsay(struct verify *v, const char *who, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));

#endif
