/* tokens/known_tokens.h - tokens in use, with the facts that were read from them, so that a request with one
 * pays for neither base64, JSON nor a signature (ECDSA costs a tenth of a millisecond and more).
 *
 * A token is known by its exact bytes. Kept are its content and the key that signed it: facts that cannot
 * change. Whether the key still counts, the blocklist, the times and the jti are checked with every request.
 * A fixed number of places; a newer token takes the place of an older one, which is then read again. At most
 * KNOWN_TOKENS times the size of a token.
 *
 * Threads: any; one lock, held for a copy. */
#ifndef WEIR_TOKENS_KNOWN_TOKENS_H
#define WEIR_TOKENS_KNOWN_TOKENS_H

#include "tokens/claims.h"
#include "tokens/token_digest.h"
#include "tokens/token_key.h"

enum { KNOWN_TOKENS = 2048 };

struct known_token {
    struct str kid;
    enum token_alg alg;
    uint8_t key_print[TOKEN_KEY_PRINT_BYTES]; /* of the key that was found to have signed it */
    uint8_t digest[TOKEN_DIGEST_BYTES];       /* of the token */
    struct token_claims claims;               /* as claims_read() left them */
};

struct known_tokens;

struct known_tokens *known_tokens_new(void);
struct known_tokens *known_tokens_free(struct known_tokens *k); /* NULL is fine; always returns NULL */
/* False: never seen, or forgotten. The result is a copy in the arena. */
bool known_tokens_find(struct known_tokens *k, struct str token, struct arena *a, struct known_token *ret);
/* Its signature was verified, with the key of this print. */
void known_tokens_keep(struct known_tokens *k, struct str token, const struct known_token *what);
uint64_t known_tokens_hits(struct known_tokens *k);

#endif
