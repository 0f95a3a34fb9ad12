/* egress/retry_after.h - the value of a Retry-After field (RFC 9110, 10.2.3) as a wait. Pure. */
#ifndef WEIR_EGRESS_RETRY_AFTER_H
#define WEIR_EGRESS_RETRY_AFTER_H

#include <stdint.h>

#include "base/str.h"

/* A receiver that asks for more gets this; whoever retries has a bound of its own below it. */
#define RETRY_AFTER_MS_MAX (INT64_C(7) * 24 * 3600 * 1000)

/* Seconds, or a date in any of the three forms HTTP knows, which is measured from now_wall_ms: the past is 0.
 * -1 for anything else. */
int64_t retry_after_ms(struct str value, int64_t now_wall_ms);

#endif
