/* egress/retry_after.h - the value of a Retry-After field (RFC 9110, 10.2.3) as a wait. Pure. */
#ifndef WEIR_EGRESS_RETRY_AFTER_H
#define WEIR_EGRESS_RETRY_AFTER_H

#include <stdint.h>

#include "base/str.h"

/* Seconds, or a date in any of the three forms HTTP knows, which is measured from now_wall_ms: the past is 0.
 * RETRY_AFTER_MAX_MS (base/backoff.h) at most. -1 for anything else. */
int64_t retry_after_ms(struct str value, int64_t now_wall_ms);

#endif
