/* Tokens, their parts and their keys. The first byte chooses what the rest is:
 *
 *   t  a token: nobody has the key, which is made anew in each process, so it is refused
 *   p  a payload that we sign: what passes says what it has to, is good only in its time and only unchanged
 *   h  a header that we sign: what passes names our key and its algorithm
 *   b  base64url: what decodes is written back as it was
 *   k  a JWK: what is taken is written back as the same key
 *   m  a manifest: what is taken is written back as the same text */
#include <stdlib.h>

#include "base/must.h"
#include "tokens/base64url.h"
#include "tokens/token_verify.h"

#include "base/banned.h"

enum { NOW = 1800000000 };

static struct token_key key;
static struct token_verifier verifier;

static void set_up(void)
{
    struct key_set s = {.environment = "dev"};
    const struct key_rules rules = {KEY_OVERLAP_SECONDS_MIN, KEY_HISTORY_SECONDS_MIN};
    const struct key_record *made;
    struct err err;
    MUST(token_key_generate(TOKEN_ALG_ES256, &key, &err) == ERR_OK);
    MUST(key_set_add(&s, &key, STR("fuzz"), &rules, true, NOW - 1000, &made, &err) == ERR_OK);
    memcpy(s.keys[0].kid, "k", 2);
    verifier = (struct token_verifier){.keys = key_ring_of(&s),
                                       .blocklist = blocklist_new(4),
                                       .known = known_tokens_new(),
                                       .policy = {.issuer = STR("weir-test"),
                                                  .audiences = STR("weir,weir-engine"),
                                                  .required = TOKEN_FOR_ANY,
                                                  .skew_seconds = 120,
                                                  .ttl_seconds_max = 28800}};
    MUST(blocklist_add(verifier.blocklist, BLOCK_JTI, STR("blocked"), 0, NOW + 99999, NOW, &err) == ERR_OK);
    MUST(token_agents_parse(STR("agent,helper=3600"), &verifier.policy, &err) == ERR_OK);
}

static enum token_reason verify(struct str token, int64_t now, struct arena *a, struct token_verdict *verdict)
{
    verifier.jtis = jti_table_new(2);
    enum token_reason reason = token_verify(&verifier, token, now, a, verdict);
    MUST(verdict->reason == reason && token_reason_name(reason)[0] && token_reason_status(reason) >= 200);
    if (reason == TOKEN_OK)
        MUST(token_verify(&verifier, token, now, a, verdict) == TOKEN_OK); /* the same one again */
    verifier.jtis = jti_table_free(verifier.jtis);
    return reason;
}

static void sign_parts(struct str header, struct str payload, struct strbuf *out)
{
    uint8_t signature[TOKEN_SIGNATURE_BYTES_MAX];
    size_t len;
    base64url_add(out, header.ptr, header.len);
    strbuf_add_char(out, '.');
    base64url_add(out, payload.ptr, payload.len);
    MUST(token_key_sign(&key, strbuf_str(out), signature, &len));
    strbuf_add_char(out, '.');
    base64url_add(out, signature, len);
}

static void check_payload(struct str payload, struct arena *a)
{
    struct strbuf token = {0};
    struct token_verdict v, other;
    MUST(jws_sign(&key, STR("k"), payload, &token));
    if (verify(strbuf_str(&token), NOW, a, &v) == TOKEN_OK) {
        const struct token_claims *c = &v.claims;
        int64_t life = c->expires_at - c->issued_at;
        MUST(c->subject.len && c->jti.len && str_is(c->issuer, "weir-test") && c->audience.len);
        MUST(c->expires_at > NOW && c->issued_at <= NOW + 120 && c->not_before <= NOW + 60);
        MUST(life > 0 && life <= 28800 && !claims_has_role(c, STR("System")));
        MUST(!claims_has_role(c, STR("agent")) || life <= 14400);
        MUST(!claims_has_role(c, STR("helper")) || life <= 3600);
        MUST(verify(strbuf_str(&token), c->expires_at, a, &other) == TOKEN_EXPIRED);
        token.ptr[token.len - 2] ^= 1; /* another letter or none: another signature or none */
        MUST(verify(strbuf_str(&token), NOW, a, &other) != TOKEN_OK);
    }
    strbuf_free(&token);
}

static void check_header(struct str header, struct arena *a)
{
    static const char good[] = "{\"iss\":\"weir-test\",\"sub\":\"ada\",\"aud\":\"weir\",\"iat\":1799999990,"
                               "\"exp\":1800003600,\"jti\":\"j\",\"role\":\"r\",\"project_scope\":\"*\"}";
    struct strbuf token = {0};
    struct token_verdict v;
    const struct json *root;
    struct err err;
    sign_parts(header, STR(good), &token);
    if (verify(strbuf_str(&token), NOW, a, &v) == TOKEN_OK) {
        MUST(json_parse(a, header, &root, &err) == ERR_OK);
        MUST(str_is(json_get(root, "alg")->text, "ES256") && str_is(json_get(root, "kid")->text, "k"));
        MUST(!json_get(root, "crit") && !json_get(root, "b64") && !json_get(root, "zip"));
    }
    strbuf_free(&token);
}

static void check_base64url(struct str text, struct arena *a)
{
    struct strbuf again = {0};
    struct str bytes;
    if (base64url_decode(a, text, &bytes)) {
        base64url_add(&again, bytes.ptr, bytes.len);
        MUST(str_equal(strbuf_str(&again), text));
    }
    strbuf_free(&again);
}

static void check_jwk(struct str text, struct arena *a)
{
    const struct json *root, *written;
    struct err err;
    if (json_parse(a, text, &root, &err) != ERR_OK)
        return;
    for (int alg = 0; alg < TOKEN_ALG_COUNT; alg++) {
        struct token_key read = {0}, again = {0};
        struct strbuf out = {0};
        struct json_writer w;
        if (token_key_read_jwk(root, (enum token_alg)alg, &read, &err) != ERR_OK)
            continue;
        jw_start(&w, &out);
        jw_object(&w);
        token_key_write_jwk(&read, &w);
        jw_object_end(&w);
        MUST(json_parse(a, strbuf_str(&out), &written, &err) == ERR_OK);
        /* OpenSSL looks for factors of an RSA modulus at random: an unsound one may be found out later. */
        bool taken = token_key_read_jwk(written, (enum token_alg)alg, &again, &err) == ERR_OK;
        MUST(taken || token_alg_facts[alg].kind == TOKEN_KEY_RSA);
        MUST(!taken || token_key_same_public(&read, &again));
        token_key_free(&read);
        token_key_free(&again);
        strbuf_free(&out);
    }
}

static void check_manifest(struct str text)
{
    struct key_set s, again;
    struct strbuf first = {0}, second = {0};
    struct err err;
    if (key_set_read(text, "dev", &s, &err) != ERR_OK)
        return;
    MUST(!key_set_broken_rule(&s));
    key_set_write(&s, &first);
    MUST(key_set_read(strbuf_str(&first), "dev", &again, &err) == ERR_OK);
    key_set_write(&again, &second);
    MUST(str_equal(strbuf_str(&first), strbuf_str(&second)));
    key_set_free(&s);
    key_set_free(&again);
    strbuf_free(&first);
    strbuf_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct token_verdict verdict;
    if (!key.pkey)
        set_up();
    if (!size)
        return 0;
    struct arena *a = arena_new(4096);
    struct str rest = {(const char *)data + 1, size - 1};
    switch (data[0]) {
    case 't':
        MUST(verify(rest, NOW, a, &verdict) != TOKEN_OK);
        break;
    case 'p':
        check_payload(rest, a);
        break;
    case 'h':
        check_header(rest, a);
        break;
    case 'b':
        check_base64url(rest, a);
        break;
    case 'k':
        check_jwk(rest, a);
        break;
    case 'm':
        check_manifest(rest);
        break;
    }
    arena_free(a);
    return 0;
}
