/* tokens/claims_internal.h - one claim read from its value; for files of this folder that read claims. */
#ifndef WEIR_TOKENS_CLAIMS_INTERNAL_H
#define WEIR_TOKENS_CLAIMS_INTERNAL_H

#include "tokens/claims.h"

/* False: the value does not look as it should. */
bool claim_read(struct arena *a, enum token_claim claim, const struct json *j, struct token_claims *c);

#endif
