#include "tokens/jws.h"

#include "base/json_members.h"
#include "base/must.h"
#include "tokens/base64url.h"

#include "base/banned.h"

enum token_reason jws_split(struct str token, struct jws *ret_jws)
{
    struct str rest = token;
    if (!token.len)
        return TOKEN_ABSENT;
    if (token.len > TOKEN_BYTES_MAX)
        return TOKEN_TOO_LONG;
    struct str header = str_cut(&rest, '.');
    struct str payload = str_cut(&rest, '.');
    if (!header.len || !payload.len || !rest.len || memchr(rest.ptr, '.', rest.len))
        return TOKEN_SHAPE;
    *ret_jws = (struct jws){header, payload, rest, {token.ptr, header.len + 1 + payload.len}};
    return TOKEN_OK;
}

const struct json *jws_object(struct arena *a, struct str part, enum token_reason no_object,
                              enum token_reason *ret_reason)
{
    struct str text;
    const struct json *root;
    struct err err;
    if (!base64url_decode(a, part, &text)) {
        *ret_reason = TOKEN_SHAPE;
        return NULL;
    }
    if (json_parse(a, text, &root, &err) != ERR_OK || root->type != JSON_OBJECT) {
        *ret_reason = no_object;
        return NULL;
    }
    return root;
}

/* A media type may lack its "application/" and counts in any case (RFC 7515, 4.1.9). */
static bool typ_is_ours(const struct json *typ)
{
    if (!typ)
        return true;
    if (typ->type != JSON_STRING)
        return false;
    struct str name = typ->text, slash = typ->text;
    if (str_equal_nocase(str_cut(&slash, '/'), STR("application")))
        name = slash;
    return str_equal_nocase(name, STR("at+jwt")) || str_equal_nocase(name, STR("JWT"));
}

enum token_reason jws_read_header(struct arena *a, struct str header, struct jws_header *ret_header)
{
    static const char *const extensions[] = {"crit", "b64", "zip", "enc"};
    enum token_reason reason = TOKEN_OK;
    const struct json *root = jws_object(a, header, TOKEN_HEADER, &reason);
    if (!root)
        return reason;
    const struct json *alg = json_get(root, "alg"), *kid = json_get(root, "kid");
    if (!alg || alg->type != JSON_STRING || !token_alg_parse(alg->text, &ret_header->alg))
        return TOKEN_ALG;
    for (size_t i = 0; i < LENGTH_OF(extensions); i++)
        if (json_get(root, extensions[i]))
            return TOKEN_CRIT;
    if (!typ_is_ours(json_get(root, "typ")))
        return TOKEN_TYP;
    if (!kid || kid->type != JSON_STRING || !kid->text.len)
        return TOKEN_KID;
    ret_header->kid = kid->text;
    return TOKEN_OK;
}

bool jws_sign(const struct token_key *key, struct str kid, struct str payload, struct strbuf *out)
{
    struct strbuf header CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    uint8_t signature[TOKEN_SIGNATURE_BYTES_MAX];
    size_t start = out->len, len;
    jw_start(&w, &header);
    jw_object(&w);
    encode_text(&w, "alg", token_alg_facts[key->alg].name);
    encode_str(&w, "kid", kid);
    encode_text(&w, "typ", "at+jwt");
    jw_object_end(&w);
    base64url_add(out, header.ptr, header.len);
    strbuf_add_char(out, '.');
    base64url_add(out, payload.ptr, payload.len);
    if (!token_key_sign(key, (struct str){out->ptr + start, out->len - start}, signature, &len))
        return false;
    strbuf_add_char(out, '.');
    base64url_add(out, signature, len);
    return true;
}
