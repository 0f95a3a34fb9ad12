#include "tokens/base64url.h"

#include "base/banned.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64url_add(struct strbuf *out, const void *bytes, size_t len)
{
    const uint8_t *in = bytes;
    strbuf_reserve(out, len / 3 * 4 + 4);
    for (size_t i = 0; i < len; i += 3) {
        size_t here = len - i < 3 ? len - i : 3;
        uint32_t bits = (uint32_t)in[i] << 16;
        if (here > 1)
            bits |= (uint32_t)in[i + 1] << 8;
        if (here > 2)
            bits |= in[i + 2];
        for (size_t k = 0; k <= here; k++)
            strbuf_add_char(out, letters[bits >> (18 - 6 * k) & 63]);
    }
}

static int letter_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

bool base64url_decode(struct arena *a, struct str text, struct str *ret_bytes)
{
    size_t len = text.len / 4 * 3 + text.len % 4 * 6 / 8, at = 0;
    uint32_t bits = 0, waiting = 0; /* `waiting` low bits of `bits` have not been given out */
    if (text.len % 4 == 1)
        return false;
    char *out = arena_alloc(a, len + 1);
    for (size_t i = 0; i < text.len; i++) {
        int value = letter_value(text.ptr[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        waiting += 6;
        if (waiting < 8)
            continue;
        waiting -= 8;
        out[at++] = (char)(bits >> waiting & 255);
        bits &= (1U << waiting) - 1;
    }
    if (bits != 0) /* the last letter says more than there are bytes for */
        return false;
    *ret_bytes = (struct str){out, at};
    return true;
}
