#include "base/hash.h"

#include <string.h>

#include "base/random.h"

#include "base/banned.h"

static uint64_t secret[2];

__attribute__((constructor)) static void draw_secret(void)
{
    random_bytes(secret, sizeof secret);
}

void hash_secret_set(const uint64_t key[2])
{
    memcpy(secret, key, sizeof secret);
}

static uint64_t rotl(uint64_t x, int b)
{
    return x << b | x >> (64 - b);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[0] = rotl(v[0], 32);
    v[2] += v[3];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[2] = rotl(v[2], 32);
}

uint64_t hash_sip(const uint64_t key[2], const void *bytes, size_t len)
{
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                     key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
    const unsigned char *p = bytes;
    size_t left = len;
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t m;
        memcpy(&m, p, 8);
        v[3] ^= m;
        sip_round(v);
        sip_round(v);
        v[0] ^= m;
    }
    uint64_t last = (uint64_t)len << 56;
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)p[i] << (8 * i);
    v[3] ^= last;
    sip_round(v);
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t hash_secret(const void *bytes, size_t len)
{
    return hash_sip(secret, bytes, len);
}

uint64_t hash_fnv1a(uint64_t start, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t h = start;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}
