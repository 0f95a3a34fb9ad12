/* api/rate_limit.h - requests per client: a minute window and a UTC day, in memory, counted across threads.
 *
 * A restart starts the windows anew. Worker calls do not count. */
#ifndef WEIR_API_RATE_LIMIT_H
#define WEIR_API_RATE_LIMIT_H

#include "base/err.h"
#include "base/uuid.h"
#include "config/settings.h"

struct rate_limit;
struct rate_limit *rate_limit_new(const struct settings *s);
struct rate_limit *rate_limit_free(struct rate_limit *r);
/* ERR_REQUEST_RATE_LIMITED with Retry-After when the client has used its share. */
MUST_CHECK enum err_code rate_limit_take(struct rate_limit *r, int64_t client, const struct uuid *client_id,
                                         int64_t now_ms, struct err *err);

#endif
