#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"

#include "base/banned.h"

struct chunk {
    struct chunk *next; /* older */
    size_t size, used;
    max_align_t data[];
};

struct arena {
    struct chunk *head, *first;
    struct chunk *spare; /* kept by a reset, not in use yet */
    size_t bytes;
    size_t keep_max;
};

static struct chunk *chunk_new(size_t size)
{
    struct chunk *c = malloc(sizeof *c + size);
    if (!c)
        c = must_alloc(sizeof *c + size); /* ends the process with a clear line */
    c->next = NULL;
    c->size = size;
    c->used = 0;
    return c;
}

struct arena *arena_new(size_t first_chunk_bytes)
{
    struct arena *a = must_alloc(sizeof *a);
    a->head = a->first = chunk_new(first_chunk_bytes);
    return a;
}

void arena_keep(struct arena *a, size_t bytes)
{
    a->keep_max = bytes;
}

static void free_chunks(struct chunk *c)
{
    while (c) {
        struct chunk *next = c->next;
        free(c);
        c = next;
    }
}

void arena_reset(struct arena *a)
{
    size_t kept = 0;
    struct chunk *unused = a->spare;
    a->spare = NULL;
    while (a->head != a->first) {
        struct chunk *c = a->head;
        a->head = c->next;
        if (c->size > a->keep_max - kept) {
            free(c);
            continue;
        }
        kept += c->size;
        c->used = 0;
        c->next = a->spare;
        a->spare = c;
    }
    free_chunks(unused); /* the last round did without them */
    a->first->used = 0;
    a->bytes = 0;
}

/* The next chunk: a spare one when it is large enough. */
static struct chunk *next_chunk(struct arena *a, size_t need)
{
    struct chunk *c = a->spare;
    if (c && c->size >= need) {
        a->spare = c->next;
        return c;
    }
    size_t grow = a->head->size * 2 > (1u << 20) ? (1u << 20) : a->head->size * 2;
    return chunk_new(need > grow ? need : grow);
}

struct arena *arena_free(struct arena *a)
{
    if (a) {
        free_chunks(a->head); /* the first one is the last of the list */
        free_chunks(a->spare);
        free(a);
    }
    return NULL;
}

size_t arena_bytes(const struct arena *a)
{
    return a->bytes;
}

void *arena_room(struct arena *a, size_t size)
{
    MUST(size < SIZE_MAX / 4);
    size_t need = (size + (_Alignof(max_align_t) - 1)) & ~(_Alignof(max_align_t) - 1);
    struct chunk *c = a->head;
    if (c->size - c->used < need) {
        c = next_chunk(a, need);
        c->next = a->head;
        a->head = c;
    }
    void *p = (char *)c->data + c->used;
    c->used += need;
    a->bytes += need;
    return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
    void *p = arena_room(a, size);
    memset(p, 0, size);
    return p;
}

char *arena_copy(struct arena *a, const void *bytes, size_t len)
{
    char *p = arena_room(a, len + 1);
    if (len)
        memcpy(p, bytes, len);
    p[len] = 0;
    return p;
}

struct str arena_str(struct arena *a, struct str s)
{
    if (!s.ptr)
        return s;
    return (struct str){arena_copy(a, s.ptr, s.len), s.len};
}

struct str arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    MUST(n >= 0);
    char *p = arena_room(a, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return (struct str){p, (size_t)n};
}
