/* api/address_limits.h - callers without credentials, by source address: a limit of requests a minute, and of
 * lines in the log.
 *
 * Budgets: ADDRESS_BUDGETS; each address has every budget for itself, for a minute from its first request on.
 *          An address is an IPv4 address or the /64 of an IPv6 one.
 * Log:     LINES_MAX failed requests of an address are logged in its minute, ALL_LINES_MAX of all addresses
 *          together; the requests beyond are counted and told by one line (`requests_not_logged`) when the
 *          minute is over.
 * Bounded: a table of ADDRESSES_MAX, four of them to a place. Where a place is full the address with the
 *          fewest requests is forgotten.
 * Threads: any; sixteen locks, each held for moments. Requests with good credentials do not come here. */
#ifndef WEIR_API_ADDRESS_LIMITS_H
#define WEIR_API_ADDRESS_LIMITS_H

#include "base/clock.h"
#include "config/settings.h"
#include "http/server.h"

/* X(name, field of struct settings with the requests per minute, its key); 0 there: no limit. Probes have a
 * budget of their own: a caller that uses up the others does not make the server look dead. */
#define ADDRESS_BUDGETS(X)                                                                                   \
    X(ANONYMOUS, unauthenticated_per_minute, "server.unauthenticated_per_minute")                            \
    X(PROBES, unauthenticated_per_minute, "server.unauthenticated_per_minute")                               \
    X(CLIENTS, clients_per_address_minute, "clients.per_address_minute")

#define X(name, field, key) ADDRESS_##name,
enum address_budget { ADDRESS_BUDGETS(X) ADDRESS_BUDGET_COUNT };
#undef X

enum { ADDRESSES_MAX = 16384, ADDRESS_LINES_MAX = 30, ADDRESS_ALL_LINES_MAX = 1200 };

struct address_limits;
struct address_limits *address_limits_new(const struct settings *s, const struct clock *clock);
struct address_limits *address_limits_free(struct address_limits *a); /* NULL is fine; always returns NULL */

/* One request. ERR_REQUEST_RATE_LIMITED with Retry-After when the address has had its share. */
MUST_CHECK enum err_code address_limits_take(struct address_limits *a, const struct http_address *from,
                                             enum address_budget budget, struct err *err);
/* May one more failed request from there be logged? If not it is counted. */
bool address_limits_may_log(struct address_limits *a, const struct http_address *from);
/* A few times a second: tells of what was not logged. */
void address_limits_tick(struct address_limits *a);

#endif
