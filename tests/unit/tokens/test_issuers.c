/* Outside issuers: their file, their keys, where their claims are, and when keys are fetched. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "tokens/jws.h"
#include "tokens/token_verify.h"

#include "base/banned.h"

enum { NOW = 1800000000 };

/* {"kid":KID, the public members} with more members behind them. */
static void add_jwk(struct strbuf *out, enum token_alg alg, const char *kid, const char *more)
{
    struct token_key key CLEANUP(token_key_free) = {0};
    struct json_writer w;
    struct err err;
    assert_int_equal(token_key_generate(alg, &key, &err), ERR_OK);
    jw_start(&w, out);
    jw_object(&w);
    jw_key(&w, "kid");
    jw_text(&w, kid);
    token_key_write_jwk(&key, &w);
    jw_object_end(&w);
    if (more) {
        out->len--;
        strbuf_addf(out, ",%s}", more);
    }
}

TEST(keys_that_cannot_verify_are_left_out)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct jwks s;
    struct err err;
    strbuf_add_text(&text,
                    "{\"other\":1,\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AA\",\"kid\":\"a\"},"
                    "{\"kty\":\"RSA\",\"kid\":\"e\",\"use\":\"enc\",\"alg\":\"RSA-OAEP\",\"n\":\"AQAB\"},"
                    "{\"kty\":\"RSA\",\"kid\":\"weak\",\"n\":\"AQAB\",\"e\":\"AQAB\"},{\"kty\":7},{},");
    add_jwk(&text, TOKEN_ALG_ES256, "good", "\"x5c\":[\"zzz\"],\"key_ops\":[\"verify\"]");
    strbuf_add_char(&text, ',');
    add_jwk(&text, TOKEN_ALG_RS256, "rsa", NULL);
    strbuf_add_text(&text, "]}");
    assert_int_equal(jwks_read(strbuf_str(&text), &s, &err), ERR_OK);
    assert_int_equal(s.count, 2);
    assert_non_null(jwks_find(&s, STR("good")));
    assert_int_equal(jwks_find(&s, STR("rsa"))->alg, TOKEN_ALG_RS256);
    assert_null(jwks_find(&s, STR("weak")));
    assert_null(jwks_find(&s, STR("")));
    jwks_free(&s);
}

static void refused(struct str text, const char *word)
{
    struct jwks s;
    struct err err;
    assert_int_equal(jwks_read(text, &s, &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, word));
    assert_int_equal(s.count, 0);
}

TEST(a_hostile_set_is_refused_as_a_whole)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    static const char *const junk[] = {
        "", "[]", "{", "{\"keys\":{}}", "{\"keys\":[7]}", "{\"keys\":[],\"keys\":[]}"};
    for (size_t i = 0; i < LENGTH_OF(junk); i++)
        refused(str_of(junk[i]), "");
    refused(STR("{\"keys\":[]}"), "no key in it");

    const char *const more[] = {"\"d\":\"AA\"", "\"k\":\"AA\"", "\"oth\":[]"};
    for (size_t i = 0; i < LENGTH_OF(more); i++) {
        strbuf_clear(&text);
        strbuf_add_text(&text, "{\"keys\":[");
        add_jwk(&text, TOKEN_ALG_ES256, "one", NULL);
        strbuf_add_char(&text, ',');
        add_jwk(&text, TOKEN_ALG_ES256, "two", more[i]);
        strbuf_add_text(&text, "]}");
        refused(strbuf_str(&text), "private");
    }
    strbuf_clear(&text);
    strbuf_add_text(&text, "{\"keys\":[{\"kid\":\"same\"},");
    add_jwk(&text, TOKEN_ALG_ES256, "same", NULL);
    strbuf_add_text(&text, "]}");
    refused(strbuf_str(&text), "same kid");

    strbuf_clear(&text);
    strbuf_add_text(&text, "{\"keys\":[{}");
    for (int i = 0; i < JWKS_KEYS_MAX; i++)
        strbuf_add_text(&text, ",{}");
    strbuf_add_text(&text, "]}");
    refused(strbuf_str(&text), "at most 64 keys");

    strbuf_clear(&text);
    for (int i = 0; i < 200; i++)
        strbuf_add_text(&text, "{\"keys\":[");
    refused(strbuf_str(&text), "no JSON");
    while (text.len <= JWKS_BYTES_MAX)
        strbuf_add_char(&text, ' ');
    refused(strbuf_str(&text), "longer than");
}

ARENA_TEST(a_path_leads_through_objects_and_names_with_dots, a)
{
    static const struct {
        const char *path, *found;
    } cases[] = {
        {"a", "{\"b\":{\"c\":1},\"b.c\":2}"},
        {"a.b", "{\"c\":1}"},
        {"a.b.c", "2"},
        {"x.y", "3"},
        {"x.y.z", "4"},
        {"https://h.example/r", "5"},
        {"a.q", NULL},
        {"n.b", NULL},
        {"x", NULL},
        {"l.0", NULL},
        {"", NULL},
    };
    const struct json *payload;
    struct err err;
    assert_int_equal(
        json_parse(a,
                   STR("{\"a\":{\"b\":{\"c\":1},\"b.c\":2},\"x.y\":3,\"x.y.z\":4,\"n\":7,\"l\":[1],"
                       "\"https://h.example/r\":5}"),
                   &payload, &err),
        ERR_OK);
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        const struct json *j = claim_at(payload, str_of(cases[i].path));
        if (cases[i].found)
            assert_true(j && str_is(j->source, cases[i].found));
        else
            assert_null(j);
    }
}

static enum token_reason read_outside(struct arena *a, const char *role, const char *scope,
                                      struct token_claims *c)
{
    static const struct claim_paths paths = {{"r", 1}, {"t", 1}, {"p", 1}};
    struct strbuf text CLEANUP(strbuf_free) = {0};
    const struct json *payload;
    const char *claim;
    struct err err;
    strbuf_addf(
        &text,
        "{\"iss\":\"i\",\"sub\":\"s\",\"aud\":\"a\",\"iat\":1,\"exp\":2,\"t\":\"acme\",\"role\":\"Admin\","
        "\"r\":%s,\"p\":%s}",
        role, scope);
    assert_int_equal(json_parse(a, arena_str(a, strbuf_str(&text)), &payload, &err), ERR_OK);
    return claims_read_outside(a, payload, &paths, STR("Admin,Engineer,System"), c, &claim);
}

ARENA_TEST(roles_that_mean_nothing_here_and_system_are_dropped, a)
{
    struct token_claims c;
    struct strbuf many CLEANUP(strbuf_free) = {0};
    assert_int_equal(read_outside(a, "[\"x\",\"Admin\",7,\"admin\",\"System\",\"Admin\"]", "\"*\"", &c),
                     TOKEN_OK);
    assert_true(c.role_count == 1 && str_is(c.roles[0], "Admin") && c.system_dropped && c.every_project);
    assert_int_equal(read_outside(a, "\"Engineer\"", "[\"a\",\"b\"]", &c), TOKEN_OK);
    assert_true(c.role_count == 1 && str_is(c.roles[0], "Engineer") && !c.system_dropped);
    assert_true(c.project_count == 2 && !c.every_project && !c.jti.ptr);
    assert_int_equal(read_outside(a, "[]", "\"one\"", &c), TOKEN_OK);
    assert_true(c.role_count == 0 && c.project_count == 1 && !c.every_project);
    assert_int_equal(read_outside(a, "{}", "\"*\"", &c), TOKEN_CLAIM_SHAPE);
    assert_int_equal(read_outside(a, "[]", "7", &c), TOKEN_CLAIM_SHAPE);
    strbuf_add_text(&many, "[\"x0\"");
    for (int i = 1; i < 300; i++)
        strbuf_addf(&many, ",\"x%d\"", i);
    strbuf_add_text(&many, ",\"Admin\"]");
    assert_int_equal(read_outside(a, many.ptr, "\"*\"", &c), TOKEN_OK);
    assert_true(c.role_count == 1); /* a long list of a provider's own roles hides none of ours */
}

/* --- when keys are fetched ------------------------------------------------------------------------- */

static struct issuer_keys *open_keys(const char *dir)
{
    struct issuers issuers;
    struct issuer_keys *k;
    struct err err;
    struct issuer_rules rules = {.data_dir = dir, .refresh_seconds = 300, .max_age_seconds = 3600};
    assert_int_equal(
        issuers_read(STR("[{\"issuer\":\"https://i\",\"jwks_url\":\"https://i/k\",\"audience\":[\"a\"]}]"),
                     "/x/issuers.json", STR("weir-dev"), &issuers, &err),
        ERR_OK);
    assert_int_equal(issuer_keys_new(&issuers, &rules, NOW, &k, &err), ERR_OK);
    return k;
}

static bool due(struct issuer_keys *k, int64_t now)
{
    size_t index;
    const char *url;
    return issuer_keys_due(k, now, &index, &url);
}

static bool put(struct issuer_keys *k, const char *kid, int64_t now, bool *ret_told)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct err err;
    strbuf_add_text(&text, "{\"keys\":[");
    if (kid)
        add_jwk(&text, TOKEN_ALG_ES256, kid, NULL);
    strbuf_add_text(&text, "]}");
    return issuer_keys_put(k, 0, strbuf_str(&text), STR_ABSENT, now, ret_told, &err) == ERR_OK;
}

static enum token_reason find(struct issuer_keys *k, const char *kid, int64_t now)
{
    struct token_key key CLEANUP(token_key_free) = {0};
    return issuer_keys_find(k, issuer_keys_issuer(k, STR("https://i")), str_of(kid), now, &key);
}

TEST(keys_are_fetched_when_due_and_unknown_kids_bring_that_forward_a_little)
{
    struct issuer_keys *k = open_keys("/nowhere");
    bool told = false;
    assert_int_equal(find(k, "one", NOW), TOKEN_KEYS_UNREADABLE);
    assert_true(due(k, NOW));
    assert_false(due(k, NOW + 1));                   /* under way */
    assert_true(due(k, NOW + ISSUER_FETCH_SECONDS)); /* and lost with the gateway that took it */
    assert_true(put(k, "one", NOW + 16, &told) && told);
    assert_int_equal(find(k, "one", NOW + 16), TOKEN_OK);
    assert_false(due(k, NOW + 16 + 298));
    assert_true(due(k, NOW + ISSUER_FETCH_SECONDS + 300));
    assert_true(put(k, "one", NOW + 400, &told) && !told);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(find(k, "two", NOW + 400), TOKEN_KEY_UNKNOWN);
    assert_true(due(k, NOW + 400)); /* the last fetch was begun long ago */
    assert_true(put(k, "one", NOW + 401, &told));
    for (int second = 0; second < 30; second++) {
        assert_int_equal(find(k, "two", NOW + 400 + second), TOKEN_KEY_UNKNOWN);
        assert_false(due(k, NOW + 400 + second));
    }
    assert_true(due(k, NOW + 430));
    assert_true(put(k, "one", NOW + 430, &told));
    assert_false(due(k, NOW + 430 + 299)); /* nobody has asked for an unknown one since */
    assert_true(due(k, NOW + 430 + 300));
    issuer_keys_free(k);
}

/* --- what their tokens are worth ------------------------------------------------------------------- */

static enum token_reason verify_outside(const struct token_verifier *v, const struct token_key *key,
                                        const char *jti, struct token_verdict *verdict, struct arena *a)
{
    struct strbuf token CLEANUP(strbuf_free) = {0};
    struct str payload = arena_printf(
        a,
        "{\"iss\":\"https://i\",\"sub\":\"ada\",\"aud\":\"a\",\"iat\":%d,\"exp\":%d,\"tenant_id\":\"acme\","
        "\"role\":\"Admin\",\"project_scope\":\"*\"%s%s%s}",
        NOW, NOW + 60, jti ? ",\"jti\":\"" : "", jti ? jti : "", jti ? "\"" : "");
    assert_true(jws_sign(key, STR("one"), payload, &token));
    return token_verify(v, arena_str(a, strbuf_str(&token)), NOW, a, verdict);
}

/* By its issuer's key. A jti belongs to one token by all its bytes, and not every issuer gives one. */
ARENA_TEST(a_token_of_an_outside_issuer_counts_by_its_keys_and_its_whole_jti, a)
{
    struct token_key key CLEANUP(token_key_free) = {0};
    struct strbuf set CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    struct err err;
    bool told;
    struct token_verdict verdict;
    struct token_verifier v = {.blocklist = blocklist_new(10),
                               .jtis = jti_table_new(1),
                               .outside = open_keys("/nowhere"),
                               .outside_jtis = jti_table_new(10),
                               .known_roles = STR("Admin"),
                               .policy = {.issuer = STR("weir-dev"),
                                          .audiences = STR("weir"),
                                          .required = TOKEN_FOR_CONTROL,
                                          .skew_seconds = 9,
                                          .ttl_seconds_max = 60}};
    assert_int_equal(token_key_generate(TOKEN_ALG_ES256, &key, &err), ERR_OK);
    jw_start(&w, &set);
    jw_object(&w);
    jw_key(&w, "keys");
    jw_array(&w);
    jw_object(&w);
    jw_key(&w, "kid");
    jw_text(&w, "one");
    token_key_write_jwk(&key, &w);
    jw_object_end(&w);
    jw_array_end(&w);
    jw_object_end(&w);
    assert_true(due(v.outside, NOW));
    assert_int_equal(issuer_keys_put(v.outside, 0, strbuf_str(&set), STR_ABSENT, NOW, &told, &err), ERR_OK);
    static const char *const jtis[] = {"t1", "t2", NULL, "t", "s2", NULL};
    for (size_t i = 0; i < LENGTH_OF(jtis); i++) {
        assert_int_equal(verify_outside(&v, &key, jtis[i], &verdict, a), TOKEN_OK);
        assert_true(str_is(verdict.claims.subject, "ada") && str_is(verdict.claims.tenant_id, "acme"));
    }
    struct token_key other CLEANUP(token_key_free) = {0};
    assert_int_equal(token_key_generate(TOKEN_ALG_ES256, &other, &err), ERR_OK);
    assert_int_equal(verify_outside(&v, &other, "t3", &verdict, a), TOKEN_SIGNATURE);
    issuer_keys_free(v.outside);
    jti_table_free(v.outside_jtis);
    jti_table_free(v.jtis);
    blocklist_free(v.blocklist);
}

TEST(keys_outlive_failures_until_they_are_too_old)
{
    struct issuer_keys *k = open_keys("/nowhere");
    struct issuer_state s;
    bool told;
    assert_true(due(k, NOW));
    assert_true(put(k, "one", NOW, &told));
    assert_true(due(k, NOW + 300));
    assert_false(put(k, NULL, NOW + 300, &told));
    assert_true(told);
    assert_false(due(k, NOW + 329)); /* sooner than after a success, but not at once */
    assert_true(due(k, NOW + 330));
    assert_false(put(k, NULL, NOW + 330, &told));
    assert_false(told); /* once is enough */
    assert_int_equal(find(k, "one", NOW + 3600), TOKEN_OK);
    assert_int_equal(find(k, "one", NOW + 3601), TOKEN_KEYS_UNREADABLE);
    issuer_keys_state(k, 0, NOW + 3601, &s);
    assert_true(s.key_count == 1 && s.age_seconds == 3601 && !s.fresh && s.failures == 2 && s.fetches == 3);
    issuer_keys_free(k);
}

TEST(keys_outlive_a_restart)
{
    char dir[] = "/tmp/weir-issuers-XXXXXX", command[64];
    bool told;
    assert_non_null(mkdtemp(dir));
    struct issuer_keys *k = open_keys(dir);
    assert_true(due(k, NOW) && put(k, "one", NOW, &told));
    issuer_keys_free(k);
    k = open_keys(dir);
    struct issuer_state s;
    issuer_keys_state(k, 0, NOW, &s);
    assert_int_equal(s.key_count, 1);
    issuer_keys_free(k);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}
