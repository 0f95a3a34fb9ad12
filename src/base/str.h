/* base/str.h - borrowed text (`struct str`) and a growing buffer (`struct strbuf`).
 *
 * A str is a pointer and a length; it owns nothing and need not end in NUL. ptr NULL means absent,
 * which is not the same as empty. A strbuf owns its bytes until strbuf_free. */
#ifndef WEIR_BASE_STR_H
#define WEIR_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *ptr;
    size_t len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
#define STR_ABSENT   ((struct str){NULL, 0})
#define STR_ARG(s)   (int)(s).len, (s).ptr ? (s).ptr : "" /* for "%.*s" */

static inline struct str str_of(const char *text)
{
    return (struct str){text, text ? strlen(text) : 0};
}
static inline bool str_equal(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}
static inline bool str_is(struct str a, const char *text)
{
    return str_equal(a, str_of(text));
}
bool str_equal_nocase(struct str a, struct str b); /* ASCII */
bool str_starts(struct str s, const char *prefix);
struct str str_trim(struct str s); /* spaces and tabs at both ends */
/* Splits *rest at the first `at`: returns what stands before it, leaves what stands behind. */
struct str str_cut(struct str *rest, char at);
/* Whole string as a decimal integer within [min, max]; no sign but '-', no spaces. */
bool str_to_int(struct str s, int64_t min, int64_t max, int64_t *ret_value);
bool str_is_utf8(struct str s); /* strict: no surrogates, no overlong forms */
/* Bytes of the well-formed UTF-8 sequence that starts s; 0 when there is none. */
size_t str_utf8_sequence(struct str s);
/* Leading bytes that are ASCII and stand in a JSON string as they are: no quote, backslash, control. */
size_t str_json_plain(struct str s);

struct strbuf {
    char *ptr; /* always NUL-terminated once something was added */
    size_t len, cap;
};

void strbuf_free(struct strbuf *b);
void strbuf_clear(struct strbuf *b); /* keeps the memory */
void strbuf_reserve(struct strbuf *b, size_t more);
void strbuf_add(struct strbuf *b, const void *bytes, size_t len);
void strbuf_addf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline void strbuf_add_str(struct strbuf *b, struct str s)
{
    strbuf_add(b, s.ptr, s.len);
}
static inline void strbuf_add_text(struct strbuf *b, const char *t)
{
    strbuf_add(b, t, strlen(t));
}
static inline void strbuf_add_char(struct strbuf *b, char c)
{
    if (b->cap < b->len + 2)
        strbuf_reserve(b, 1);
    b->ptr[b->len++] = c;
    b->ptr[b->len] = 0;
}
void strbuf_add_int(struct strbuf *b, int64_t value);
static inline struct str strbuf_str(const struct strbuf *b)
{
    return (struct str){b->ptr, b->len};
}

#endif
