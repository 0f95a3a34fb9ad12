/* base/time_text.h - RFC 3339 in and out. We write UTC with Z; we read Z or +00:00 only. */
#ifndef WEIR_BASE_TIME_TEXT_H
#define WEIR_BASE_TIME_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { TIME_TEXT_MAX = 32 };

/* "2026-11-15T23:10:00.123Z"; out holds TIME_TEXT_MAX. Returns out as a str. */
struct str time_text_ms(int64_t wall_ms, char out[TIME_TEXT_MAX]);
/* "2026-11-15T23:10:00.123456Z" */
struct str time_text_us(int64_t wall_us, char out[TIME_TEXT_MAX]);
/* Years 1970 to 9999, up to nine fraction digits (cut to microseconds), leap second 60 refused. */
bool time_parse_us(struct str text, int64_t *ret_wall_us);

#endif
