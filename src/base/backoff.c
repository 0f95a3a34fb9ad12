#include "base/backoff.h"

#include "base/hash.h"

#include "base/banned.h"

int64_t backoff_ms(int64_t base_ms, int64_t times, int64_t cap_ms)
{
    int64_t ms = base_ms;
    for (; times > 0 && ms < cap_ms && ms > 0; times--)
        ms *= 2;
    return ms < cap_ms ? ms : cap_ms;
}

double backoff_spread(int64_t id, int64_t attempt)
{
    uint64_t spread = hash_mix((uint64_t)id ^ (uint64_t)attempt << 50);
    return (double)(spread >> 11) / 9007199254740992.0; /* 53 bits */
}
