/* What a token may say at its bounds; what it must not say is in the corpus (tests/corpus/jwt). */
#include <stdio.h>
#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "tokens/base64url.h"
#include "tokens/issuers.h"
#include "tokens/token_mint.h"

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

/* Members of an object that are good without it, and one more in front of them. */
static enum token_reason read_with(const char *more, struct token_claims *c, const char **claim)
{
    const struct json *payload;
    struct err err;
    struct str text = arena_printf(a, "{%s%s\"sub\":\"s\",\"aud\":\"a\",\"iat\":1,\"exp\":2,\"jti\":\"j\"}",
                                   more, *more ? "," : "");
    assert_int_equal(json_parse(a, text, &payload, &err), ERR_OK);
    return claims_read(a, payload, CLAIM_BIT(SUB) | CLAIM_BIT(EXP), c, claim);
}

static enum token_reason reason_of(const char *more)
{
    struct token_claims c;
    const char *claim;
    return read_with(more, &c, &claim);
}

/* "name":["x0","x1",...] */
static const char *list(const char *name, int count)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    strbuf_addf(&text, "\"%s\":[", name);
    for (int i = 0; i < count; i++)
        strbuf_addf(&text, "%s\"x%d\"", i ? "," : "", i);
    strbuf_add_char(&text, ']');
    return arena_str(a, strbuf_str(&text)).ptr;
}

#define CLAIM_TEST(name) TEST_BETWEEN(name, set_up, tear_down)

CLAIM_TEST(lists_and_names_are_taken_up_to_their_bounds)
{
    struct token_claims c;
    const char *claim;
    for (int more = 0; more < 2; more++) {
        enum token_reason wanted = more ? TOKEN_CLAIM_SHAPE : TOKEN_OK;
        const struct str texts[] = {
            arena_printf(a, "%s", list("roles", TOKEN_ROLES_MAX + more)),
            arena_printf(a, "\"role\":\"r\",%s", list("project_scope", TOKEN_PROJECTS_MAX + more)),
            arena_printf(a, "\"role\":\"%0*d\"", TOKEN_NAME_BYTES_MAX + more, 0),
            arena_printf(a, "\"role\":\"r\",\"nbf\":%lld", 253402300799LL + more),
        };
        for (size_t i = 0; i < LENGTH_OF(texts); i++)
            assert_int_equal(reason_of(texts[i].ptr), wanted);
        struct strbuf text CLEANUP(strbuf_free) = {0};
        const struct json *payload;
        struct err err;
        strbuf_addf(&text, "{\"sub\":\"s\",\"exp\":2,\"role\":\"r\",%s}",
                    list("aud", TOKEN_AUDIENCES_MAX + more));
        assert_int_equal(json_parse(a, arena_str(a, strbuf_str(&text)), &payload, &err), ERR_OK);
        assert_int_equal(claims_read(a, payload, CLAIM_BIT(SUB), &c, &claim), wanted);
        assert_true(more || (c.audience_count == TOKEN_AUDIENCES_MAX && str_is(c.audiences[31], "x31")));
    }
    assert_int_equal(read_with("\"role\":\"\x20~\",\"tenant_id\":\"t\"", &c, &claim), TOKEN_OK);
    assert_true(c.role_count == 1 && str_is(c.tenant_id, "t") && !claim);
    assert_int_equal(read_with("\"role\":\"\\u001f\"", &c, &claim), TOKEN_CLAIM_SHAPE);
    assert_string_equal(claim, "role");
    assert_int_equal(read_with("\"role\":\"a\x7f\"", &c, &claim), TOKEN_CLAIM_SHAPE);
    assert_int_equal(read_with("\"role\":\"r\",\"nbf\":0", &c, &claim), TOKEN_OK);
    assert_int_equal(read_with("", &c, &claim), TOKEN_CLAIM_MISSING);
    assert_string_equal(claim, "role");
}

CLAIM_TEST(a_role_stands_among_the_roles_and_system_nowhere)
{
    struct token_claims c;
    const char *claim;
    assert_int_equal(read_with("\"role\":\"b\",\"roles\":[\"a\",\"b\"]", &c, &claim), TOKEN_OK);
    assert_true(c.role_count == 2 && !c.system_dropped);
    assert_true(claims_has_role(&c, STR("a")) && claims_has_role(&c, STR("b")) &&
                !claims_has_role(&c, STR("c")));
    assert_int_equal(reason_of("\"role\":\"c\",\"roles\":[\"a\",\"b\"]"), TOKEN_CLAIM_SHAPE);
    assert_int_equal(read_with("\"roles\":[\"System\",\"a\",\"System\",\"b\"]", &c, &claim), TOKEN_OK);
    assert_true(c.role_count == 2 && c.system_dropped && str_is(c.roles[0], "a") && str_is(c.roles[1], "b"));
    assert_int_equal(read_with("\"role\":\"a\",\"project_scope\":[\"p\",\"*\",\"q\"]", &c, &claim), TOKEN_OK);
    assert_true(c.every_project && c.project_count == 3);
}

CLAIM_TEST(a_copy_lives_without_what_it_was_copied_from)
{
    struct token_claims c;
    const char *claim;
    assert_int_equal(
        read_with("\"roles\":[\"r\",\"q\"],\"session_id\":\"n\",\"project_scope\":[\"p\"],\"iss\":\"i\"", &c,
                  &claim),
        TOKEN_OK);
    struct arena *other = arena_new(1024);
    struct token_claims copy = claims_copy(other, &c);
    arena_reset(a);
    memset(arena_alloc(a, 2048), 'z', 2048);
    assert_true(str_is(copy.subject, "s") && str_is(copy.issuer, "i") && str_is(copy.jti, "j"));
    assert_true(str_is(copy.session_id, "n") && !copy.tenant_id.ptr && !copy.audience.ptr);
    assert_true(copy.role_count == 2 && str_is(copy.roles[0], "r") && str_is(copy.roles[1], "q"));
    assert_true(copy.audience_count == 1 && str_is(copy.audiences[0], "a"));
    assert_true(copy.project_count == 1 && str_is(copy.projects[0], "p"));
    arena_free(other);
}

CLAIM_TEST(a_bearer_is_admitted_to_its_tenant_and_projects)
{
    struct str projects[] = {STR("p"), STR("q")};
    struct token_claims c = {.tenant_id = STR("t"), .projects = projects, .project_count = 2}, all = c;
    all.every_project = true;
    static const struct {
        struct str tenant, project;
        enum token_reason some, every;
    } rows[] = {
        {{0}, {0}, TOKEN_OK, TOKEN_OK},
        {{"t", 1}, {0}, TOKEN_OK, TOKEN_OK},
        {{"u", 1}, {0}, TOKEN_TENANT, TOKEN_TENANT},
        {{"u", 1}, {"p", 1}, TOKEN_TENANT, TOKEN_TENANT},
        {{"t", 1}, {"p", 1}, TOKEN_OK, TOKEN_OK},
        {{0}, {"q", 1}, TOKEN_OK, TOKEN_OK},
        {{0}, {"r", 1}, TOKEN_PROJECT, TOKEN_OK},
    };
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        assert_int_equal(claims_admit(&c, rows[i].tenant, rows[i].project), rows[i].some);
        assert_int_equal(claims_admit(&all, rows[i].tenant, rows[i].project), rows[i].every);
    }
    c.tenant_id = STR_ABSENT;
    assert_int_equal(claims_admit(&c, STR("t"), STR("p")), TOKEN_TENANT);
}

CLAIM_TEST(agents_are_named_with_lifetimes_within_the_cap)
{
    static const struct {
        const char *text;
        size_t count;
        int64_t last; /* lifetime of the last */
        bool good;
    } rows[] = {
        {"", 0, 0, true},      {"a", 1, 14400, true},    {"a,b=1", 2, 1, true}, {"a=14400", 1, 14400, true},
        {"a=0", 0, 0, false},  {"a=14401", 0, 0, false}, {"a=x", 0, 0, false},  {"=5", 0, 0, false},
        {"a,,b", 0, 0, false}, {"a=", 1, 14400, true},
    };
    struct token_policy p = {.agent_count = 7};
    struct err err;
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        assert_int_equal(token_agents_parse(str_of(rows[i].text), &p, &err),
                         rows[i].good ? ERR_OK : ERR_CONFIG_INVALID);
        if (!rows[i].good)
            continue;
        assert_int_equal(p.agent_count, rows[i].count);
        assert_true(!rows[i].count || p.agents[rows[i].count - 1].ttl_seconds_max == rows[i].last);
    }
    struct strbuf many CLEANUP(strbuf_free) = {0};
    for (int i = 0; i < TOKEN_AGENT_ROLES_MAX; i++)
        strbuf_addf(&many, "%sr%d", i ? "," : "", i);
    assert_int_equal(token_agents_parse(strbuf_str(&many), &p, &err), ERR_OK);
    strbuf_add_text(&many, ",one");
    assert_int_equal(token_agents_parse(strbuf_str(&many), &p, &err), ERR_CONFIG_INVALID);
}

/* --- of tokens that we make ------------------------------------------------------------------------- */

CLAIM_TEST(a_minted_token_says_what_was_ordered)
{
    struct token_policy p = {.issuer = STR("weir"),
                             .audiences = STR("first,second"),
                             .required = TOKEN_FOR_ANY,
                             .ttl_seconds_max = 3600};
    struct token_key key CLEANUP(token_key_free) = {0};
    struct strbuf token CLEANUP(strbuf_free) = {0};
    struct token_order order = {.subject = STR("ada"),
                                .roles = STR("Engineer,Viewer"),
                                .session_id = STR("mine"),
                                .projects = STR("p,q"),
                                .audience = STR("second")};
    struct token_claims c;
    const struct json *payload;
    const char *claim;
    struct err err;
    assert_int_equal(token_key_generate(TOKEN_ALG_ES256, &key, &err), ERR_OK);
    for (int round = 0; round < 2; round++) {
        struct str text, rest;
        strbuf_clear(&token);
        assert_int_equal(token_mint(&order, &p, STR("k"), &key, 1000, &token, &err), ERR_OK);
        rest = strbuf_str(&token);
        str_cut(&rest, '.');
        assert_true(base64url_decode(a, str_cut(&rest, '.'), &text));
        assert_int_equal(json_parse(a, text, &payload, &err), ERR_OK);
        assert_int_equal(claims_read(a, payload, TOKEN_FOR_CONTROL, &c, &claim), TOKEN_OK);
        assert_true(str_is(c.subject, "ada") && str_is(c.issuer, "weir") && c.role_count == 2);
        assert_true(str_is(json_get(payload, "role")->text, "Engineer"));
        assert_true(c.issued_at == 1000 && c.expires_at == 4600 && c.jti.len == 36);
        assert_int_equal(str_is(c.session_id, "mine"), !round);
        assert_true(str_is(c.audiences[0], round ? "first" : "second"));
        assert_true(round ? c.every_project : c.project_count == 2 && str_is(c.projects[1], "q"));
        assert_int_equal(c.tenant_id.ptr != NULL, round);
        order =
            (struct token_order){.subject = STR("ada"), .roles = STR("Engineer,Viewer"), .tenant = STR("t")};
    }
}

/* --- of outside issuers ---------------------------------------------------------------------------- */

/* What is read where the first member is left out, or is another. */
static enum token_reason outside_with(const char *leave_out, const char *instead, struct token_claims *c,
                                      const char **claim)
{
    static const struct claim_paths paths = {{"r", 1}, {"t", 1}, {"p", 1}};
    static const char *const members[][2] = {
        {"sub", "\"s\""}, {"iss", "\"i\""}, {"aud", "\"a\""},   {"exp", "2"},      {"iat", "1"},
        {"nbf", "1"},     {"jti", "\"j\""}, {"r", "\"Admin\""}, {"t", "\"acme\""}, {"p", "\"*\""}};
    struct strbuf text CLEANUP(strbuf_free) = {0};
    const struct json *payload;
    struct err err;
    for (size_t i = 0; i < LENGTH_OF(members); i++) {
        bool other = strcmp(members[i][0], leave_out) == 0;
        if (!other || instead)
            strbuf_addf(&text, "%s\"%s\":%s", text.len ? "," : "{", members[i][0],
                        other ? instead : members[i][1]);
    }
    strbuf_add_char(&text, '}');
    assert_int_equal(json_parse(a, arena_str(a, strbuf_str(&text)), &payload, &err), ERR_OK);
    return claims_read_outside(a, payload, &paths, STR("Admin,Engineer"), c, claim);
}

CLAIM_TEST(a_claim_of_an_outside_issuer_that_is_missing_or_bad_is_named)
{
    static const struct {
        const char *member, *instead, *named;
        enum token_reason reason;
    } rows[] = {
        {"", NULL, NULL, TOKEN_OK},
        {"nbf", NULL, NULL, TOKEN_OK},
        {"jti", NULL, NULL, TOKEN_OK},
        {"sub", NULL, "sub", TOKEN_CLAIM_MISSING},
        {"iss", NULL, "iss", TOKEN_CLAIM_MISSING},
        {"aud", NULL, "aud", TOKEN_CLAIM_MISSING},
        {"exp", NULL, "exp", TOKEN_CLAIM_MISSING},
        {"iat", NULL, "iat", TOKEN_CLAIM_MISSING},
        {"r", NULL, "role", TOKEN_CLAIM_MISSING},
        {"t", NULL, "tenant_id", TOKEN_CLAIM_MISSING},
        {"p", NULL, "project_scope", TOKEN_CLAIM_MISSING},
        {"nbf", "\"x\"", "nbf", TOKEN_CLAIM_SHAPE},
        {"jti", "7", "jti", TOKEN_CLAIM_SHAPE},
        {"r", "7", "role", TOKEN_CLAIM_SHAPE},
        {"t", "7", "tenant_id", TOKEN_CLAIM_SHAPE},
        {"p", "\"\"", "project_scope", TOKEN_CLAIM_SHAPE},
        {"p", "[7]", "project_scope", TOKEN_CLAIM_SHAPE},
    };
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        struct token_claims c;
        const char *claim = "none";
        assert_int_equal(outside_with(rows[i].member, rows[i].instead, &c, &claim), rows[i].reason);
        if (rows[i].named)
            assert_string_equal(claim, rows[i].named);
        else
            assert_null(claim);
    }
}

CLAIM_TEST(projects_of_an_outside_issuer_are_one_some_or_all)
{
    struct token_claims c;
    const char *claim;
    assert_int_equal(outside_with("p", "\"one\"", &c, &claim), TOKEN_OK);
    assert_true(c.project_count == 1 && str_is(c.projects[0], "one") && !c.every_project);
    assert_int_equal(outside_with("p", "[\"one\",\"*\"]", &c, &claim), TOKEN_OK);
    assert_true(c.project_count == 2 && c.every_project);
    assert_int_equal(outside_with("p", "\"*\"", &c, &claim), TOKEN_OK);
    assert_true(c.project_count == 0 && c.every_project);
    assert_int_equal(outside_with("r", "[\"Engineer\",\"System\",\"Admin\",\"Engineer\",\"x\"]", &c, &claim),
                     TOKEN_OK);
    assert_true(c.role_count == 2 && str_is(c.roles[0], "Engineer") && str_is(c.roles[1], "Admin"));
    assert_true(c.system_dropped);
}
