#include "http/target.h"

#include "http/hex.h"

#include "base/banned.h"

/* The byte that "%xy" at the front of s stands for, -1 when the escape is broken. */
static int escaped_byte(struct str s)
{
    if (s.len < 3)
        return -1;
    int hi = hex_digit(s.ptr[1]), lo = hex_digit(s.ptr[2]);
    return hi < 0 || lo < 0 ? -1 : hi << 4 | lo;
}

enum form { FORM_PATH, FORM_QUERY };

/* NULL when decoded, else what is wrong. */
static const char *decode(struct arena *a, struct str raw, enum form form, struct str *ret_text)
{
    char *out = arena_copy(a, raw.ptr, raw.len);
    size_t n = 0;
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.ptr[i];
        if (c == '+' && form == FORM_QUERY)
            c = ' ';
        if (c == '%') {
            int byte = escaped_byte((struct str){raw.ptr + i, raw.len - i});
            if (byte < 0)
                return "a percent escape is broken";
            if (byte == '/' && form == FORM_PATH)
                return "an encoded slash is not taken";
            c = (char)byte;
            i += 2;
        }
        if (!c)
            return "NUL is not taken";
        out[n++] = c;
    }
    out[n] = 0;
    *ret_text = (struct str){out, n};
    return str_is_utf8(*ret_text) ? NULL : "not UTF-8";
}

enum err_code target_decode_path(struct arena *a, struct str raw, struct str *ret_path, struct err *err)
{
    if (!memchr(raw.ptr, '%', raw.len)) { /* raw targets are visible ASCII: nothing to decode */
        *ret_path = raw;
        return ERR_OK;
    }
    struct str path;
    const char *why = decode(a, raw, FORM_PATH, &path);
    if (why)
        return err_set(err, ERR_REQUEST_MALFORMED, "path: %s", why);
    *ret_path = path;
    return ERR_OK;
}

static bool is_plain(struct str s)
{
    return !s.len || (!memchr(s.ptr, '%', s.len) && !memchr(s.ptr, '+', s.len));
}

bool target_name_is(struct arena *a, struct str raw, struct str name)
{
    struct str text = raw;
    if (!is_plain(raw) && decode(a, raw, FORM_QUERY, &text))
        return false;
    return str_equal(text, name);
}

enum err_code target_query(struct arena *a, struct str query, struct str name, struct str *ret_value,
                           struct err *err)
{
    while (query.len) {
        struct str value = str_cut(&query, '&');
        struct str key = str_cut(&value, '=');
        if (!target_name_is(a, key, name))
            continue;
        struct str text;
        const char *why = decode(a, value, FORM_QUERY, &text);
        if (why)
            return err_set(err, ERR_REQUEST_MALFORMED, "query parameter %.*s: %s", STR_ARG(name), why);
        *ret_value = text;
        return ERR_OK;
    }
    *ret_value = STR_ABSENT;
    return ERR_OK;
}
