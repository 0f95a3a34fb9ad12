/* base/uuid.h - UUID text and bytes; v4 for secrets-like ids, v7 split into a 60-bit key and the rest. Their
 * random bits come from elsewhere: of deciders from the unit (kernel/unit.h), of others base/random.h.
 *
 * A v7 id is held as two numbers: `key` = 48-bit milliseconds << 12 | 12-bit counter (time-ordered,
 * the primary key of its row) and `low` = 62 random bits with the variant on top. */
#ifndef WEIR_BASE_UUID_H
#define WEIR_BASE_UUID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { UUID_TEXT_LEN = 36 };

struct uuid {
    uint8_t bytes[16];
};

struct uuid uuid_v4_of(const uint8_t random[16]);
void uuid_text(const struct uuid *u, char out[UUID_TEXT_LEN + 1]);
bool uuid_parse(struct str text, struct uuid *ret_uuid); /* 8-4-4-4-12 hex, any case, any version */

struct uuid uuid_from_v7(int64_t key, uint64_t low);
/* False unless it is a well-formed version 7 id. */
bool uuid_split_v7(const struct uuid *u, int64_t *ret_key, uint64_t *ret_low);
static inline int64_t uuid_v7_ms(int64_t key)
{
    return key >> 12;
}

/* Gives keys that only rise, 4096 a millisecond; runs ahead of the clock when asked for more, and
 * never back when the clock does. One generator per store: the commit thread's. */
struct uuid_v7_source {
    int64_t last_key;
};
int64_t uuid_v7_next_key(struct uuid_v7_source *source, int64_t now_ms);
uint64_t uuid_v7_low_of(uint64_t random);

#endif
