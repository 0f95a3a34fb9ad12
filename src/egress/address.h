/* egress/address.h - which addresses a connection may go to: the SSRF guard's rule, pure.
 *
 * Denied are all addresses that are not a public host's: loopback, private, link-local (cloud metadata
 * with it), shared, documentation, benchmarking, reserved, multicast, and every IPv6 form that only wraps
 * one of them. The ranges stand in one table in address.c, the most special first; an address that no
 * row names is public.
 *
 * Two grades: PRIVATE ranges open with allow_private or by a network of the allow-list; NEVER ranges (this
 * network, multicast, broadcast) stay shut whatever the policy says.
 * Wrapped: ::ffff:a.b.c.d and 64:ff9b::a.b.c.d (NAT64) are judged as a.b.c.d. The tunnels (::a.b.c.d,
 * 6to4, Teredo) are private at best, since it is unknown where they come out. */
#ifndef WEIR_EGRESS_ADDRESS_H
#define WEIR_EGRESS_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/str.h"

enum { EGRESS_NETWORKS_MAX = 64 };

/* IPv4 in the first 4 bytes; every bit behind the prefix is 0. */
struct egress_network {
    bool v6;
    uint8_t bits; /* length of the prefix */
    uint8_t bytes[16];
};

struct egress_policy {
    bool allow_private;
    uint8_t network_count;
    struct egress_network networks[EGRESS_NETWORKS_MAX]; /* allowed although private */
};

/* `list`: "10.1.0.0/16,fd00::/8,192.0.2.7", spaces around items allowed, empty for none; a bare address is
 * a network of one. ERR_CONFIG_INVALID names the item that is wrong. */
MUST_CHECK enum err_code egress_policy_parse(struct str list, bool allow_private,
                                             struct egress_policy *ret_policy, struct err *err);

/* `address` is of its family's full size. *ret_reason is set when denied: a phrase such as "loopback",
 * without the address, since the owner of a URL may read it and must not learn what our resolver says. */
bool egress_address_allowed(const struct egress_policy *policy, const struct sockaddr *address,
                            const char **ret_reason);
/* The same for an address written out as inet_ntop does; anything else is denied. */
bool egress_address_text_allowed(const struct egress_policy *policy, const char *address,
                                 const char **ret_reason);

#endif
