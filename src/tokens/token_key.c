/* Keys: made, shared, used. */
#include "tokens/token_key.h"

#include <openssl/bn.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/must.h"
#include "tokens/token_digest.h"

#include "base/banned.h"

enum { RSA_BITS_MADE = 2048, DER_BYTES_MAX = 160 };
_Static_assert(DER_BYTES_MAX >= 2 * (66 + 3) + 4, "the longest ECDSA signature fits");

struct token_key_box {
    _Atomic uint32_t shares;
    uint8_t print[TOKEN_KEY_PRINT_BYTES];
};

static void context_free(EVP_MD_CTX **context)
{
    EVP_MD_CTX_free(*context);
}
static void pair_free(ECDSA_SIG **pair)
{
    ECDSA_SIG_free(*pair);
}

enum err_code token_key_generate(enum token_alg alg, struct token_key *ret_key, struct err *err)
{
    const struct token_alg_facts *facts = &token_alg_facts[alg];
    EVP_PKEY *made = facts->kind == TOKEN_KEY_RSA
                         ? EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)RSA_BITS_MADE)
                         : EVP_PKEY_Q_keygen(NULL, NULL, "EC", facts->group);
    ERR_clear_error();
    if (!made)
        return err_set(err, ERR_INTERNAL, "OpenSSL makes no key for %s", facts->name);
    *ret_key = token_key_own(alg, made);
    return ERR_OK;
}

static void print_key(EVP_PKEY *pkey, enum token_alg alg, uint8_t out[TOKEN_KEY_PRINT_BYTES])
{
    uint8_t *der = NULL;
    int len = i2d_PUBKEY(pkey, &der);
    MUST(len > 0);
    token_digest(token_alg_facts[alg].name, (struct str){(const char *)der, (size_t)len}, out);
    OPENSSL_free(der);
}

struct token_key token_key_own(enum token_alg alg, EVP_PKEY *pkey)
{
    struct token_key key = {alg, pkey, must_alloc(sizeof *key.box)};
    atomic_init(&key.box->shares, 1);
    print_key(pkey, alg, key.box->print);
    return key;
}

const uint8_t *token_key_print(const struct token_key *key)
{
    return key->box->print;
}

struct token_key token_key_copy(const struct token_key *key)
{
    if (key->box)
        atomic_fetch_add(&key->box->shares, 1);
    return *key;
}

void token_key_free(struct token_key *key)
{
    if (key->box && atomic_fetch_sub(&key->box->shares, 1) == 1) {
        EVP_PKEY_free(key->pkey);
        free(key->box);
    }
    *key = (struct token_key){.alg = key->alg};
}

bool token_key_same_public(const struct token_key *a, const struct token_key *b)
{
    return a->alg == b->alg && EVP_PKEY_eq(a->pkey, b->pkey) == 1;
}

/* DER to r and s, each as wide as the curve. */
static bool pair_to_raw(const uint8_t *der, size_t der_len, size_t part, uint8_t *out)
{
    ECDSA_SIG *pair CLEANUP(pair_free) = d2i_ECDSA_SIG(NULL, &der, (long)der_len);
    return pair && BN_bn2binpad(ECDSA_SIG_get0_r(pair), out, (int)part) == (int)part &&
           BN_bn2binpad(ECDSA_SIG_get0_s(pair), out + part, (int)part) == (int)part;
}

static bool raw_to_der(struct str raw, size_t part, uint8_t der[DER_BYTES_MAX], size_t *ret_len)
{
    const uint8_t *bytes = (const uint8_t *)raw.ptr;
    uint8_t *end = der;
    if (raw.len != 2 * part)
        return false;
    ECDSA_SIG *pair CLEANUP(pair_free) = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, (int)part, NULL), *s = BN_bin2bn(bytes + part, (int)part, NULL);
    MUST(pair && r && s && ECDSA_SIG_set0(pair, r, s) == 1);
    int len = i2d_ECDSA_SIG(pair, NULL);
    if (len <= 0 || len > DER_BYTES_MAX)
        return false;
    *ret_len = (size_t)i2d_ECDSA_SIG(pair, &end);
    return true;
}

/* RSA says its padding, so that a key of another kind of RSA is no surprise. */
static bool use_pkcs1(const struct token_alg_facts *facts, EVP_PKEY_CTX *context)
{
    return facts->kind != TOKEN_KEY_RSA || EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1;
}

bool token_key_sign(const struct token_key *key, struct str input, uint8_t out[TOKEN_SIGNATURE_BYTES_MAX],
                    size_t *ret_len)
{
    const struct token_alg_facts *facts = &token_alg_facts[key->alg];
    EVP_MD_CTX *context CLEANUP(context_free) = EVP_MD_CTX_new();
    EVP_PKEY_CTX *how = NULL;
    uint8_t der[TOKEN_SIGNATURE_BYTES_MAX];
    size_t len = sizeof der;
    MUST(context);
    bool good = EVP_DigestSignInit_ex(context, &how, facts->digest, NULL, NULL, key->pkey, NULL) == 1 &&
                use_pkcs1(facts, how) &&
                EVP_DigestSign(context, der, &len, (const unsigned char *)input.ptr, input.len) == 1;
    ERR_clear_error();
    if (!good)
        return false;
    if (facts->kind == TOKEN_KEY_EC) {
        *ret_len = 2 * facts->part_bytes;
        return pair_to_raw(der, len, facts->part_bytes, out);
    }
    memcpy(out, der, len);
    *ret_len = len;
    return true;
}

bool token_key_verify(const struct token_key *key, struct str input, struct str signature)
{
    const struct token_alg_facts *facts = &token_alg_facts[key->alg];
    EVP_MD_CTX *context CLEANUP(context_free) = EVP_MD_CTX_new();
    EVP_PKEY_CTX *how = NULL;
    uint8_t der[DER_BYTES_MAX];
    const uint8_t *given = (const uint8_t *)signature.ptr;
    size_t given_len = signature.len;
    MUST(context);
    if (facts->kind == TOKEN_KEY_EC) {
        if (!raw_to_der(signature, facts->part_bytes, der, &given_len))
            return false;
        given = der;
    } else if (given_len != (size_t)EVP_PKEY_get_size(key->pkey)) {
        return false;
    }
    bool good = EVP_DigestVerifyInit_ex(context, &how, facts->digest, NULL, NULL, key->pkey, NULL) == 1 &&
                use_pkcs1(facts, how) &&
                EVP_DigestVerify(context, given, given_len, (const unsigned char *)input.ptr, input.len) == 1;
    ERR_clear_error();
    return good;
}
