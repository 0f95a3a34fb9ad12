/* base/backoff.h - pauses between tries: doubled from one to the next, bounded, and spread so that what
 * failed together does not come back together. Pure: the spread comes from an id, so a pause replays the
 * same. */
#ifndef WEIR_BASE_BACKOFF_H
#define WEIR_BASE_BACKOFF_H

#include <stdint.h>

enum { RETRY_AFTER_MAX_MS = 3600000 }; /* a receiver that asks for more is asked again then all the same */

/* base * 2^times, at most the cap. */
int64_t backoff_ms(int64_t base_ms, int64_t times, int64_t cap_ms);
/* In [0, 1): the place of attempt number `attempt` of `id` in its spread. */
double backoff_spread(int64_t id, int64_t attempt);

#endif
