/* api/token_auth.h - callers with a token (JWT): the engine API, and workers of a tenant. Their identity
 * comes from the token alone; whether they may touch a run is decided where the run is known. */
#ifndef WEIR_API_TOKEN_AUTH_H
#define WEIR_API_TOKEN_AUTH_H

#include "config/settings.h"
#include "tokens/token_verify.h"

struct token_auth;

/* The keys are borrowed. ERR_CONFIG_INVALID: tokens.agent_roles is none, or the file of tokens.issuers. */
MUST_CHECK enum err_code token_auth_new(const struct settings *s, struct key_ring *keys, int64_t now_ms,
                                        struct token_auth **ret_auth, struct err *err);
struct issuer_keys *token_auth_issuers(struct token_auth *a); /* NULL: no outside ones */
struct token_auth *token_auth_free(struct token_auth *a);     /* NULL is fine; always returns NULL */
/* `header` is the Authorization value. AUTH_INVALID_CREDENTIALS, AUTH_TOKEN_EXPIRED. Claims in the arena. */
MUST_CHECK enum err_code token_auth_check(struct token_auth *a, struct str header, int64_t now_ms,
                                          struct arena *arena, bool needs_tenant,
                                          const struct token_claims **ret_claims, struct err *err);
/* Looks like one: three parts. An API key has none. */
bool token_auth_is_token(struct str header);

#endif
