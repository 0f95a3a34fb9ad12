#include "base/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

_Noreturn void must_fail(const char *condition, const char *file, int line, const char *function)
{
    fprintf(stderr, "{\"level\":\"fatal\",\"message\":\"broken promise: %s\",\"at\":\"%s:%d %s\"}\n",
            condition, file, line, function);
    abort();
}

static _Noreturn void out_of_memory(size_t size)
{
    fprintf(stderr, "{\"level\":\"fatal\",\"message\":\"out of memory asking for %zu bytes\"}\n", size);
    _Exit(70);
}

void *must_alloc(size_t size)
{
    void *p = calloc(1, size ? size : 1);
    if (!p)
        out_of_memory(size);
    return p;
}

void *must_realloc(void *ptr, size_t size)
{
    void *p = realloc(ptr, size ? size : 1);
    if (!p)
        out_of_memory(size);
    return p;
}

char *must_strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *p = must_alloc(n);
    memcpy(p, text, n);
    return p;
}
