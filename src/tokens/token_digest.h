/* tokens/token_digest.h - SHA-256 of names, tokens and keys, which stands for them in tables.
 *
 * The algorithm is looked up once: OpenSSL 3 would do so at every call, which costs more than hashing. */
#ifndef WEIR_TOKENS_TOKEN_DIGEST_H
#define WEIR_TOKENS_TOKEN_DIGEST_H

#include <stdint.h>

#include "base/str.h"

enum { TOKEN_DIGEST_BYTES = 32 };

/* Of a label, a zero byte and the text; the label keeps kinds apart. */
void token_digest(const char *label, struct str text, uint8_t out[TOKEN_DIGEST_BYTES]);
/* Of one behind the other. `first` has one length in all calls that are compared. */
void token_digest_pair(struct str first, struct str second, uint8_t out[TOKEN_DIGEST_BYTES]);

#endif
