#include "base/varint.h"

#include "base/banned.h"

void varint_put(struct strbuf *b, uint64_t n)
{
    for (; n >= 0x80; n >>= 7)
        strbuf_add_char(b, (char)(0x80 | (n & 0x7F)));
    strbuf_add_char(b, (char)n);
}

bool varint_take(struct str *s, uint64_t *ret)
{
    uint64_t n = 0;
    for (unsigned shift = 0; s->len && shift < 64; shift += 7) {
        uint8_t byte = (uint8_t)*s->ptr;
        s->ptr++;
        s->len--;
        if (shift == 63 && byte > 1)
            return false;
        n |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *ret = n;
            return true;
        }
    }
    return false;
}
