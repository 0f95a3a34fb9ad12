/* base/varint.h - numbers in as few bytes as they need: seven bits each, low ones first.
 *
 * What is taken comes from disk or from outside: a number that does not end, or has more than 64 bits, is
 * refused. The same number may be written longer than needed; that is read all the same. */
#ifndef WEIR_BASE_VARINT_H
#define WEIR_BASE_VARINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { VARINT_BYTES_MAX = 10 };

void varint_put(struct strbuf *b, uint64_t n);
/* Takes one off the front; false: there is none, and *s is not to be used any more. */
bool varint_take(struct str *s, uint64_t *ret);

/* A difference, so that a small one is a small number whatever its sign; and back. */
static inline uint64_t varint_fold(int64_t n)
{
    return (uint64_t)n << 1 ^ (n < 0 ? UINT64_MAX : 0);
}

static inline int64_t varint_unfold(uint64_t n)
{
    return (int64_t)(n >> 1 ^ (~(n & 1) + 1));
}

#endif
