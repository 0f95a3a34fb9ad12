/* tokens/token_mint.h - new tokens. What is minted passes token_verify under the same policy.
 *
 * A token gets a jti and, unless one is given, a session_id of its own: random UUIDs. */
#ifndef WEIR_TOKENS_TOKEN_MINT_H
#define WEIR_TOKENS_TOKEN_MINT_H

#include "tokens/claims.h"
#include "tokens/token_key.h"

struct token_order {
    struct str subject, roles, tenant, projects; /* roles and projects: a,b,c; absent projects: every one */
    struct str session_id;                       /* absent: a new one */
    struct str audience;                         /* absent: the policy's first */
    int64_t ttl_seconds;                         /* 0: an hour, or the cap when that is less */
};

/* Adds the token to `out`. ERR_REQUEST_MALFORMED when the order breaks a rule of claims.h or the policy. */
MUST_CHECK enum err_code token_mint(const struct token_order *order, const struct token_policy *p,
                                    struct str kid, const struct token_key *key, int64_t now,
                                    struct strbuf *out, struct err *err);

#endif
