/* Keys at their bounds: numbers of RSA keys in JSON and in PEM, what a JWK Set may hold. Keys that are
 * unsound are in the corpus (tests/corpus/jwt). */
#include <stdio.h>
#include <stdlib.h>

#include "case.h"
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include "base/must.h"
#include "tokens/base64url.h"
#include "tokens/jwks.h"

#include "base/banned.h"

static struct arena *a;

static int set_up(void **state)
{
    (void)state;
    a = arena_new(1 << 16);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_free(a);
    return 0;
}

static const char *coded(const void *bytes, size_t len)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    base64url_add(&text, bytes, len);
    return arena_str(a, strbuf_str(&text)).ptr;
}

static enum err_code read_rsa(const char *n, const char *e, struct err *err)
{
    struct token_key key CLEANUP(token_key_free) = {0};
    const struct json *jwk;
    struct str text = arena_printf(a, "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"}", n, e);
    assert_int_equal(json_parse(a, text, &jwk, err), ERR_OK);
    return token_key_read_jwk(jwk, TOKEN_ALG_RS256, &key, err);
}

/* The modulus of a new key, and its square where that has 4096 bits. */
static BIGNUM *make_modulus(BIGNUM **ret_square)
{
    BN_CTX *context = BN_CTX_new();
    for (;;) {
        struct token_key key CLEANUP(token_key_free) = {0};
        struct err err;
        BIGNUM *n = NULL, *square = BN_new();
        assert_int_equal(token_key_generate(TOKEN_ALG_RS256, &key, &err), ERR_OK);
        assert_int_equal(EVP_PKEY_get_bn_param(key.pkey, OSSL_PKEY_PARAM_RSA_N, &n), 1);
        assert_int_equal(BN_sqr(square, n, context), 1);
        if (BN_num_bits(square) == TOKEN_RSA_BITS_MAX) {
            *ret_square = square;
            BN_CTX_free(context);
            return n;
        }
        BN_free(n);
        BN_free(square);
    }
}

static const char *coded_number(const BIGNUM *number)
{
    uint8_t bytes[TOKEN_RSA_BITS_MAX / 8];
    return coded(bytes, (size_t)BN_bn2bin(number, bytes));
}

#define JWK_TEST(name) TEST_BETWEEN(name, set_up, tear_down)

JWK_TEST(rsa_keys_have_2048_to_4096_bits_and_a_sound_exponent)
{
    static const struct {
        uint8_t bytes[5];
        size_t len;
        bool good;
    } exponents[] = {
        {{1, 0, 1}, 3, true},        {{1, 0, 5}, 3, true}, /* a multiple of three */
        {{0xff, 0xff}, 2, false},    {{1, 0, 0}, 3, false},
        {{1, 0, 2}, 3, false},       {{0xff, 0xff, 0xff, 0xff}, 4, true},
        {{1, 0, 0, 0, 1}, 5, false}, {{0, 1, 0, 1}, 4, false},
    };
    uint8_t wrong[TOKEN_RSA_BITS_MAX / 8 + 1];
    struct err err;
    BIGNUM *square, *modulus = make_modulus(&square);
    const char *n = coded_number(modulus);
    for (size_t i = 0; i < LENGTH_OF(exponents); i++)
        assert_int_equal(read_rsa(n, coded(exponents[i].bytes, exponents[i].len), &err),
                         exponents[i].good ? ERR_OK : ERR_CONFIG_INVALID);
    assert_int_equal(read_rsa(coded_number(square), "AQAB", &err), ERR_OK);
    memset(wrong, 0xff, sizeof wrong);
    wrong[0] = 1;
    assert_int_equal(read_rsa(coded(wrong, sizeof wrong), "AQAB", &err), ERR_CONFIG_INVALID); /* 4097 bits */
    assert_non_null(strstr(err.detail, "2048 to 4096 bits"));
    wrong[0] = 0x7f;
    assert_int_equal(read_rsa(coded(wrong, 256), "AQAB", &err), ERR_CONFIG_INVALID); /* 2047 */
    assert_non_null(strstr(err.detail, "2048 to 4096 bits"));
    wrong[0] = 0;
    assert_int_equal(read_rsa(coded(wrong, 257), "AQAB", &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "leading zero"));
    assert_int_equal(read_rsa(n, "", &err), ERR_CONFIG_INVALID);
    BN_free(square);
    BN_free(modulus);
}

/* A private key with a modulus of so many bits, which can do nothing else: its other numbers are ones. */
static struct token_key rsa_of(int bits)
{
    static const char *const others[] = {OSSL_PKEY_PARAM_RSA_E,           OSSL_PKEY_PARAM_RSA_D,
                                         OSSL_PKEY_PARAM_RSA_FACTOR1,     OSSL_PKEY_PARAM_RSA_FACTOR2,
                                         OSSL_PKEY_PARAM_RSA_EXPONENT1,   OSSL_PKEY_PARAM_RSA_EXPONENT2,
                                         OSSL_PKEY_PARAM_RSA_COEFFICIENT1};
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    OSSL_PARAM_BLD *numbers = OSSL_PARAM_BLD_new();
    EVP_PKEY *pkey = NULL;
    BIGNUM *n = BN_new();
    assert_true(BN_set_bit(n, bits - 1) && BN_set_bit(n, 0));
    assert_int_equal(OSSL_PARAM_BLD_push_BN(numbers, OSSL_PKEY_PARAM_RSA_N, n), 1);
    for (size_t i = 0; i < LENGTH_OF(others); i++)
        assert_int_equal(OSSL_PARAM_BLD_push_BN(numbers, others[i], BN_value_one()), 1);
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(numbers);
    assert_int_equal(EVP_PKEY_fromdata_init(context), 1);
    assert_int_equal(EVP_PKEY_fromdata(context, &pkey, EVP_PKEY_KEYPAIR, params), 1);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(numbers);
    EVP_PKEY_CTX_free(context);
    BN_free(n);
    return token_key_own(TOKEN_ALG_RS256, pkey);
}

TEST(private_rsa_keys_have_2048_to_4096_bits_too)
{
    static const struct {
        int bits;
        bool good;
    } rows[] = {{2047, false}, {2048, true}, {4096, true}, {4097, false}};
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        struct token_key key CLEANUP(token_key_free) = rsa_of(rows[i].bits);
        struct token_key read CLEANUP(token_key_free) = {0};
        struct strbuf pem CLEANUP(strbuf_free) = {0};
        struct err err;
        token_key_write_pem(&key, STR_ABSENT, &pem);
        assert_int_equal(token_key_read_pem(strbuf_str(&pem), STR_ABSENT, TOKEN_ALG_RS256, &read, &err),
                         rows[i].good ? ERR_OK : ERR_CONFIG_INVALID);
        assert_int_equal(token_key_read_pem(strbuf_str(&pem), STR_ABSENT, TOKEN_ALG_ES256, &read, &err),
                         ERR_CONFIG_INVALID);
    }
}

/* {"kid":KID, the public members of a new key} with some members left out or changed. */
static void add_key(struct strbuf *out, enum token_alg alg, const char *kid, const char *was, const char *is)
{
    struct token_key key CLEANUP(token_key_free) = {0};
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    struct err err;
    assert_int_equal(token_key_generate(alg, &key, &err), ERR_OK);
    jw_start(&w, &text);
    jw_object(&w);
    jw_key(&w, "kid");
    jw_text(&w, kid);
    token_key_write_jwk(&key, &w);
    jw_object_end(&w);
    strbuf_add_text(out, out->len ? "," : "{\"keys\":[");
    const char *at = was ? strstr(text.ptr, was) : NULL;
    assert_true(at || !was);
    if (at)
        strbuf_addf(out, "%.*s%s%s", (int)(at - text.ptr), text.ptr, is, at + strlen(was));
    else
        strbuf_add_str(out, strbuf_str(&text));
}

JWK_TEST(a_set_of_keys_takes_those_that_are_for_signatures_here)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct jwks s;
    struct err err;
    char longest[JWKS_KID_BYTES_MAX + 2];
    memset(longest, 'k', sizeof longest);
    longest[JWKS_KID_BYTES_MAX + 1] = 0;
    add_key(&text, TOKEN_ALG_ES256, "no-alg-256", "\"alg\":\"ES256\",", "");
    add_key(&text, TOKEN_ALG_ES384, "no-alg-384", "\"alg\":\"ES384\",", "");
    add_key(&text, TOKEN_ALG_ES512, "no-alg-521", "\"alg\":\"ES512\",", "");
    add_key(&text, TOKEN_ALG_RS256, "no-alg-rsa", "\"alg\":\"RS256\",", "");
    add_key(&text, TOKEN_ALG_RS256, "rsa-512", "RS256", "RS512");
    add_key(&text, TOKEN_ALG_ES256, "no-use", "\"use\":\"sig\",", "");
    add_key(&text, TOKEN_ALG_ES256, "x", NULL, NULL);
    add_key(&text, TOKEN_ALG_ES256, longest + 1, NULL, NULL);
    add_key(&text, TOKEN_ALG_ES256, longest, NULL, NULL);
    add_key(&text, TOKEN_ALG_ES256, "", NULL, NULL);
    add_key(&text, TOKEN_ALG_ES256, "nul", "\"nul\"", "\"n\\u0000l\"");
    add_key(&text, TOKEN_ALG_ES256, "number", "\"number\"", "7");
    add_key(&text, TOKEN_ALG_ES256, "number", "\"number\"", "7"); /* no kid at all, twice */
    add_key(&text, TOKEN_ALG_ES256, "enc", "\"sig\"", "\"enc\"");
    add_key(&text, TOKEN_ALG_ES256, "use-7", "\"sig\"", "7");
    add_key(&text, TOKEN_ALG_ES256, "alg-7", "\"ES256\"", "7");
    add_key(&text, TOKEN_ALG_ES256, "other-alg", "ES256", "ES384");
    add_key(&text, TOKEN_ALG_ES256, "other-crv", "P-256", "P-255");
    strbuf_add_text(&text, "]}");
    assert_int_equal(jwks_read(strbuf_str(&text), &s, &err), ERR_OK);
    static const struct {
        const char *kid;
        enum token_alg alg;
    } taken[] = {{"no-alg-256", TOKEN_ALG_ES256}, {"no-alg-384", TOKEN_ALG_ES384},
                 {"no-alg-521", TOKEN_ALG_ES512}, {"no-alg-rsa", TOKEN_ALG_RS256},
                 {"rsa-512", TOKEN_ALG_RS512},    {"no-use", TOKEN_ALG_ES256},
                 {"x", TOKEN_ALG_ES256}};
    assert_int_equal(s.count, LENGTH_OF(taken) + 1);
    for (size_t i = 0; i < LENGTH_OF(taken); i++)
        assert_int_equal(jwks_find(&s, str_of(taken[i].kid))->alg, taken[i].alg);
    assert_non_null(jwks_find(&s, str_of(longest + 1)));
    jwks_free(&s);
    assert_int_equal(s.count, 0);
}

JWK_TEST(a_set_of_keys_is_taken_up_to_its_bounds)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct jwks s;
    struct err err;
    add_key(&text, TOKEN_ALG_ES256, "one", NULL, NULL);
    for (int i = 1; i < JWKS_KEYS_MAX; i++)
        strbuf_add_text(&text, ",{}");
    strbuf_add_text(&text, "]}");
    while (text.len < JWKS_BYTES_MAX)
        strbuf_add_char(&text, ' ');
    assert_int_equal(jwks_read(strbuf_str(&text), &s, &err), ERR_OK);
    assert_int_equal(s.count, 1);
    jwks_free(&s);
    strbuf_add_char(&text, ' ');
    assert_int_equal(jwks_read(strbuf_str(&text), &s, &err), ERR_CONFIG_INVALID);
}

/* Each of them gives away what signs, or is it. */
JWK_TEST(every_private_member_is_seen)
{
    static const char *const members[] = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"};
    for (size_t i = 0; i < LENGTH_OF(members); i++) {
        struct strbuf text CLEANUP(strbuf_free) = {0};
        struct token_key key CLEANUP(token_key_free) = {0};
        struct jwks s;
        struct err err;
        const struct json *root;
        add_key(&text, TOKEN_ALG_ES256, "one", "{", arena_printf(a, "{\"%s\":1,", members[i]).ptr);
        strbuf_add_text(&text, "]}");
        assert_int_equal(jwks_read(strbuf_str(&text), &s, &err), ERR_CONFIG_INVALID);
        assert_non_null(strstr(err.detail, "private or symmetric"));
        assert_int_equal(json_parse(a, arena_str(a, strbuf_str(&text)), &root, &err), ERR_OK);
        assert_int_equal(token_key_read_jwk(json_get(root, "keys")->child, TOKEN_ALG_ES256, &key, &err),
                         ERR_CONFIG_INVALID);
        assert_non_null(strstr(err.detail, "private member"));
    }
}
