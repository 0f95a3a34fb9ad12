/* tokens/token_digest.h - SHA-256 of names, tokens and keys, which stands for them in tables. */
#ifndef WEIR_TOKENS_TOKEN_DIGEST_H
#define WEIR_TOKENS_TOKEN_DIGEST_H

#include <string.h>

#include "base/digest.h"

enum { TOKEN_DIGEST_BYTES = DIGEST_BYTES };

/* Of a label, a zero byte and the text; the label keeps kinds apart. */
static inline void token_digest(const char *label, struct str text, uint8_t out[TOKEN_DIGEST_BYTES])
{
    digest_sha256_pair((struct str){label, strlen(label) + 1}, text, out);
}
/* Of one behind the other. `first` has one length in all calls that are compared. */
static inline void token_digest_pair(struct str first, struct str second, uint8_t out[TOKEN_DIGEST_BYTES])
{
    digest_sha256_pair(first, second, out);
}

#endif
