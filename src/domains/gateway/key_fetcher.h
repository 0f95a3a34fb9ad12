/* domains/gateway/key_fetcher.h - fetches the keys of outside issuers for core (tokens.issuers, jwks_url).
 *
 * Way:      every second core is asked for due fetches (POST /internal/v1/issuers:take). The sender of the
 *           deliveries fetches them, one at a time, and the answer goes back (issuers:answer). Core decides
 *           which fetches are due and what the body is worth. The address is the operator's, so it is not
 *           judged (egress/trusted.h). No redirects: keys come from the address that the operator named, or
 *           not at all.
 * Bounded:  EGRESS_ANSWER_BYTES_MAX and KEY_FETCH_MS; a longer answer is an error.
 * Lost:     a fetch that a gateway took and did not answer is due again after a while, in core.
 * Owner:    the gateway's thread. A NULL fetcher does nothing: there are no outside issuers. */
#ifndef WEIR_GATEWAY_KEY_FETCHER_H
#define WEIR_GATEWAY_KEY_FETCHER_H

#include "egress/sender.h"
#include "worker_client/worker_client.h"

enum { KEY_FETCH_MS = 10000 };

struct key_fetcher;

struct key_fetcher_config {
    bool on;
    struct worker_client *client;
    struct egress *egress;
    const struct clock *clock;
};

struct key_fetcher *key_fetcher_new(const struct key_fetcher_config *config); /* NULL: off */
/* After client and sender. NULL is fine; always returns NULL. */
struct key_fetcher *key_fetcher_free(struct key_fetcher *f);
void key_fetcher_pump(struct key_fetcher *f, int64_t now_ms); /* does what is due */
int64_t key_fetcher_next_at_ms(const struct key_fetcher *f);  /* mono; INT64_MAX: it waits for an answer */

#endif
