#include "base/uuid.h"

#include <string.h>

#include "base/banned.h"

struct uuid uuid_v4_of(const uint8_t random[16])
{
    struct uuid u;
    memcpy(u.bytes, random, sizeof u.bytes);
    u.bytes[6] = (uint8_t)((u.bytes[6] & 0x0F) | 0x40);
    u.bytes[8] = (uint8_t)((u.bytes[8] & 0x3F) | 0x80);
    return u;
}

static bool dash_before(int byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void uuid_text(const struct uuid *u, char out[UUID_TEXT_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    char *p = out;
    for (int i = 0; i < 16; i++) {
        if (dash_before(i))
            *p++ = '-';
        *p++ = digits[u->bytes[i] >> 4];
        *p++ = digits[u->bytes[i] & 15];
    }
    *p = 0;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool uuid_parse(struct str text, struct uuid *ret_uuid)
{
    if (text.len != UUID_TEXT_LEN)
        return false;
    struct uuid u;
    const char *p = text.ptr;
    for (int i = 0; i < 16; i++) {
        if (dash_before(i) && *p++ != '-')
            return false;
        int hi = hex_value(p[0]), lo = hex_value(p[1]);
        if (hi < 0 || lo < 0)
            return false;
        u.bytes[i] = (uint8_t)(hi << 4 | lo);
        p += 2;
    }
    *ret_uuid = u;
    return true;
}

struct uuid uuid_from_v7(int64_t key, uint64_t low)
{
    uint64_t ms = (uint64_t)key >> 12;
    uint64_t high = ms << 16 | 0x7000 | ((uint64_t)key & 0xFFF);
    struct uuid u;
    for (int i = 0; i < 8; i++) {
        u.bytes[i] = (uint8_t)(high >> (56 - 8 * i));
        u.bytes[8 + i] = (uint8_t)(low >> (56 - 8 * i));
    }
    return u;
}

bool uuid_split_v7(const struct uuid *u, int64_t *ret_key, uint64_t *ret_low)
{
    uint64_t high = 0, low = 0;
    for (int i = 0; i < 8; i++) {
        high = high << 8 | u->bytes[i];
        low = low << 8 | u->bytes[8 + i];
    }
    if ((high >> 12 & 15) != 7 || low >> 62 != 2)
        return false;
    *ret_key = (int64_t)(high >> 16 << 12 | (high & 0xFFF));
    *ret_low = low;
    return true;
}

int64_t uuid_v7_next_key(struct uuid_v7_source *source, int64_t now_ms)
{
    int64_t key = now_ms << 12;
    if (key <= source->last_key)
        key = source->last_key + 1;
    source->last_key = key;
    return key;
}

uint64_t uuid_v7_low_of(uint64_t random)
{
    return (random >> 2) | (UINT64_C(2) << 62);
}
