/* base/hash.h - 64-bit hashing for tables in memory (keyed with a secret of the process, so keys from outside
 * cannot collide on purpose) and for checksums (unseeded, stable on disk). */
#ifndef WEIR_BASE_HASH_H
#define WEIR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t hash_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    x ^= x >> 27;
    x *= UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* SipHash-2-4; a keyed function, stable for a given key. */
uint64_t hash_sip(const uint64_t key[2], const void *bytes, size_t len);
/* The same with a secret that each program draws when it starts, for tables in memory. Never stored. */
uint64_t hash_secret(const void *bytes, size_t len);
void hash_secret_set(const uint64_t key[2]); /* tests; before any table is filled */
/* FNV-1a 64, as seed 004's partition rule asks (AT-07), and our page checksum. */
uint64_t hash_fnv1a(uint64_t start, const void *bytes, size_t len);
#define HASH_FNV_START UINT64_C(0xcbf29ce484222325)

#endif
