/* tokens/token_reason.h - every way a token can be refused: one list.
 *
 * The name goes to logs and to `weir token verify`. Callers of an API get the sentence as detail of a 401.
 * Names are stable, sentences may improve. */
#ifndef WEIR_TOKENS_TOKEN_REASON_H
#define WEIR_TOKENS_TOKEN_REASON_H

#include <stdbool.h>

#include "base/str.h"

/* X(name, code of the control contract, HTTP status) */
#define TOKEN_CLASSES(X)                                                                                     \
    X(GOOD, "OK", 200)                                                                                       \
    X(MISSING, "AUTH_401_MISSING_TOKEN", 401)                                                                \
    X(INVALID, "AUTH_401_INVALID_TOKEN", 401)                                                                \
    X(SCOPE, "AUTH_403_SCOPE", 403)                                                                          \
    X(UNAVAILABLE, "INFRA_503_DEPENDENCY_DOWN", 503)

/* X(name, name on the wire, class, sentence) */
#define TOKEN_REASONS(X)                                                                                     \
    X(OK, "ok", GOOD, "the token is good")                                                                   \
    X(ABSENT, "absent", MISSING, "there is no token")                                                        \
    X(TOO_LONG, "too_long", INVALID, "the token has more than 8192 bytes")                                   \
    X(SHAPE, "shape", INVALID, "a token is three parts of base64url with dots between")                      \
    X(PAYLOAD, "payload", INVALID, "the payload is no JSON object")                                          \
    X(BLOCKED, "blocked", INVALID, "the token, its subject or its session was revoked")                      \
    X(HEADER, "header", INVALID, "the header is no JSON object")                                             \
    X(ALG, "alg", INVALID, "alg must be RS256, RS384, RS512, ES256, ES384 or ES512")                         \
    X(CRIT, "crit", INVALID, "the header asks for an extension (crit, b64, zip, enc)")                       \
    X(TYP, "typ", INVALID, "typ must be at+jwt or JWT, or absent")                                           \
    X(KID, "kid", INVALID, "the header names no key (kid)")                                                  \
    X(KEY_UNKNOWN, "key_unknown", INVALID, "no key has this kid")                                            \
    X(KEY_REVOKED, "key_revoked", INVALID, "the key was revoked")                                            \
    X(KEY_RETIRED, "key_retired", INVALID, "the key was rotated out and its overlap has passed")             \
    X(ALG_OF_KEY, "alg_of_key", INVALID, "alg is not the algorithm of the key")                              \
    X(SIGNATURE, "signature", INVALID, "the signature is not by this key")                                   \
    X(CLAIM_MISSING, "claim_missing", INVALID, "a claim is missing")                                         \
    X(CLAIM_SHAPE, "claim_shape", INVALID, "a claim does not look as it should")                             \
    X(ISSUER, "issuer", INVALID, "the issuer is not trusted")                                                \
    X(AUDIENCE, "audience", INVALID, "the token is for another audience")                                    \
    X(EXPIRED, "expired", INVALID, "the token has expired")                                                  \
    X(ISSUED_LATER, "issued_later", INVALID, "the token was issued in the future")                           \
    X(NOT_YET, "not_yet", INVALID, "the token is not valid yet (nbf)")                                       \
    X(LIFETIME, "lifetime", INVALID, "the token lives longer than is allowed")                               \
    X(JTI_REUSED, "jti_reused", INVALID, "another token had this jti")                                       \
    X(TENANT, "tenant", SCOPE, "the token is of another tenant")                                             \
    X(PROJECT, "project", SCOPE, "the project is not in project_scope")                                      \
    X(KEYS_UNREADABLE, "keys_unreadable", UNAVAILABLE, "the key set could not be read for too long")         \
    X(JTI_FULL, "jti_full", UNAVAILABLE, "more tokens are in use than can be remembered")

#define X(name, ...) TOKEN_CLASS_##name,
enum token_class { TOKEN_CLASSES(X) TOKEN_CLASS_COUNT };
#undef X
#define X(name, ...) TOKEN_##name,
enum token_reason { TOKEN_REASONS(X) TOKEN_REASON_COUNT };
#undef X

const char *token_reason_name(enum token_reason reason); /* "key_revoked" */
const char *token_reason_text(enum token_reason reason); /* a sentence */
const char *token_reason_wire(enum token_reason reason); /* "AUTH_401_INVALID_TOKEN" */
int token_reason_status(enum token_reason reason);
bool token_reason_parse(struct str name, enum token_reason *ret_reason);

#endif
