/* tokens/token_alg.h - the algorithms a token may be signed with: one list, six lines, no others.
 *
 * A key has one algorithm for life, so a token cannot choose how it is checked. */
#ifndef WEIR_TOKENS_TOKEN_ALG_H
#define WEIR_TOKENS_TOKEN_ALG_H

#include <stdbool.h>

#include "base/str.h"

enum { TOKEN_RSA_BITS_MIN = 2048, TOKEN_RSA_BITS_MAX = 4096, TOKEN_RSA_EXPONENT_MIN = 65537 };

/* X(name, kind of key, digest, curve of JWK, OpenSSL's name of it, bytes of a coordinate and of r and s) */
#define TOKEN_ALGS(X)                                                                                        \
    X(RS256, RSA, "SHA256", NULL, NULL, 0)                                                                   \
    X(RS384, RSA, "SHA384", NULL, NULL, 0)                                                                   \
    X(RS512, RSA, "SHA512", NULL, NULL, 0)                                                                   \
    X(ES256, EC, "SHA256", "P-256", "prime256v1", 32)                                                        \
    X(ES384, EC, "SHA384", "P-384", "secp384r1", 48)                                                         \
    X(ES512, EC, "SHA512", "P-521", "secp521r1", 66)

#define X(name, ...) TOKEN_ALG_##name,
enum token_alg { TOKEN_ALGS(X) TOKEN_ALG_COUNT };
#undef X

enum token_key_kind { TOKEN_KEY_RSA, TOKEN_KEY_EC };

struct token_alg_facts {
    const char *name;
    enum token_key_kind kind;
    const char *digest;
    const char *curve, *group; /* EC only */
    size_t part_bytes;         /* EC only */
};
extern const struct token_alg_facts token_alg_facts[TOKEN_ALG_COUNT];

/* Exact: letters of another case name no algorithm. */
bool token_alg_parse(struct str name, enum token_alg *ret_alg);

#endif
