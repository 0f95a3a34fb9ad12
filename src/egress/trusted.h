/* egress/trusted.h - the way around the address guard, for what the operator names, never a client.
 *
 * A collector of traces or a policy decision point commonly listens on loopback or on a private network,
 * where no delivery may go. Whether a request is trusted is said by the call and stands nowhere in struct
 * egress_request, so nothing that is copied, read from JSON or left over can make a delivery trusted; and
 * tools/layers.txt keeps this header away from every file that handles deliveries.
 *
 * Trusted is the address alone: no redirects, no proxies, the same bounds, certificates checked as for
 * all. Connections are shared with other requests of the sender, and the peer of each is checked before a
 * byte goes out: a delivery that comes upon the collector's kept connection is denied all the same. */
#ifndef WEIR_EGRESS_TRUSTED_H
#define WEIR_EGRESS_TRUSTED_H

#include "egress/sender.h"

/* egress_send() to an address that is not judged; nor does its lookup wait for room (lookups_max). */
MUST_CHECK enum err_code egress_send_trusted(struct egress *e, const struct egress_request *request,
                                             struct err *err);

#endif
