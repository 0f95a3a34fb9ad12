/* The parser: one pass, no recursion. A stack of open containers stands in for the call stack, so
 * depth is a counter and a hostile body cannot exhaust memory that is not the arena's. */
#include "base/json.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/random.h"

#include "base/banned.h"

/* Up to this many members a linear look finds a duplicate faster than a hash table is filled. */
enum { LINEAR_MEMBERS_MAX = 16 };

/* Keys of one large object. Seeded per object: no caller can choose colliding keys. */
struct key_table {
    uint64_t seed[2];
    const struct json **slots;
    uint32_t mask;
};

struct frame {
    struct json *container, *last;
    struct key_table *keys; /* NULL while the object is small */
};

struct parser {
    const char *start, *at, *end;
    struct arena *arena;
    struct err *err;
    unsigned depth;
    bool met_null;
    struct frame stack[JSON_DEPTH_MAX];
};

static enum err_code fail_at(struct parser *ps, const char *at, const char *what)
{
    size_t line = 1, column = 1;
    for (const char *p = ps->start; p < at; p++) {
        if (*p == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*p & 0xC0) != 0x80) {
            column++; /* characters, not bytes, as an editor shows them */
        }
    }
    return err_set(ps->err, ERR_REQUEST_MALFORMED, "line %zu, column %zu: %s", line, column, what);
}

static enum err_code fail_expected(struct parser *ps, const char *expected)
{
    char what[128];
    if (ps->at == ps->end)
        snprintf(what, sizeof what, "expected %s, found the end of the input", expected);
    else if (*ps->at > 0x20 && *ps->at < 0x7F)
        snprintf(what, sizeof what, "expected %s, found '%c'", expected, *ps->at);
    else
        snprintf(what, sizeof what, "expected %s, found byte 0x%02X", expected,
                 (unsigned)(unsigned char)*ps->at);
    return fail_at(ps, ps->at, what);
}

static inline void skip_space(struct parser *ps)
{
    const char *p = ps->at;
    while (p < ps->end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    ps->at = p;
}

/* ---- strings ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Four hex digits at p, or -1. */
static int hex_quad(const char *p, const char *end)
{
    int value = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static char *put_utf8(char *out, unsigned c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xC0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        *out++ = (char)(0xE0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3F));
        *out++ = (char)(0x80 | (c & 0x3F));
    } else {
        *out++ = (char)(0xF0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3F));
        *out++ = (char)(0x80 | (c >> 6 & 0x3F));
        *out++ = (char)(0x80 | (c & 0x3F));
    }
    return out;
}

/* \uXXXX at *p (which points behind the u); a high surrogate takes its partner along. */
static enum err_code unescape_unicode(struct parser *ps, const char **p, const char *end, char **out)
{
    const char *escape = *p - 2;
    int unit = hex_quad(*p, end);
    if (unit < 0)
        return fail_at(ps, escape, "\\u needs four hexadecimal digits");
    *p += 4;
    unsigned c = (unsigned)unit;
    if (unit >= 0xD800 && unit <= 0xDFFF) {
        bool pair = unit < 0xDC00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u';
        int low = pair ? hex_quad(*p + 2, end) : -1;
        if (low < 0xDC00 || low > 0xDFFF)
            return fail_at(ps, escape, "surrogate without its other half");
        *p += 6;
        c = 0x10000 + (((unsigned)unit - 0xD800) << 10) + ((unsigned)low - 0xDC00);
    }
    *out = put_utf8(*out, c);
    return ERR_OK;
}

/* raw is what stands between the quotes. An escape never gets longer, so raw's copy is room enough.
 */
static enum err_code unescape(struct parser *ps, struct str raw, struct str *ret_text)
{
    static const char plain[256] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};
    char *buffer = arena_copy(ps->arena, raw.ptr, raw.len);
    char *out = buffer;
    const char *end = raw.ptr + raw.len;
    for (const char *p = raw.ptr; p < end;) {
        if (*p != '\\') {
            *out++ = *p++;
            continue;
        }
        char letter = p[1]; /* there is one: a backslash before the closing quote hides the quote */
        p += 2;
        if (letter == 'u') {
            enum err_code code = unescape_unicode(ps, &p, end, &out);
            if (code != ERR_OK)
                return code;
        } else if (plain[(unsigned char)letter]) {
            *out++ = plain[(unsigned char)letter];
        } else {
            return fail_at(ps, p - 2, "unknown escape in a string");
        }
    }
    *out = 0;
    *ret_text = (struct str){buffer, (size_t)(out - buffer)};
    return ERR_OK;
}

/* ps->at stands on the opening quote. */
static enum err_code parse_string(struct parser *ps, struct str *ret_text)
{
    const char *first = ps->at + 1, *p = first;
    bool escaped = false;
    for (;;) {
        p += str_json_plain((struct str){p, (size_t)(ps->end - p)});
        if (p >= ps->end) {
            ps->at = ps->end;
            return fail_expected(ps, "the closing '\"' of a string");
        }
        unsigned char c = (unsigned char)*p;
        if (c == '"')
            break;
        if (c >= 0x80) {
            size_t n = str_utf8_sequence((struct str){p, (size_t)(ps->end - p)});
            if (!n)
                return fail_at(ps, p, "not UTF-8");
            p += n;
        } else if (c == '\\') {
            escaped = true;
            p++;
            p += p < ps->end && (unsigned char)*p < 0x80; /* the escaped character is checked later */
        } else {
            return fail_at(ps, p, "control characters in a string must be escaped");
        }
    }
    ps->at = p + 1;
    struct str raw = {first, (size_t)(p - first)};
    if (escaped)
        return unescape(ps, raw, ret_text);
    *ret_text = raw;
    return ERR_OK;
}

/* ---- numbers and words ---- */

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

static enum err_code parse_number(struct parser *ps, struct json *j)
{
    const char *begin = ps->at, *p = begin + (*begin == '-');
    const char *digits = p;
    p = p < ps->end && *p == '0' ? p + 1 : skip_digits(p, ps->end);
    bool ok = p > digits;
    if (ok && p < ps->end && *p == '.') {
        digits = p + 1;
        p = skip_digits(digits, ps->end);
        ok = p > digits;
    }
    if (ok && p < ps->end && (*p | 0x20) == 'e') {
        digits = p + 1;
        digits += digits < ps->end && (*digits == '+' || *digits == '-');
        p = skip_digits(digits, ps->end);
        ok = p > digits;
    }
    ps->at = p;
    if (!ok)
        return fail_expected(ps, "a digit");
    if (p < ps->end && *p >= '0' && *p <= '9')
        return fail_at(ps, begin, "a number may not start with a zero");
    j->type = JSON_NUMBER;
    j->text = (struct str){begin, (size_t)(p - begin)};
    return ERR_OK;
}

static enum err_code parse_word(struct parser *ps, struct json *j, struct str word, enum json_type type)
{
    if ((size_t)(ps->end - ps->at) < word.len || memcmp(ps->at, word.ptr, word.len) != 0)
        return fail_at(ps, ps->at, "expected a value; the only words are true, false and null");
    ps->at += word.len;
    j->type = type;
    return ERR_OK;
}

/* ---- members ---- */

/* The slot that holds this key, or the free one where it belongs. */
static const struct json **key_slot(const struct key_table *t, struct str key)
{
    uint64_t i = hash_sip(t->seed, key.ptr, key.len);
    while (t->slots[i & t->mask] && !str_equal(t->slots[i & t->mask]->key, key))
        i++;
    return &t->slots[i & t->mask];
}

static void key_table_grow(struct parser *ps, struct frame *f)
{
    struct key_table *t = f->keys;
    if (!t) {
        t = f->keys = ARENA_NEW(ps->arena, struct key_table);
        t->seed[0] = random_u64();
        t->seed[1] = random_u64();
        t->mask = LINEAR_MEMBERS_MAX * 2 - 1;
    }
    t->mask = t->mask * 2 + 1;
    t->slots = ARENA_ARRAY(ps->arena, const struct json *, (size_t)t->mask + 1);
    for (const struct json *j = f->container->child; j; j = j->next)
        *key_slot(t, j->key) = j;
}

/* False when the object has this member's key already. */
static bool key_is_new(struct parser *ps, struct frame *f, const struct json *member)
{
    if (f->container->count < LINEAR_MEMBERS_MAX) {
        for (const struct json *j = f->container->child; j; j = j->next)
            if (str_equal(j->key, member->key))
                return false;
        return true;
    }
    if (!f->keys || f->container->count > f->keys->mask / 2)
        key_table_grow(ps, f);
    const struct json **slot = key_slot(f->keys, member->key);
    if (*slot)
        return false;
    *slot = member;
    return true;
}

static enum err_code fail_duplicate(struct parser *ps, const char *at, struct str key)
{
    char what[128];
    size_t shown = 0;
    while (shown < key.len && shown < 64) /* cut between characters */
        shown += str_utf8_sequence((struct str){key.ptr + shown, key.len - shown});
    snprintf(what, sizeof what, "duplicate key \"%.*s\"", (int)shown, key.ptr);
    return fail_at(ps, at, what);
}

static enum err_code parse_key(struct parser *ps, struct frame *f, struct json *member)
{
    skip_space(ps);
    const char *at = ps->at;
    if (at == ps->end || *at != '"')
        return fail_expected(ps, "a key in double quotes");
    enum err_code code = parse_string(ps, &member->key);
    if (code != ERR_OK)
        return code;
    if (!key_is_new(ps, f, member))
        return fail_duplicate(ps, at, member->key);
    skip_space(ps);
    if (ps->at == ps->end || *ps->at != ':')
        return fail_expected(ps, "':' after a key");
    ps->at++;
    return ERR_OK;
}

/* ---- values ---- */

static enum err_code open_container(struct parser *ps, struct json *j, enum json_type type)
{
    if (ps->depth == JSON_DEPTH_MAX)
        return fail_at(ps, ps->at, "nested too deep");
    struct frame *f = &ps->stack[ps->depth++];
    f->container = j;
    f->last = NULL;
    f->keys = NULL;
    j->type = type;
    ps->at++;
    return ERR_OK;
}

static enum err_code parse_value(struct parser *ps, struct json *j)
{
    skip_space(ps);
    if (ps->at == ps->end)
        return fail_expected(ps, "a value");
    j->source.ptr = ps->at;
    char c = *ps->at;
    enum err_code code;
    if (c == '"') {
        j->type = JSON_STRING;
        code = parse_string(ps, &j->text);
    } else if (c == '{') {
        code = open_container(ps, j, JSON_OBJECT);
    } else if (c == '[') {
        code = open_container(ps, j, JSON_ARRAY);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        code = parse_number(ps, j);
    } else if (c == 't') {
        code = parse_word(ps, j, STR("true"), JSON_TRUE);
    } else if (c == 'f') {
        code = parse_word(ps, j, STR("false"), JSON_FALSE);
    } else if (c == 'n') {
        ps->met_null = true;
        code = parse_word(ps, j, STR("null"), JSON_NULL);
    } else {
        return fail_expected(ps, "a value");
    }
    j->source.len = (size_t)(ps->at - j->source.ptr); /* a container's is set when it closes */
    return code;
}

/* Starts the container's next value: its node, its key, its place in the chain. */
static enum err_code next_value(struct parser *ps, struct json **ret_next)
{
    struct frame *f = &ps->stack[ps->depth - 1];
    struct json *j = ARENA_NEW(ps->arena, struct json);
    if (f->container->type == JSON_OBJECT) {
        enum err_code code = parse_key(ps, f, j);
        if (code != ERR_OK)
            return code;
    }
    if (f->last)
        f->last->next = j;
    else
        f->container->child = j;
    f->last = j;
    f->container->count++;
    *ret_next = j;
    return ERR_OK;
}

/* Behind a value: closes what closes here. *ret_next is the next node to fill, NULL at the end. */
static enum err_code after_value(struct parser *ps, struct json **ret_next)
{
    *ret_next = NULL;
    while (ps->depth) {
        struct frame *f = &ps->stack[ps->depth - 1];
        bool object = f->container->type == JSON_OBJECT;
        skip_space(ps);
        char c = ps->at < ps->end ? *ps->at : 0;
        if (c == (object ? '}' : ']')) {
            ps->at++;
            f->container->source.len = (size_t)(ps->at - f->container->source.ptr);
            ps->depth--;
        } else if (!f->container->count) {
            return next_value(ps, ret_next); /* just opened */
        } else if (c == ',') {
            ps->at++;
            return next_value(ps, ret_next);
        } else {
            return fail_expected(ps, object ? "',' or '}'" : "',' or ']'");
        }
    }
    return ERR_OK;
}

enum err_code json_parse(struct arena *a, struct str input, const struct json **ret_root, struct err *err)
{
    struct parser ps; /* the stack stays unset: frames are filled as they open */
    ps.start = ps.at = input.len ? input.ptr : "";
    ps.end = ps.start + input.len;
    ps.arena = a;
    ps.err = err;
    ps.depth = 0;
    ps.met_null = false;
    struct json *root = ARENA_NEW(a, struct json);
    for (struct json *j = root; j;) {
        enum err_code code = parse_value(&ps, j);
        if (code == ERR_OK)
            code = after_value(&ps, &j);
        if (code != ERR_OK)
            return code;
    }
    skip_space(&ps);
    if (ps.at != ps.end)
        return fail_expected(&ps, "the end of the input");
    root->holds_null = ps.met_null;
    *ret_root = root;
    return ERR_OK;
}

const struct json *json_get(const struct json *object, const char *key)
{
    if (!object || object->type != JSON_OBJECT)
        return NULL;
    struct str name = str_of(key);
    for (const struct json *j = object->child; j; j = j->next)
        if (str_equal(j->key, name))
            return j;
    return NULL;
}
