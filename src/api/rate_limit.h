/* api/rate_limit.h - requests per client: so many a minute and so many a UTC day, counted across threads.
 *
 * A refused request counts for neither. Worker calls and probes are not asked about here.
 * Headers: where a client stands is told on every answer that a limit governs, as the structured fields
 *          RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers.
 * Restart: the minute begins anew. The day goes on where it was: counts are saved once a second and at a
 *          clean stop, so a crash forgets a second of it at most.
 * Nodes:   of one database count minutes each for itself. A day is one for all: each adds what it has counted
 *          and learns the sum, so a client can pass its day by what it does at the other nodes in a second.
 * Cost:    a lock that a sixteenth of the clients share, for a look into a hash table; the store is read
 *          once per client, and only when there is a limit per day.
 * Memory:  clients that have called within a minute, and at most as many again; a part holds 256 before idle
 *          ones are looked for. Their days are read back when they call again.
 * Bounded: CLIENTS_A_SHARD_MAX in each of 16 parts. One more, and its part begins anew: minutes are
 *          forgotten, days are read back. */
#ifndef WEIR_API_RATE_LIMIT_H
#define WEIR_API_RATE_LIMIT_H

#include "api/reads.h"
#include "base/uuid.h"
#include "config/settings.h"
#include "kernel/unit.h"

/* X(name, its name in the headers and in messages, seconds) */
#define RATE_SPANS(X)                                                                                        \
    X(MINUTE, "minute", 60)                                                                                  \
    X(DAY, "day", 86400)

#define X(name, wire, seconds) RATE_##name,
enum rate_span { RATE_SPANS(X) RATE_SPAN_COUNT };
#undef X

/* Where a client stands after a request. */
struct rate_standing {
    struct {
        int64_t quota; /* 0: no limit */
        int64_t left, reset_s;
    } spans[RATE_SPAN_COUNT];
};

struct rate_limit;
struct rate_limit *rate_limit_new(const struct settings *s);
struct rate_limit *rate_limit_free(struct rate_limit *r);
/* One request. ERR_REQUEST_RATE_LIMITED with Retry-After when the client has used its share; an error of the
 * store when its day could not be read. The standing is set in the first case, too. HTTP threads. */
MUST_CHECK enum err_code rate_limit_take(struct rate_limit *r, struct reads *reads, struct arena *arena,
                                         int64_t client, const struct uuid *client_id, int64_t now_ms,
                                         struct rate_standing *ret_standing, struct err *err);
/* The two header lines; nothing when there is no limit. */
void rate_limit_headers(const struct rate_standing *s, struct strbuf *headers);
/* Housekeeping: registers the days that have changed, a bounded part of them; true when there are more. Then
 * the result: days that were not stored are registered again. */
bool rate_limit_save(struct rate_limit *r, struct unit *u);
void rate_limit_saved(struct rate_limit *r, bool stored);
size_t rate_limit_clients(struct rate_limit *r); /* in memory now */

#endif
