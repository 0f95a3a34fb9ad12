/* domains/gateway/policy_asker.h - carries questions of core to the operator's policy decision point, and
 * its answers back.
 *
 * Way:      a long poll of core (POST /internal/v1/policy:take) brings questions; each is a POST to the point
 *           by the sender that the deliveries use; the results go back in batches (policy:answer). Core does
 *           not wait: a question without an answer falls back there when its time is over.
 *           The address is the operator's, so it is not judged (egress/trusted.h). No redirects.
 * Question:     FREE ─► OUT ─► SAID ─► TELLING ─► FREE
 *                               ▲─────────┘ core gave no answer
 * Answered: 200 with a body that policy_answer.h can read and that was not cut (EGRESS_ANSWER_BYTES_MAX); all
 *           else is no answer, told at once. No question is tried twice: a person waits.
 * Bounded:  POLICY_ASKED_MAX questions at a time, each as long as core says.
 * Waits:    no delivery waits for it; each has a request of its own.
 * Owner:    the gateway's thread. A NULL asker does nothing: there is no point. */
#ifndef WEIR_GATEWAY_POLICY_ASKER_H
#define WEIR_GATEWAY_POLICY_ASKER_H

#include "egress/sender.h"
#include "worker_client/worker_client.h"

enum { POLICY_ASKED_MAX = 128 };

struct policy_asker;

struct policy_asker_config {
    const char *url; /* of the point; NULL: none */
    struct worker_client *client;
    struct egress *egress;
    const struct clock *clock;
    int64_t instance; /* of this gateway */
};

struct policy_asker *policy_asker_new(const struct policy_asker_config *config); /* NULL: there is no point */
/* After client and sender: no answer comes any more. NULL is fine; always returns NULL. */
struct policy_asker *policy_asker_free(struct policy_asker *p);

void policy_asker_pump(struct policy_asker *p, int64_t now_ms); /* does what is due */
int64_t policy_asker_next_at_ms(const struct policy_asker *p);  /* mono; INT64_MAX: it waits for an answer */

void policy_asker_stop(struct policy_asker *p);          /* takes no more; questions under way go on */
bool policy_asker_is_over(const struct policy_asker *p); /* nothing is under way */

#endif
