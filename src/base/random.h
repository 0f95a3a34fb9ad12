/* base/random.h - bytes from the OS random source, buffered per thread; and where a unit of work has its own
 * from: deciders have no randomness but that of their unit (kernel/unit.h), so a test can give it a seed. */
#ifndef WEIR_BASE_RANDOM_H
#define WEIR_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"

void random_bytes(void *out, size_t len); /* never fails: no randomness ends the process */
uint64_t random_u64(void);
struct uuid uuid_v4(void);

/* A source of random bytes. */
struct random {
    void (*bytes)(void *self, void *out, size_t len);
    void *self;
};
extern const struct random random_system;

#endif
