/* tokens/token_key.h - a key that signs or checks tokens, with the one algorithm it is for.
 *
 * Owns: an OpenSSL key, counted: token_key_copy shares it, every copy is freed. Counted by ourselves, since
 * the thread sanitizer cannot look into OpenSSL.
 * A key that gets here is sound: RSA of 2048 to 4096 bits with an exponent of at least 65537, or a point on
 * the curve of its algorithm. Nothing prompts, nothing logs; private parts never leave but by
 * token_key_write_pem.
 * Fails: ERR_CONFIG_INVALID with a sentence for a key that is refused. */
#ifndef WEIR_TOKENS_TOKEN_KEY_H
#define WEIR_TOKENS_TOKEN_KEY_H

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "tokens/token_alg.h"

struct evp_pkey_st; /* OpenSSL's EVP_PKEY */

struct token_key {
    enum token_alg alg;
    struct evp_pkey_st *pkey;  /* NULL: none */
    struct token_key_box *box; /* shared by all copies of the key */
};

enum { TOKEN_SIGNATURE_BYTES_MAX = TOKEN_RSA_BITS_MAX / 8, TOKEN_PEM_BYTES_MAX = 16384 };

MUST_CHECK enum err_code token_key_generate(enum token_alg alg, struct token_key *ret_key, struct err *err);
enum { TOKEN_KEY_PRINT_BYTES = 32 };
/* A digest of algorithm and public key: equal for equal keys only. */
const uint8_t *token_key_print(const struct token_key *key);
struct token_key token_key_own(enum token_alg alg, struct evp_pkey_st *pkey); /* takes it over */
struct token_key token_key_copy(const struct token_key *key);
void token_key_free(struct token_key *key); /* none is fine; leaves none behind */
bool token_key_same_public(const struct token_key *a, const struct token_key *b);

/* The public part as members of an open JSON object: kty, use, alg and what belongs to kty (RFC 7517). */
void token_key_write_jwk(const struct token_key *key, struct json_writer *w);
/* A public key for `alg`. Private members are refused: a key that lies here in clear is a leak. */
MUST_CHECK enum err_code token_key_read_jwk(const struct json *jwk, enum token_alg alg,
                                            struct token_key *ret_key, struct err *err);

/* PKCS #8, encrypted with AES-256 when a passphrase is given (absent: in clear). */
void token_key_write_pem(const struct token_key *key, struct str passphrase, struct strbuf *out);
MUST_CHECK enum err_code token_key_read_pem(struct str pem, struct str passphrase, enum token_alg alg,
                                            struct token_key *ret_key, struct err *err);

/* The JWS signature: PKCS #1 v1.5 for RSA, r and s side by side for ECDSA. False: the key is public. */
bool token_key_sign(const struct token_key *key, struct str input, uint8_t out[TOKEN_SIGNATURE_BYTES_MAX],
                    size_t *ret_len);
bool token_key_verify(const struct token_key *key, struct str input, struct str signature);

#endif
