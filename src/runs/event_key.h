/* runs/event_key.h - the idempotency key of a run event (Run Events contract 2.0.1, section 3.1): the one
 * implementation, called by the append authority and by producers.
 *
 * SHA-256 of the UTF-8 text  runId|stepId or RUN|logicalAttemptId|eventType|planId|planVersion,  in
 * lower-case hex. Texts are taken as they are: no trimming, no folding, no normalization. Nothing else takes
 * part. */
#ifndef WEIR_RUNS_EVENT_KEY_H
#define WEIR_RUNS_EVENT_KEY_H

#include <stdint.h>

#include "base/digest.h"
#include "base/str.h"

/* A change of the formula is a new major version of the contract. */
#define RUN_EVENTS_CONTRACT "2.0.1"

enum { EVENT_KEY_LEN = 64 };

/* The parts of the key. */
struct event_key_parts {
    struct str run_id, step_id; /* step_id absent: about the run */
    int64_t logical_attempt;
    struct str event_type, plan_id, plan_version;
};

/* The stepId that takes part: RUN of an event about the run, as of a step of this name. */
struct str event_key_step(struct str step_id);
void event_key_preimage(const struct event_key_parts *p, struct strbuf *out); /* added to out */
void event_key_digest(const struct event_key_parts *p, uint8_t out[DIGEST_BYTES]);
void event_key(const struct event_key_parts *p, char out[EVENT_KEY_LEN + 1]);

#endif
