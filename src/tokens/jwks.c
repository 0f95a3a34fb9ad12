#include "tokens/jwks.h"

#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

static void arena_drop(struct arena **a)
{
    arena_free(*a);
}

void jwks_free(struct jwks *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->keys[i].kid);
        token_key_free(&s->keys[i].key);
    }
    s->count = 0;
}

const struct token_key *jwks_find(const struct jwks *s, struct str kid)
{
    for (size_t i = 0; i < s->count; i++)
        if (str_is(kid, s->keys[i].kid))
            return &s->keys[i].key;
    return NULL;
}

static bool text_is(const struct json *jwk, const char *name, const char *text)
{
    const struct json *j = json_get(jwk, name);
    return j && j->type == JSON_STRING && str_is(j->text, text);
}

/* A key has one algorithm for life. Where none is named it is that of the curve, or RS256, which every
 * provider signs with unless told otherwise. */
static bool alg_of(const struct json *jwk, enum token_alg *ret_alg)
{
    const struct json *alg = json_get(jwk, "alg");
    if (alg)
        return alg->type == JSON_STRING && token_alg_parse(alg->text, ret_alg);
    if (text_is(jwk, "kty", "RSA")) {
        *ret_alg = TOKEN_ALG_RS256;
        return true;
    }
    for (int i = 0; i < TOKEN_ALG_COUNT; i++)
        if (token_alg_facts[i].curve && text_is(jwk, "crv", token_alg_facts[i].curve)) {
            *ret_alg = (enum token_alg)i;
            return true;
        }
    return false;
}

static bool is_private(const struct json *jwk)
{
    static const char *const members[] = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"};
    for (size_t i = 0; i < LENGTH_OF(members); i++)
        if (json_get(jwk, members[i]))
            return true;
    return false;
}

static bool kid_is_sound(const struct json *kid)
{
    return kid && kid->type == JSON_STRING && kid->text.len >= 1 && kid->text.len <= JWKS_KID_BYTES_MAX &&
           !memchr(kid->text.ptr, 0, kid->text.len);
}

/* Whether two keys of one document have the same kid, be they of use to us or not. */
static bool kid_is_repeated(const struct json *list, const struct json *jwk)
{
    const struct json *kid = json_get(jwk, "kid");
    for (const struct json *other = list->child; kid && other != jwk; other = other->next) {
        const struct json *its = json_get(other, "kid");
        if (its && its->type == JSON_STRING && kid->type == JSON_STRING && str_equal(its->text, kid->text))
            return true;
    }
    return false;
}

static void add(struct jwks *s, const struct json *jwk)
{
    const struct json *kid = json_get(jwk, "kid");
    struct jwks_key *k = &s->keys[s->count];
    struct err ignored; /* a key we cannot use says nothing about the others */
    enum token_alg alg;
    if (!kid_is_sound(kid) || (json_get(jwk, "use") && !text_is(jwk, "use", "sig")) || !alg_of(jwk, &alg) ||
        token_key_read_jwk(jwk, alg, &k->key, &ignored) != ERR_OK)
        return;
    struct strbuf text = {0};
    strbuf_add_str(&text, kid->text);
    k->kid = text.ptr;
    s->count++;
}

static enum err_code read_keys(const struct json *list, struct jwks *s, struct err *err)
{
    if (!list || list->type != JSON_ARRAY || list->count > JWKS_KEYS_MAX)
        return err_set(err, ERR_CONFIG_INVALID, "it is no JWK Set of at most %d keys", JWKS_KEYS_MAX);
    for (const struct json *jwk = list->child; jwk; jwk = jwk->next) {
        if (jwk->type != JSON_OBJECT)
            return err_set(err, ERR_CONFIG_INVALID, "a key is no object");
        if (is_private(jwk))
            return err_set(err, ERR_CONFIG_INVALID,
                           "it holds a private or symmetric key; whoever read it can sign");
        if (kid_is_repeated(list, jwk))
            return err_set(err, ERR_CONFIG_INVALID, "two keys have the same kid");
        add(s, jwk);
    }
    return s->count ? ERR_OK : err_set(err, ERR_CONFIG_INVALID, "no key in it can verify a token");
}

enum err_code jwks_read(struct str text, struct jwks *ret_set, struct err *err)
{
    struct arena *a CLEANUP(arena_drop) = arena_new(16384);
    const struct json *root;
    *ret_set = (struct jwks){0};
    if (text.len > JWKS_BYTES_MAX)
        return err_set(err, ERR_CONFIG_INVALID, "it is longer than %d bytes", JWKS_BYTES_MAX);
    if (json_parse(a, text, &root, err) != ERR_OK || root->type != JSON_OBJECT)
        return err_set(err, ERR_CONFIG_INVALID, "it is no JSON object");
    if (read_keys(json_get(root, "keys"), ret_set, err) != ERR_OK)
        jwks_free(ret_set);
    return ret_set->count ? ERR_OK : ERR_CONFIG_INVALID;
}
