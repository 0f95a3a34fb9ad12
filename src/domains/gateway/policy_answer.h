/* domains/gateway/policy_answer.h - what a policy decision point said, read from the body of its answer.
 *
 * OPA's REST shape: {"result": true|false}, or {"result":{"allowed","reason","requiresApproval"}} of which
 * only `allowed` has to be there. Members beside those are passed over; one of the wrong type, no result
 * (OPA's word for a policy that does not exist), or anything that is not JSON makes the whole unreadable:
 * then the point did not answer. Pure. */
#ifndef WEIR_GATEWAY_POLICY_ANSWER_H
#define WEIR_GATEWAY_POLICY_ANSWER_H

#include "base/arena.h"
#include "base/str.h"

enum { POLICY_ANSWER_REASON_MAX = 150 }; /* bytes; the rest is cut off */

struct policy_answer {
    bool allowed, requires_approval;
    struct str reason; /* borrowed from arena or body; absent: none given */
};

/* False: unreadable. */
bool policy_answer_read(struct arena *a, struct str body, struct policy_answer *ret);

#endif
