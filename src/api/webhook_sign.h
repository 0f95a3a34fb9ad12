/* api/webhook_sign.h - signatures of Standard Webhooks 1.0: HMAC-SHA256 over "id.timestamp.body", base64,
 * behind "v1,".
 *
 * While a secret is being rotated both sign, one after the other, with a space between. */
#ifndef WEIR_API_WEBHOOK_SIGN_H
#define WEIR_API_WEBHOOK_SIGN_H

#include "base/arena.h"

enum { WEBHOOK_ROTATION_MS = 24 * 3600 * 1000 }; /* how long the former secret goes on signing */

struct webhook_secrets {
    struct str now, former; /* raw bytes; former absent, or too old: not used */
    int64_t rotated_ms;
};

/* The value of `webhook-signature`; in the arena. */
struct str webhook_signature(struct arena *a, const struct webhook_secrets *secrets, struct str id,
                             int64_t now_ms, struct str body);

#endif
