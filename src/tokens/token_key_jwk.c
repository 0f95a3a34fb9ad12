/* Public keys as JSON Web Keys, in and out. */
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include "base/must.h"
#include "tokens/base64url.h"
#include "base/json_members.h"
#include "tokens/token_key.h"

#include "base/banned.h"

enum { EC_POINT_BYTES_MAX = 1 + 2 * 66, RSA_EXPONENT_BYTES_MAX = 4 };

static void number_free(BIGNUM **number)
{
    BN_free(*number);
}
static void arena_drop(struct arena **a)
{
    *a = arena_free(*a);
}

static void write_number(struct json_writer *w, const char *name, const void *bytes, size_t len)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    base64url_add(&text, bytes, len);
    encode_str(w, name, strbuf_str(&text));
}

static void write_rsa_part(const struct token_key *key, struct json_writer *w, const char *name,
                           const char *param)
{
    BIGNUM *number CLEANUP(number_free) = NULL;
    uint8_t bytes[TOKEN_RSA_BITS_MAX / 8];
    MUST(EVP_PKEY_get_bn_param(key->pkey, param, &number) == 1 && BN_num_bytes(number) <= (int)sizeof bytes);
    write_number(w, name, bytes, (size_t)BN_bn2bin(number, bytes));
}

static void write_point(const struct token_key *key, struct json_writer *w)
{
    const struct token_alg_facts *facts = &token_alg_facts[key->alg];
    BIGNUM *x CLEANUP(number_free) = NULL;
    BIGNUM *y CLEANUP(number_free) = NULL;
    uint8_t bytes[EC_POINT_BYTES_MAX];
    int part = (int)facts->part_bytes;
    MUST(EVP_PKEY_get_bn_param(key->pkey, OSSL_PKEY_PARAM_EC_PUB_X, &x) == 1 &&
         EVP_PKEY_get_bn_param(key->pkey, OSSL_PKEY_PARAM_EC_PUB_Y, &y) == 1);
    MUST(BN_bn2binpad(x, bytes, part) == part && BN_bn2binpad(y, bytes + part, part) == part);
    encode_text(w, "crv", facts->curve);
    write_number(w, "x", bytes, facts->part_bytes);
    write_number(w, "y", bytes + part, facts->part_bytes);
}

void token_key_write_jwk(const struct token_key *key, struct json_writer *w)
{
    const struct token_alg_facts *facts = &token_alg_facts[key->alg];
    encode_text(w, "kty", facts->kind == TOKEN_KEY_RSA ? "RSA" : "EC");
    encode_text(w, "use", "sig");
    encode_text(w, "alg", facts->name);
    if (facts->kind == TOKEN_KEY_EC) {
        write_point(key, w);
        return;
    }
    write_rsa_part(key, w, "n", OSSL_PKEY_PARAM_RSA_N);
    write_rsa_part(key, w, "e", OSSL_PKEY_PARAM_RSA_E);
}

/* --- in ---------------------------------------------------------------------------------------- */

static enum err_code refuse(struct err *err, const char *why)
{
    return err_set(err, ERR_CONFIG_INVALID, "key refused: %s", why);
}

static bool text_member(const struct json *jwk, const char *name, const char *must_be)
{
    const struct json *member = json_get(jwk, name);
    return member && member->type == JSON_STRING && str_is(member->text, must_be);
}

static bool number_member(struct arena *a, const struct json *jwk, const char *name, struct str *ret_bytes)
{
    const struct json *member = json_get(jwk, name);
    return member && member->type == JSON_STRING && base64url_decode(a, member->text, ret_bytes) &&
           ret_bytes->len > 0;
}

/* The parameters are used up. NULL when OpenSSL finds the key unsound. */
static EVP_PKEY *build(const char *kind, OSSL_PARAM_BLD *builder)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, kind, NULL);
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY *made = NULL;
    MUST(context && params);
    bool good = EVP_PKEY_fromdata_init(context) == 1 &&
                EVP_PKEY_fromdata(context, &made, EVP_PKEY_PUBLIC_KEY, params) == 1;
    EVP_PKEY_CTX_free(context);
    context = good ? EVP_PKEY_CTX_new_from_pkey(NULL, made, NULL) : NULL;
    if (good && EVP_PKEY_public_check(context) != 1) {
        EVP_PKEY_free(made);
        made = NULL;
    }
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    ERR_clear_error();
    return good ? made : NULL;
}

static enum err_code rsa_from(struct str n, struct str e, EVP_PKEY **ret, struct err *err)
{
    size_t bits = n.len * 8;
    uint64_t exponent = 0;
    if (n.ptr[0] == 0 || e.ptr[0] == 0)
        return refuse(err, "n and e have no leading zero bytes");
    for (uint8_t top = (uint8_t)n.ptr[0]; !(top & 0x80); top = (uint8_t)(top << 1))
        bits--;
    if (bits < TOKEN_RSA_BITS_MIN || bits > TOKEN_RSA_BITS_MAX)
        return refuse(err, "an RSA key has 2048 to 4096 bits");
    for (size_t i = 0; i < e.len && e.len <= RSA_EXPONENT_BYTES_MAX; i++)
        exponent = exponent << 8 | (uint8_t)e.ptr[i];
    if (exponent < TOKEN_RSA_EXPONENT_MIN || exponent % 2 == 0)
        return refuse(err, "the RSA exponent is odd, at least 65537 and at most 32 bits");
    BIGNUM *modulus CLEANUP(number_free) = BN_bin2bn((const unsigned char *)n.ptr, (int)n.len, NULL);
    BIGNUM *power CLEANUP(number_free) = BN_bin2bn((const unsigned char *)e.ptr, (int)e.len, NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    MUST(modulus && power && builder &&
         OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
         OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, power) == 1);
    *ret = build("RSA", builder);
    return *ret ? ERR_OK : refuse(err, "the RSA modulus is unsound");
}

static enum err_code ec_from(const struct token_alg_facts *facts, struct str x, struct str y, EVP_PKEY **ret,
                             struct err *err)
{
    uint8_t point[EC_POINT_BYTES_MAX] = {4}; /* uncompressed */
    if (x.len != facts->part_bytes || y.len != facts->part_bytes)
        return refuse(err, "x and y are as long as the curve is wide");
    memcpy(point + 1, x.ptr, x.len);
    memcpy(point + 1 + x.len, y.ptr, y.len);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    MUST(builder &&
         OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, facts->group, 0) == 1 &&
         OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + x.len + y.len) == 1);
    *ret = build("EC", builder);
    return *ret ? ERR_OK : refuse(err, "the point is not on the curve");
}

static enum err_code check_members(const struct json *jwk, const struct token_alg_facts *facts,
                                   struct err *err)
{
    static const char *const private_members[] = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"};
    if (!text_member(jwk, "kty", facts->kind == TOKEN_KEY_RSA ? "RSA" : "EC"))
        return refuse(err, "kty does not fit the algorithm");
    for (size_t i = 0; i < LENGTH_OF(private_members); i++)
        if (json_get(jwk, private_members[i]))
            return refuse(err, "a public key holds no private member");
    if (json_get(jwk, "alg") && !text_member(jwk, "alg", facts->name))
        return refuse(err, "alg is not the one it is listed with");
    if (json_get(jwk, "use") && !text_member(jwk, "use", "sig"))
        return refuse(err, "use must be sig");
    if (facts->kind == TOKEN_KEY_EC && !text_member(jwk, "crv", facts->curve))
        return refuse(err, "crv does not fit the algorithm");
    return ERR_OK;
}

enum err_code token_key_read_jwk(const struct json *jwk, enum token_alg alg, struct token_key *ret_key,
                                 struct err *err)
{
    const struct token_alg_facts *facts = &token_alg_facts[alg];
    struct arena *a CLEANUP(arena_drop) = arena_new(2048);
    struct str first, second;
    EVP_PKEY *made = NULL;
    bool rsa = facts->kind == TOKEN_KEY_RSA;
    if (check_members(jwk, facts, err) != ERR_OK)
        return err->code;
    if (!number_member(a, jwk, rsa ? "n" : "x", &first) || !number_member(a, jwk, rsa ? "e" : "y", &second))
        return refuse(err, rsa ? "n and e are base64url" : "x and y are base64url");
    enum err_code code =
        rsa ? rsa_from(first, second, &made, err) : ec_from(facts, first, second, &made, err);
    if (code == ERR_OK)
        *ret_key = token_key_own(alg, made);
    return code;
}
