/* tokens/jwks.h - the public keys of an outside issuer: a JWK Set (RFC 7517), read strictly.
 *
 * Taken: keys with a kid that can verify: RSA (alg, or RS256 where none is named) and EC (by their curve).
 * Left out: keys for encryption, of other kinds or algorithms, without a kid, weak ones; providers publish
 *           such beside those we need.
 * Refused: as a whole: a text that is no JWK Set, a kid that stands twice, a private or symmetric part (a
 *          provider that publishes one has lost it), no usable key, anything beyond a bound. A refused set
 *          changes nothing: the former one stays.
 *
 * Pure. */
#ifndef WEIR_TOKENS_JWKS_H
#define WEIR_TOKENS_JWKS_H

#include "tokens/token_key.h"
#include "tokens/token_reason.h"

enum { JWKS_BYTES_MAX = 64 * 1024, JWKS_KEYS_MAX = 64, JWKS_KID_BYTES_MAX = 256 };

struct jwks_key {
    char *kid;
    struct token_key key;
};

struct jwks {
    struct jwks_key keys[JWKS_KEYS_MAX];
    size_t count;
};

/* ERR_CONFIG_INVALID with a sentence. Free it with jwks_free. */
MUST_CHECK enum err_code jwks_read(struct str text, struct jwks *ret_set, struct err *err);
void jwks_free(struct jwks *s); /* leaves an empty one */
/* NULL: there is none of this kid. */
const struct token_key *jwks_find(const struct jwks *s, struct str kid);

#endif
