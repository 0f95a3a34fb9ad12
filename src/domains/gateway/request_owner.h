/* domains/gateway/request_owner.h - who made a request of the gateway's one sender. The owner of each
 * egress_request is one of these, inside what the request is about. */
#ifndef WEIR_GATEWAY_REQUEST_OWNER_H
#define WEIR_GATEWAY_REQUEST_OWNER_H

#include "base/heap.h" /* CONTAINER_OF */
#include "egress/sender.h"

struct request_owner {
    void (*over)(struct request_owner *owner, const struct egress_result *result);
};

#endif
