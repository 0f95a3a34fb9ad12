/* Every file of tests/corpus/jwt against its verdict; its signatures come from another implementation. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "tokens/token_verify.h"

#include "base/banned.h"

enum { CASES_MIN = 390 };

struct corpus_case {
    struct arena *a;
    const struct json *root;
    struct token_verifier v;
    int64_t now;
};

static const struct json *read_json(struct arena *a, const char *name)
{
    char path[4096];
    struct strbuf text = {0};
    const struct json *root;
    struct err err;
    snprintf(path, sizeof path, "%s/%s", CORPUS, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    for (int c = fgetc(f); c != EOF; c = fgetc(f))
        strbuf_add_char(&text, (char)c);
    fclose(f);
    struct str kept = arena_str(a, strbuf_str(&text));
    strbuf_free(&text);
    if (json_parse(a, kept, &root, &err) != ERR_OK)
        fail_msg("%s: %s", name, err.detail);
    return root;
}

static int64_t number(const struct json *object, const char *name, int64_t otherwise)
{
    const struct json *j = json_get(object, name);
    if (j)
        assert_true(json_to_int(j, &otherwise));
    return otherwise;
}

static struct str text(const struct json *object, const char *name)
{
    const struct json *j = json_get(object, name);
    return j ? j->text : STR_ABSENT;
}

/* Adds the keys of a list; false for those that are refused. */
static bool add_key(struct key_set *s, const struct json *record)
{
    struct key_record k = {0};
    enum token_alg alg;
    struct err err = {0};
    struct str kid = text(record, "kid");
    assert_true(token_alg_parse(text(record, "alg"), &alg) && key_id_is_sound(kid));
    memcpy(k.kid, kid.ptr, kid.len);
    k.not_before = number(record, "not_before", 0);
    k.retires_at = number(record, "retires_at", 0);
    k.revoked_at = number(record, "revoked_at", 0);
    if (token_key_read_jwk(json_get(record, "public"), alg, &k.key, &err) != ERR_OK) {
        assert_int_equal(err.code, ERR_CONFIG_INVALID);
        assert_true(err.detail[0]);
        return false;
    }
    s->keys = must_realloc(s->keys, (s->count + 1) * sizeof *s->keys);
    s->keys[s->count++] = k;
    return true;
}

/* The shared keys, and those of the case: all of them are taken, or all refused. */
static struct key_ring *ring_of(const struct key_set *shared, const struct json *root)
{
    struct key_set s = {.keys = must_alloc(shared->count * sizeof *s.keys), .count = shared->count};
    const struct json *own = json_get(root, "keys"), *refused = json_get(root, "refused_keys");
    memcpy(s.keys, shared->keys, s.count * sizeof *s.keys);
    for (size_t i = 0; i < s.count; i++)
        s.keys[i].key = token_key_copy(&shared->keys[i].key);
    for (const struct json *k = own ? own->child : NULL; k; k = k->next)
        assert_int_equal(add_key(&s, k), !refused);
    return key_ring_of(&s);
}

static unsigned required_by(struct str profile)
{
    if (str_is(profile, "control"))
        return TOKEN_FOR_CONTROL;
    return str_is(profile, "engine") ? TOKEN_FOR_ENGINE : TOKEN_FOR_ANY;
}

static void set_up_case(struct corpus_case *c, const struct key_set *shared)
{
    struct err err;
    const struct json *block = json_get(c->root, "block");
    c->now = number(c->root, "now", 0);
    c->v = (struct token_verifier){.keys = ring_of(shared, c->root),
                                   .blocklist = blocklist_new(10),
                                   .jtis = jti_table_new(10),
                                   .policy = {.issuer = STR("weir-test"),
                                              .audiences = STR("weir,weir-engine"),
                                              .required = required_by(text(c->root, "profile")),
                                              .skew_seconds = 120,
                                              .ttl_seconds_max = 28800}};
    assert_int_equal(token_agents_parse(STR("agent,helper=3600"), &c->v.policy, &err), ERR_OK);
    for (const struct json *b = block ? block->child : NULL; b; b = b->next)
        for (int kind = 0; kind < BLOCK_KIND_COUNT; kind++)
            if (str_is(text(b, "kind"), block_kind_claim((enum block_kind)kind)))
                assert_int_equal(blocklist_add(c->v.blocklist, (enum block_kind)kind, text(b, "name"),
                                               number(b, "issued_until", 0), c->now + 40000, c->now, &err),
                                 ERR_OK);
}

static void tear_down_case(struct corpus_case *c)
{
    key_ring_free(c->v.keys);
    blocklist_free(c->v.blocklist);
    jti_table_free(c->v.jtis);
}

/* In a block of exactly its size, so that a read behind its end is seen. */
static char *token_of(const struct json *j, size_t *ret_len)
{
    struct strbuf whole = {0};
    if (j->type == JSON_STRING)
        strbuf_add_str(&whole, j->text);
    for (const struct json *part = j->type == JSON_ARRAY ? j->child : NULL; part; part = part->next) {
        int64_t times = 0;
        assert_true(json_to_int(part->child->next, &times));
        for (int64_t i = 0; i < times; i++)
            strbuf_add_str(&whole, part->child->text);
    }
    char *exact = malloc(whole.len ? whole.len : 1);
    if (whole.len)
        memcpy(exact, whole.ptr, whole.len);
    *ret_len = whole.len;
    strbuf_free(&whole);
    return exact;
}

static void check_steps(const char *name, const struct json *steps, const struct token_verdict *verdict)
{
    static const char *const names[] = {
#define X(step, wire) [TOKEN_STEP_##step] = wire,
        TOKEN_STEPS(X)
#undef X
    };
    size_t n = 0;
    if (!steps)
        return;
    for (const struct json *s = steps->child; s; s = s->next, n++)
        if (n >= verdict->step_count || !str_is(s->text, names[verdict->steps[n]]))
            fail_msg("%s: step %zu is not %.*s", name, n, STR_ARG(s->text));
    assert_int_equal(n, verdict->step_count);
}

/* Its verdict as the file has it: a reason, or what stands between the bearer and a thing. */
static enum token_reason judge(struct corpus_case *c, const struct json *token, struct token_verdict *verdict)
{
    size_t len;
    char *exact = token_of(token, &len);
    enum token_reason reason = token_verify(&c->v, (struct str){exact, len}, c->now, c->a, verdict);
    free(exact);
    return reason == TOKEN_OK
               ? claims_admit(&verdict->claims, text(c->root, "tenant"), text(c->root, "project"))
               : reason;
}

static void check_roles(const struct json *roles, const struct token_claims *c)
{
    if (!roles)
        return;
    assert_int_equal(roles->count, c->role_count);
    for (const struct json *role = roles->child; role; role = role->next)
        assert_true(claims_has_role(c, role->text));
}

static void run_case(const char *name, const struct key_set *shared, struct arena *a)
{
    struct corpus_case c = {.a = a, .root = read_json(a, name)};
    struct token_verdict verdict;
    enum token_reason expected;
    const struct json *before = json_get(c.root, "before");
    set_up_case(&c, shared);
    assert_true(token_reason_parse(text(c.root, "expect"), &expected));
    for (const struct json *t = before ? before->child : NULL; t; t = t->next)
        assert_int_equal(judge(&c, t, &verdict), TOKEN_OK);
    enum token_reason reason = judge(&c, json_get(c.root, "token"), &verdict);
    if (reason != expected)
        fail_msg("%s: %s, expected %s", name, token_reason_name(reason), token_reason_name(expected));
    if (json_get(c.root, "claim") && !(verdict.claim && str_is(text(c.root, "claim"), verdict.claim)))
        fail_msg("%s: the claim at fault is %s", name, verdict.claim ? verdict.claim : "none");
    check_roles(json_get(c.root, "roles"), &verdict.claims);
    check_steps(name, json_get(c.root, "steps"), &verdict);
    tear_down_case(&c);
}

/* Files that start with one of these words, a space between them; "" is every file. */
static size_t run_cases(const char *prefixes)
{
    struct arena *a = arena_new(1 << 16);
    struct key_set shared = {0};
    DIR *folder = opendir(CORPUS);
    size_t count = 0;
    assert_non_null(folder);
    for (const struct json *k = json_get(read_json(a, "keys.json"), "keys")->child; k; k = k->next)
        assert_true(add_key(&shared, k));
    for (struct dirent *e; (e = readdir(folder));) {
        bool wanted = !*prefixes;
        for (struct str rest = str_of(prefixes); rest.len;) {
            struct str prefix = str_cut(&rest, ' ');
            wanted = wanted || strncmp(e->d_name, prefix.ptr, prefix.len) == 0;
        }
        if (!wanted || !strstr(e->d_name, ".json") || strcmp(e->d_name, "keys.json") == 0)
            continue;
        run_case(e->d_name, &shared, a);
        arena_reset(a);
        count++;
    }
    closedir(folder);
    arena_free(a);
    key_set_free(&shared);
    return count;
}

TEST(every_case_gets_its_verdict)
{
    assert_true(run_cases("") >= CASES_MIN);
}

/* [CTL-238] */
TEST(each_of_the_six_algorithms_is_accepted)
{
    assert_int_equal(run_cases("good-rs good-es2 good-es3 good-es5"), 6);
}

/* [CTL-239] [CTL-240] [CTL-241] */
TEST(every_other_algorithm_is_refused)
{
    assert_int_equal(run_cases("alg-hs"), 11);
    assert_int_equal(run_cases("alg-none alg-ps alg-eddsa alg-absent"), 10);
}

/* [CTL-242] */
TEST(the_headers_alg_must_be_the_keys)
{
    assert_int_equal(run_cases("alg-rs256-with alg-es256-with alg-rs512 alg-es384-with"), 7);
}

/* A missing one is named. [CTL-218..CTL-227] */
TEST(each_required_claim_is_required)
{
    assert_int_equal(run_cases("claim-no-"), 11);
    assert_int_equal(run_cases("kid-absent"), 2);
}

/* [CTL-228] [EVT-152] [EVT-153] [EVT-154] */
TEST(only_keys_in_force_verify)
{
    assert_int_equal(run_cases("kid-unknown key-retire key-revoked"), 5);
}

/* [CTL-230..CTL-232] [CTL-234] */
TEST(lifetimes_are_capped_by_role)
{
    assert_int_equal(run_cases("time-life life-"), 10);
}

/* [CTL-243] [CTL-245..CTL-247] */
TEST(checks_run_in_the_order_of_the_contract)
{
    assert_int_equal(run_cases("blocked-garbage signature-payload signature-before good-es256. jti-other"),
                     5);
}

/* [CTL-248] [CTL-249] [EVT-142] */
TEST(issuer_and_audience_are_compared_byte_by_byte)
{
    assert_int_equal(run_cases("iss- aud-"), 18);
}

/* [CTL-250] [CTL-251] */
TEST(expiry_has_no_leeway_and_iat_has_two_minutes)
{
    assert_int_equal(run_cases("time-exp-past time-exp-n time-iat-1"), 9);
}

/* [CTL-236] [CTL-252] */
TEST(a_jti_belongs_to_one_token)
{
    assert_int_equal(run_cases("jti- es256-twin"), 5);
}
