#include "base/str.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool str_equal_nocase(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.ptr[i]) != lower(b.ptr[i]))
            return false;
    return true;
}

bool str_starts(struct str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && memcmp(s.ptr, prefix, n) == 0;
}

struct str str_trim(struct str s)
{
    while (s.len && (*s.ptr == ' ' || *s.ptr == '\t'))
        s.ptr++, s.len--;
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

struct str str_cut(struct str *rest, char at)
{
    const char *hit = rest->len ? memchr(rest->ptr, at, rest->len) : NULL;
    struct str before = *rest;
    if (!hit) {
        rest->ptr += rest->len;
        rest->len = 0;
        return before;
    }
    before.len = (size_t)(hit - rest->ptr);
    rest->len -= before.len + 1;
    rest->ptr = hit + 1;
    return before;
}

bool str_to_int(struct str s, int64_t min, int64_t max, int64_t *ret_value)
{
    bool negative = s.len && s.ptr[0] == '-';
    size_t i = negative;
    if (i == s.len || s.len > 20)
        return false;
    int64_t v = 0;
    for (; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
        int digit = s.ptr[i] - '0';
        if (__builtin_mul_overflow(v, 10, &v) ||
            (negative ? __builtin_sub_overflow(v, digit, &v) : __builtin_add_overflow(v, digit, &v)))
            return false;
    }
    if (v < min || v > max)
        return false;
    *ret_value = v;
    return true;
}

/* RFC 3629: the first byte tells the length, the second excludes overlong forms and surrogates. */
size_t str_utf8_sequence(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    if (!s.len)
        return 0;
    if (p[0] < 0x80)
        return 1;
    size_t n = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || s.len < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF0 && p[1] < 0x90) ||
        (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return n;
}

/* The bytes of a word that are 0, each told by its highest bit: exact for the first of them. */
static uint64_t zero_bytes(uint64_t word)
{
    return (word - UINT64_C(0x0101010101010101)) & ~word;
}

size_t str_json_plain(struct str s)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones * 0x80;
    size_t i = 0;
    for (; s.len - i >= sizeof ones; i += sizeof ones) {
        uint64_t word;
        memcpy(&word, s.ptr + i, sizeof word);
        word = le64toh(word);
        uint64_t special = word | ((word - ones * 0x20) & ~word) | zero_bytes(word ^ ones * '"') |
                           zero_bytes(word ^ ones * '\\');
        special &= highs;
        if (special)
            return i + (size_t)__builtin_ctzll(special) / 8;
    }
    for (; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\')
            break;
    }
    return i;
}

bool str_is_utf8(struct str s)
{
    while (s.len) {
        size_t n = str_utf8_sequence(s);
        if (!n)
            return false;
        s.ptr += n;
        s.len -= n;
    }
    return true;
}

void strbuf_free(struct strbuf *b)
{
    free(b->ptr);
    *b = (struct strbuf){0};
}

void strbuf_clear(struct strbuf *b)
{
    b->len = 0;
}

void strbuf_reserve(struct strbuf *b, size_t more)
{
    MUST(more < SIZE_MAX / 4);
    size_t need = b->len + more + 1;
    if (need <= b->cap)
        return;
    size_t cap = b->cap ? b->cap * 2 : 64;
    if (cap < need)
        cap = need;
    b->ptr = must_realloc(b->ptr, cap);
    b->cap = cap;
}

void strbuf_add(struct strbuf *b, const void *bytes, size_t len)
{
    strbuf_reserve(b, len);
    if (len)
        memcpy(b->ptr + b->len, bytes, len);
    b->len += len;
    b->ptr[b->len] = 0;
}

void strbuf_addf(struct strbuf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    MUST(n >= 0);
    strbuf_reserve(b, (size_t)n);
    va_start(ap, fmt);
    vsnprintf(b->ptr + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
}

void strbuf_add_int(struct strbuf *b, int64_t value)
{
    char digits[24];
    char *p = digits + sizeof digits;
    uint64_t v = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        *--p = (char)('0' + v % 10);
    while (v /= 10);
    if (value < 0)
        *--p = '-';
    strbuf_add(b, p, (size_t)(digits + sizeof digits - p));
}
