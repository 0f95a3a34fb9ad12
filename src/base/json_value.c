/* The value of parsed JSON: numbers by value instead of by spelling, equality, canonical bytes. */
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/must.h"

#include "base/banned.h"

/* ---- numbers ---- */

/* A number as (-1)^negative * DIGITS * 10^exponent, where DIGITS neither starts nor ends in 0.
 * So two spellings of one value give the same decimal. Zero has no digits and no sign. */
struct decimal {
    const char *first; /* of `count` digits in the source text; a '.' between them is to be skipped */
    size_t count;
    int64_t exponent;
    bool negative;
};

/* Canonical numbers up to this many digits are written out plainly. */
enum { PLAIN_DIGITS_MAX = 40 };
static const int64_t exponent_limit = 1000000000000000;

static int64_t exponent_of(struct str s)
{
    bool negative = s.ptr[0] == '-';
    int64_t value = 0;
    for (size_t i = negative || s.ptr[0] == '+'; i < s.len; i++) {
        value = value * 10 + (s.ptr[i] - '0');
        if (value > exponent_limit)
            value = exponent_limit;
    }
    return negative ? -value : value;
}

static struct decimal decimal_of(struct str text)
{
    struct decimal d = {.negative = text.ptr[0] == '-'};
    size_t end = 0, behind_last = 0, point = 0;
    bool has_point = false;
    for (end = d.negative; end < text.len && (text.ptr[end] | 0x20) != 'e'; end++) {
        if (text.ptr[end] == '.') {
            has_point = true;
            point = end;
        } else if (text.ptr[end] != '0') {
            if (!d.first)
                d.first = text.ptr + end;
            behind_last = end + 1;
        }
    }
    if (!d.first)
        return (struct decimal){0};
    if (!has_point)
        point = end;
    const char *last = text.ptr + behind_last, *dot = text.ptr + point;
    d.count = (size_t)(last - d.first) - (d.first < dot && dot < last);
    d.exponent = last <= dot ? dot - last : dot - last + 1;
    if (end < text.len)
        d.exponent += exponent_of((struct str){text.ptr + end + 1, text.len - end - 1});
    if (d.exponent > exponent_limit)
        d.exponent = exponent_limit;
    if (d.exponent < -exponent_limit)
        d.exponent = -exponent_limit;
    return d;
}

/* The digit after p; only asked while one is left. */
static const char *next_digit(const char *p)
{
    return p[1] == '.' ? p + 2 : p + 1;
}

static bool decimal_equal(struct decimal a, struct decimal b)
{
    if (a.count != b.count || a.exponent != b.exponent || a.negative != b.negative)
        return false;
    for (size_t i = 0; i < a.count; i++) {
        if (*a.first != *b.first)
            return false;
        if (i + 1 < a.count) {
            a.first = next_digit(a.first);
            b.first = next_digit(b.first);
        }
    }
    return true;
}

/* Both above zero. */
static int magnitude_compare(struct decimal a, struct decimal b)
{
    int64_t a_whole = (int64_t)a.count + a.exponent, b_whole = (int64_t)b.count + b.exponent;
    if (a_whole != b_whole)
        return a_whole < b_whole ? -1 : 1;
    for (size_t i = 0; i < a.count && i < b.count; i++) {
        if (*a.first != *b.first)
            return *a.first < *b.first ? -1 : 1;
        if (i + 1 < a.count)
            a.first = next_digit(a.first);
        if (i + 1 < b.count)
            b.first = next_digit(b.first);
    }
    return (a.count > b.count) - (a.count < b.count); /* digits never end in a zero */
}

int json_number_compare(const struct json *a, const struct json *b)
{
    MUST(a->type == JSON_NUMBER && b->type == JSON_NUMBER);
    struct decimal x = decimal_of(a->text), y = decimal_of(b->text);
    int x_sign = !x.count ? 0 : x.negative ? -1 : 1, y_sign = !y.count ? 0 : y.negative ? -1 : 1;
    if (x_sign != y_sign || !x_sign)
        return x_sign - y_sign;
    return x_sign * magnitude_compare(x, y);
}

/* x = X * 10^p and d = D * 10^q with no trailing zeros in X and D. If p < q no multiple of d ends
 * in X's last digit; else the question is whether D divides X * 10^(p-q). */
bool json_is_multiple(const struct json *number, const struct json *divisor)
{
    struct decimal x = decimal_of(number->text), d = decimal_of(divisor->text);
    MUST(d.count && !d.negative && d.count <= 18);
    if (!x.count)
        return true;
    if (x.exponent < d.exponent)
        return false;
    uint64_t by = 0, left = 0;
    for (size_t i = 0; i < d.count; i++) {
        by = by * 10 + (uint64_t)(*d.first - '0');
        if (i + 1 < d.count)
            d.first = next_digit(d.first);
    }
    for (size_t i = 0; i < x.count; i++) {
        left = (left * 10 + (uint64_t)(*x.first - '0')) % by;
        if (i + 1 < x.count)
            x.first = next_digit(x.first);
    }
    int64_t zeros = x.exponent - d.exponent;
    for (int i = 0; i < 64 && i < zeros; i++) /* D < 2^60: more tens than 64 divide nothing new */
        left = left * 10 % by;
    return left == 0;
}

bool json_is_integer(const struct json *j)
{
    return j && j->type == JSON_NUMBER && decimal_of(j->text).exponent >= 0;
}

bool json_to_int(const struct json *j, int64_t *ret_value)
{
    if (!j || j->type != JSON_NUMBER)
        return false;
    if (str_to_int(j->text, INT64_MIN, INT64_MAX, ret_value))
        return true;
    struct decimal d = decimal_of(j->text);
    if (d.exponent < 0 || d.exponent > 18 || d.count > 19)
        return false;
    int64_t v = 0;
    for (size_t i = 0; i < d.count + (size_t)d.exponent; i++) {
        int digit = i < d.count ? *d.first - '0' : 0;
        if (__builtin_mul_overflow(v, 10, &v) ||
            (d.negative ? __builtin_sub_overflow(v, digit, &v) : __builtin_add_overflow(v, digit, &v)))
            return false;
        if (i + 1 < d.count)
            d.first = next_digit(d.first);
    }
    *ret_value = v;
    return true;
}

bool json_to_double(const struct json *j, double *ret_value)
{
    if (!j || j->type != JSON_NUMBER)
        return false;
    char small[64], *text = small; /* strtod wants a NUL, the source has none */
    if (j->text.len >= sizeof small)
        text = must_alloc(j->text.len + 1);
    memcpy(text, j->text.ptr, j->text.len);
    text[j->text.len] = 0;
    double value = strtod(text, NULL);
    if (text != small)
        free(text);
    if (!isfinite(value))
        return false;
    *ret_value = value;
    return true;
}

static void add_zeros(struct strbuf *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        strbuf_add_char(out, '0');
}

static void add_decimal(struct strbuf *out, struct decimal d)
{
    if (!d.count) {
        strbuf_add_char(out, '0');
        return;
    }
    int64_t whole = (int64_t)d.count + d.exponent; /* digits before the point */
    bool plain = whole <= PLAIN_DIGITS_MAX && d.exponent >= -PLAIN_DIGITS_MAX;
    if (d.negative)
        strbuf_add_char(out, '-');
    if (plain && whole <= 0) {
        strbuf_add_text(out, "0.");
        add_zeros(out, -whole);
    }
    for (size_t i = 0; i < d.count; i++) {
        if (plain && i && (int64_t)i == whole)
            strbuf_add_char(out, '.');
        strbuf_add_char(out, *d.first);
        if (i + 1 < d.count)
            d.first = next_digit(d.first);
    }
    if (plain) {
        add_zeros(out, d.exponent);
    } else {
        strbuf_add_char(out, 'e');
        strbuf_add_int(out, d.exponent);
    }
}

/* ---- members in key order ---- */

static int by_key(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a, *y = *(const struct json *const *)b;
    size_t shared = x->key.len < y->key.len ? x->key.len : y->key.len;
    int order = shared ? memcmp(x->key.ptr, y->key.ptr, shared) : 0;
    return order ? order : (x->key.len > y->key.len) - (x->key.len < y->key.len);
}

/* Most objects are small: their order needs no heap. */
enum { FEW_MEMBERS = 16 };

struct ordered {
    const struct json **members;
    const struct json *few[FEW_MEMBERS];
};

static void ordered_start(struct ordered *o, const struct json *object)
{
    o->members = o->few;
    if (object->count > FEW_MEMBERS)
        o->members = must_alloc(sizeof *o->members * object->count);
    size_t n = 0;
    for (const struct json *j = object->child; j; j = j->next)
        o->members[n++] = j;
    if (n > FEW_MEMBERS) {
        qsort(o->members, n, sizeof *o->members, by_key);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        const struct json *moving = o->members[i];
        size_t at = i;
        for (; at && by_key(&o->members[at - 1], &moving) > 0; at--)
            o->members[at] = o->members[at - 1];
        o->members[at] = moving;
    }
}

static void ordered_end(struct ordered *o)
{
    if (o->members != o->few)
        free(o->members);
}

/* ---- equality ---- */

static bool objects_equal(const struct json *a, const struct json *b)
{
    const struct json *x = a->child, *y = b->child;
    while (x && str_equal(x->key, y->key)) { /* same order: the common case, no sorting */
        if (!json_equal(x, y))
            return false;
        x = x->next;
        y = y->next;
    }
    if (!x)
        return true;
    struct ordered left, right;
    ordered_start(&left, a);
    ordered_start(&right, b);
    bool equal = true;
    for (size_t i = 0; equal && i < a->count; i++)
        equal = str_equal(left.members[i]->key, right.members[i]->key) &&
                json_equal(left.members[i], right.members[i]);
    ordered_end(&left);
    ordered_end(&right);
    return equal;
}

static bool arrays_equal(const struct json *a, const struct json *b)
{
    const struct json *x = a->child, *y = b->child;
    for (; x; x = x->next, y = y->next)
        if (!json_equal(x, y))
            return false;
    return true;
}

bool json_equal(const struct json *a, const struct json *b)
{
    if (a->type != b->type || a->count != b->count)
        return false;
    switch (a->type) {
    case JSON_NULL:
    case JSON_FALSE:
    case JSON_TRUE:
        return true;
    case JSON_NUMBER:
        return str_equal(a->text, b->text) || decimal_equal(decimal_of(a->text), decimal_of(b->text));
    case JSON_STRING:
        return str_equal(a->text, b->text);
    case JSON_ARRAY:
        return arrays_equal(a, b);
    case JSON_OBJECT:
        return objects_equal(a, b);
    }
    return false;
}

/* ---- canonical bytes ---- */

static void add_canonical(struct json_writer *w, const struct json *j, const char *skip_key);

static void add_canonical_object(struct json_writer *w, const struct json *j, const char *skip_key)
{
    struct ordered order;
    ordered_start(&order, j);
    jw_object(w);
    for (size_t i = 0; i < j->count; i++) {
        const struct json *member = order.members[i];
        if (skip_key && str_is(member->key, skip_key))
            continue;
        jw_key_str(w, member->key);
        add_canonical(w, member, NULL);
    }
    jw_object_end(w);
    ordered_end(&order);
}

static void add_canonical(struct json_writer *w, const struct json *j, const char *skip_key)
{
    switch (j->type) {
    case JSON_NULL:
        jw_null(w);
        break;
    case JSON_FALSE:
    case JSON_TRUE:
        jw_bool(w, j->type == JSON_TRUE);
        break;
    case JSON_NUMBER:
        jw_raw(w, STR(""));
        add_decimal(w->out, decimal_of(j->text));
        break;
    case JSON_STRING:
        jw_str(w, j->text);
        break;
    case JSON_ARRAY:
        jw_array(w);
        for (const struct json *e = j->child; e; e = e->next)
            add_canonical(w, e, NULL);
        jw_array_end(w);
        break;
    case JSON_OBJECT:
        add_canonical_object(w, j, skip_key);
        break;
    }
}

void json_canonical(const struct json *j, const char *skip_key, struct strbuf *out)
{
    struct json_writer w;
    jw_start(&w, out);
    add_canonical(&w, j, skip_key);
}
