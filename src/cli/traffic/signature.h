/* cli/traffic/signature.h - is a delivery signed as Standard Webhooks 1.0 says? Pure.
 *
 * HMAC-SHA256 over "id.timestamp.body" with the bytes behind `whsec_`; the header lists one or more
 * "v1,BASE64", any of which may match (secrets rotate). */
#ifndef WEIR_TRAFFIC_SIGNATURE_H
#define WEIR_TRAFFIC_SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { SIGNATURE_AGE_S_MAX = 300 }; /* of a timestamp, either way */

struct signed_message {
    struct str id, timestamp, signature; /* the three webhook-* headers */
    struct str body;
};

/* NULL when it is genuine, else what is wrong. */
const char *signature_fault(const struct signed_message *m, struct str secret, int64_t now_s);

#endif
