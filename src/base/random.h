/* base/random.h - bytes from the OS random source, buffered per thread. */
#ifndef WEIR_BASE_RANDOM_H
#define WEIR_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

void random_bytes(void *out, size_t len); /* never fails: no randomness ends the process */
uint64_t random_u64(void);

#endif
