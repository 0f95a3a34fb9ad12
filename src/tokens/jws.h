/* tokens/jws.h - a token cut into its parts: RFC 7515 compact form, nothing else.
 *
 * Pure. The content of a token that is not verified yet is used to look things up and to refuse, never to
 * grant. Keys that a token brings along (jwk, jku, x5c, x5u) are not even read. */
#ifndef WEIR_TOKENS_JWS_H
#define WEIR_TOKENS_JWS_H

#include "base/json.h"
#include "tokens/token_key.h"
#include "tokens/token_reason.h"

enum { TOKEN_BYTES_MAX = 8192 }; /* AMB-16 */

struct jws {
    struct str header, payload, signature; /* as base64url */
    struct str signed_part;                /* header, dot, payload */
};

struct jws_header {
    enum token_alg alg;
    struct str kid;
};

/* TOKEN_OK, ABSENT, TOO_LONG or SHAPE. */
enum token_reason jws_split(struct str token, struct jws *ret_jws);
/* The object in one part; NULL with the reason set: SHAPE for bad base64url, `no_object` for the rest. */
const struct json *jws_object(struct arena *a, struct str part, enum token_reason no_object,
                              enum token_reason *ret_reason);
enum token_reason jws_read_header(struct arena *a, struct str header, struct jws_header *ret_header);

/* Header and signature around a payload (JSON), added to `out`. False: the key cannot sign. */
bool jws_sign(const struct token_key *key, struct str kid, struct str payload, struct strbuf *out);

#endif
