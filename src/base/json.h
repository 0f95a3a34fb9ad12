/* base/json.h - strict JSON in, into an arena; and a small append-only writer out.
 *
 * Reading: RFC 8259, UTF-8 only, depth at most JSON_DEPTH_MAX, duplicate keys refused, lone
 * surrogates refused, no BOM, no trailing bytes. Numbers keep their source text, so nothing is
 * rounded: ask json_to_int() or json_to_double(). Strings are unescaped into the arena (borrowed
 * from the input when nothing is escaped, so the input must outlive the document); \u0000 is
 * allowed in the text and visible through the length. Writing: commas and quotes are the writer's
 * business; the caller says what comes. */
#ifndef WEIR_BASE_JSON_H
#define WEIR_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

enum { JSON_DEPTH_MAX = 64 };

enum json_type { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_type type : 8;
    bool holds_null : 1;      /* of the root: some value in the text is null */
    uint32_t count;           /* members or elements */
    struct str text;          /* string: unescaped; number: source text */
    struct str key;           /* this value's member name when its parent is an object */
    struct str source;        /* the exact bytes of this value in the input */
    const struct json *child; /* first member or element */
    const struct json *next;  /* next sibling */
};

/* On failure: ERR_REQUEST_MALFORMED with line and column of the first bad byte in detail. */
MUST_CHECK enum err_code json_parse(struct arena *a, struct str input, const struct json **ret_root,
                                    struct err *err);
const struct json *json_get(const struct json *object,
                            const char *key); /* NULL when absent or not an object */
bool json_to_int(const struct json *j,
                 int64_t *ret_value); /* integers only; 1.0 and 1e2 count, 1.5 does not */
bool json_to_double(const struct json *j, double *ret_value); /* nearest; false beyond the range of double */
bool json_is_integer(const struct json *j); /* a number with an integral value, of any size */
bool json_equal(const struct json *a, const struct json *b); /* by value: 1 == 1.0, member order ignored */
int json_number_compare(const struct json *a, const struct json *b); /* <0, 0, >0; exact; both numbers */
/* Exact, so 0.3 is a multiple of 0.1. Divisor: above zero, at most 18 significant digits. */
bool json_is_multiple(const struct json *number, const struct json *divisor);

/* Canonical form (keys sorted by bytes, no spaces, integral numbers without fraction or exponent):
 * equal values give equal bytes. `skip_key` (may be NULL) leaves out one member of the root object.
 * A number that would need more than 40 digits is written as digits and exponent, so a short text
 * like 1e999999 stays short; exponents beyond 10^15 in size all count as 10^15. */
void json_canonical(const struct json *j, const char *skip_key, struct strbuf *out);

struct json_writer {
    struct strbuf *out;
    bool comma; /* something stands before at this level */
};

void jw_start(struct json_writer *w, struct strbuf *out);
void jw_object(struct json_writer *w);
void jw_object_end(struct json_writer *w);
void jw_array(struct json_writer *w);
void jw_array_end(struct json_writer *w);
void jw_key(struct json_writer *w, const char *key);    /* keys are our own plain names: never escaped */
void jw_key_str(struct json_writer *w, struct str key); /* a key from outside: escaped */
void jw_str(struct json_writer *w, struct str s);       /* absent str: null */
void jw_text(struct json_writer *w, const char *text);  /* NULL: null */
void jw_int(struct json_writer *w, int64_t value);
void jw_double(struct json_writer *w, double value);
void jw_bool(struct json_writer *w, bool value);
void jw_null(struct json_writer *w);
void jw_raw(struct json_writer *w, struct str json); /* already JSON; comes out on one line */

#endif
