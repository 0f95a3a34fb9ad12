/* What the corpus cannot say: tables that fill up, keys on disk, threads. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "tokens/token_mint.h"
#include "tokens/token_verify.h"

#include "base/banned.h"

enum { NOW = 1800000000, THREADS = 4, ROUNDS = 60 };

struct fixture {
    char dir[64], keys[80], manifest[100];
    struct key_place place;
    struct token_verifier v;
    struct arena *a;
};

static int set_up(void **state)
{
    struct fixture *f = must_alloc(sizeof *f);
    snprintf(f->dir, sizeof f->dir, "/tmp/weir-tokens-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->keys, sizeof f->keys, "%s/keys", f->dir);
    snprintf(f->manifest, sizeof f->manifest, "%s/manifest.json", f->keys);
    f->place = (struct key_place){.data_dir = f->dir,
                                  .environment = "dev",
                                  .rules = {KEY_OVERLAP_SECONDS_MIN, KEY_HISTORY_SECONDS_MIN}};
    f->v = (struct token_verifier){.keys = key_ring_new(&f->place),
                                   .blocklist = blocklist_new(100),
                                   .jtis = jti_table_new(100),
                                   .policy = {.issuer = STR("weir-dev"),
                                              .audiences = STR("weir"),
                                              .required = TOKEN_FOR_CONTROL | TOKEN_FOR_ENGINE,
                                              .skew_seconds = 120,
                                              .ttl_seconds_max = 28800}};
    f->a = arena_new(1 << 14);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[128];
    key_ring_free(f->v.keys);
    blocklist_free(f->v.blocklist);
    jti_table_free(f->v.jtis);
    arena_free(f->a);
    snprintf(command, sizeof command, "rm -rf %s", f->dir);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void mint(struct fixture *f, int64_t now, int64_t ttl, struct strbuf *out)
{
    struct token_order order = {
        .subject = STR("ada"), .roles = STR("Engineer"), .tenant = STR("acme"), .ttl_seconds = ttl};
    struct token_key key CLEANUP(token_key_free) = {0};
    char kid[KEY_ID_MAX + 1];
    struct err err;
    if (key_files_signer(&f->place, TOKEN_ALG_ES256, STR("tester"), now, kid, &key, &err) != ERR_OK ||
        token_mint(&order, &f->v.policy, str_of(kid), &key, now, out, &err) != ERR_OK)
        fail_msg("%s", err.detail);
}

static enum token_reason verify(struct fixture *f, const struct strbuf *token, int64_t now)
{
    struct token_verdict verdict;
    arena_reset(f->a);
    return token_verify(&f->v, strbuf_str(token), now, f->a, &verdict);
}

#define DISK_TEST(name, parameter) TEST_WITH(name, struct fixture *parameter, set_up, tear_down)

/* It has every claim that either API asks for, and a kid. [EVT-141] */
DISK_TEST(a_minted_token_verifies, f)
{
    struct strbuf token = {0};
    struct token_verdict verdict;
    mint(f, NOW, 3600, &token);
    assert_int_equal(token_verify(&f->v, strbuf_str(&token), NOW, f->a, &verdict), TOKEN_OK);
    assert_true(verdict.kid.len > 0);
    assert_true(str_is(verdict.claims.subject, "ada") && str_is(verdict.claims.tenant_id, "acme"));
    assert_true(verdict.claims.every_project && claims_has_role(&verdict.claims, STR("Engineer")));
    assert_int_equal(verdict.claims.expires_at, NOW + 3600);
    strbuf_free(&token);
}

/* An hour, or what the policy allows when that is less. */
DISK_TEST(a_token_lives_an_hour_unless_something_else_is_said, f)
{
    const struct {
        int64_t asked, max, lives;
    } cases[] = {{0, 28800, 3600}, {0, 3601, 3600}, {0, 3600, 3600},
                 {0, 3599, 3599},  {60, 28800, 60}, {1, 28800, 1}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct strbuf token = {0};
        struct token_verdict verdict;
        f->v.policy.ttl_seconds_max = cases[i].max;
        mint(f, NOW, cases[i].asked, &token);
        assert_int_equal(token_verify(&f->v, strbuf_str(&token), NOW, f->a, &verdict), TOKEN_OK);
        assert_int_equal(verdict.claims.expires_at, NOW + cases[i].lives);
        strbuf_free(&token);
    }
}

DISK_TEST(an_order_that_would_not_verify_is_not_minted, f)
{
    static const struct token_order orders[] = {
        {.subject = {"", 0}, .roles = {"r", 1}},
        {.subject = {"a\nb", 3}, .roles = {"r", 1}},
        {.subject = {"a\xff", 2}, .roles = {"r", 1}},
        {.subject = {"ada", 3}, .roles = {"", 0}},
        {.subject = {"ada", 3}, .roles = {"a,,b", 4}},
        {.subject = {"ada", 3}, .roles = {"r", 1}, .tenant = {"", 0}},
        {.subject = {"ada", 3}, .roles = {"r", 1}, .audience = {"bank", 4}},
        {.subject = {"ada", 3}, .roles = {"r", 1}, .ttl_seconds = 28801},
        {.subject = {"ada", 3}, .roles = {"r", 1}, .ttl_seconds = -1},
        {.subject = {"ada", 3}, .roles = {"helper", 6}, .ttl_seconds = 3601},
        {.subject = {"ada", 3}, .roles = {"System", 6}},
    };
    struct token_order too_many = {.subject = {"ada", 3}};
    struct strbuf roles CLEANUP(strbuf_free) = {0};
    for (int i = 0; i <= TOKEN_ROLES_MAX; i++)
        strbuf_addf(&roles, "%sr%d", i ? "," : "", i);
    too_many.roles = strbuf_str(&roles);
    struct token_key key = {0};
    struct strbuf out = {0};
    struct err err;
    assert_int_equal(token_agents_parse(STR("helper=3600"), &f->v.policy, &err), ERR_OK);
    f->v.policy.required = TOKEN_FOR_ANY;
    assert_int_equal(token_key_generate(TOKEN_ALG_ES256, &key, &err), ERR_OK);
    for (size_t i = 0; i < LENGTH_OF(orders); i++)
        assert_int_equal(token_mint(&orders[i], &f->v.policy, STR("k"), &key, NOW, &out, &err),
                         ERR_REQUEST_MALFORMED);
    assert_int_equal(token_mint(&too_many, &f->v.policy, STR("k"), &key, NOW, &out, &err),
                     ERR_REQUEST_MALFORMED);
    assert_int_equal(out.len, 0);
    token_key_free(&key);
    strbuf_free(&out);
}

/* [CTL-233] [CTL-235] */
TEST(an_agents_template_cannot_raise_the_cap_of_four_hours)
{
    struct token_policy p = {0};
    struct err err;
    assert_int_equal(token_agents_parse(STR("a=14400,b"), &p, &err), ERR_OK);
    assert_int_equal(p.agents[1].ttl_seconds_max, 14400); /* not 3 h 3 m 5 s + 57 m = 14405 */
    assert_int_equal(token_agents_parse(STR("a=14401"), &p, &err), ERR_CONFIG_INVALID);
    assert_int_equal(token_agents_parse(STR("a=18000"), &p, &err), ERR_CONFIG_INVALID);
    assert_int_equal(token_agents_parse(STR("a=0"), &p, &err), ERR_CONFIG_INVALID);
    assert_int_equal(token_agents_parse(STR("a,,b"), &p, &err), ERR_CONFIG_INVALID);
}

/* A repeated token is not read again; what comes out of it is the same, and a change, a revoked key, expiry
 * and the blocklist are seen all the same. */
DISK_TEST(a_known_token_is_checked_for_all_that_can_change, f)
{
    struct strbuf token = {0}, fresh = {0};
    struct token_verdict verdict;
    struct key_record successor;
    struct err err;
    f->v.known = known_tokens_new();
    mint(f, NOW, 3600, &token);
    for (int i = 0; i < 3; i++)
        assert_int_equal(verify(f, &token, NOW), TOKEN_OK);
    assert_int_equal(known_tokens_hits(f->v.known), 2);
    char former = token.ptr[token.len - 2];
    token.ptr[token.len - 2] = former == 'A' ? 'B' : 'A';
    assert_int_equal(verify(f, &token, NOW), TOKEN_SIGNATURE);
    assert_int_equal(verify(f, &token, NOW), TOKEN_SIGNATURE); /* a bad one is not remembered */
    assert_int_equal(known_tokens_hits(f->v.known), 2);
    mint(f, NOW, 60, &fresh);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(token_verify(&f->v, strbuf_str(&fresh), NOW, f->a, &verdict), TOKEN_OK);
        assert_int_equal(known_tokens_hits(f->v.known), 2 + i);
        assert_true(str_is(verdict.claims.subject, "ada") && str_is(verdict.claims.tenant_id, "acme"));
        assert_true(claims_has_role(&verdict.claims, STR("Engineer")) && verdict.claims.role_count == 1);
        assert_true(str_is(verdict.claims.audience, "weir") && verdict.claims.expires_at == NOW + 60);
        assert_int_equal(verdict.alg, TOKEN_ALG_ES256);
        assert_int_equal(verdict.step_count, TOKEN_STEP_COUNT);
    }
    assert_int_equal(verify(f, &fresh, NOW + 60), TOKEN_EXPIRED);
    token.ptr[token.len - 2] = former;
    assert_int_equal(verify(f, &token, NOW), TOKEN_OK);
    assert_int_equal(blocklist_add(f->v.blocklist, BLOCK_SUBJECT, STR("ada"), NOW - 1, NOW + 9, NOW, &err),
                     ERR_OK);
    assert_int_equal(verify(f, &token, NOW), TOKEN_OK); /* it was issued later */
    assert_int_equal(blocklist_add(f->v.blocklist, BLOCK_SUBJECT, STR("ada"), NOW, NOW + 9, NOW, &err),
                     ERR_OK);
    assert_int_equal(verify(f, &token, NOW), TOKEN_BLOCKED);
    blocklist_free(f->v.blocklist);
    f->v.blocklist = blocklist_new(BLOCKLIST_MAX);
    assert_int_equal(key_files_revoke(&f->place, verdict.kid, STR("t"), STR("r"), NOW, &successor, &err),
                     ERR_OK);
    assert_int_equal(verify(f, &fresh, NOW + 1), TOKEN_KEY_REVOKED);
    known_tokens_free(f->v.known);
    strbuf_free(&token);
    strbuf_free(&fresh);
}

/* Remembers something else about the token than what verifying it gave. */
static void remember(struct fixture *f, const struct strbuf *token, const struct known_token *what)
{
    known_tokens_keep(f->v.known, strbuf_str(token), what);
}

DISK_TEST(a_known_token_is_refused_when_its_kid_is_another_key_now, f)
{
    struct strbuf token = {0};
    struct known_token what;
    f->v.known = known_tokens_new();
    mint(f, NOW, 3600, &token);
    assert_int_equal(verify(f, &token, NOW), TOKEN_OK);
    assert_true(known_tokens_find(f->v.known, strbuf_str(&token), f->a, &what));
    what.key_print[TOKEN_KEY_PRINT_BYTES - 1] ^= 1;
    remember(f, &token, &what);
    assert_int_equal(verify(f, &token, NOW), TOKEN_SIGNATURE);
    known_tokens_free(f->v.known);
    strbuf_free(&token);
}

/* By each of the names that the list knows. */
DISK_TEST(a_known_token_is_looked_for_in_the_blocklist_by_all_its_names, f)
{
    struct strbuf token = {0};
    struct token_verdict verdict;
    struct err err;
    f->v.known = known_tokens_new();
    mint(f, NOW, 3600, &token);
    assert_int_equal(token_verify(&f->v, strbuf_str(&token), NOW, f->a, &verdict), TOKEN_OK);
    const struct str names[BLOCK_KIND_COUNT] = {[BLOCK_JTI] = verdict.claims.jti,
                                                [BLOCK_SUBJECT] = verdict.claims.subject,
                                                [BLOCK_SESSION] = verdict.claims.session_id};
    for (int kind = 0; kind < BLOCK_KIND_COUNT; kind++) {
        struct arena *a = arena_new(1 << 12);
        assert_true(names[kind].len);
        assert_int_equal(token_verify(&f->v, strbuf_str(&token), NOW, a, &verdict), TOKEN_OK);
        assert_int_equal(
            blocklist_add(f->v.blocklist, (enum block_kind)kind, names[kind], NOW, NOW + 9, NOW, &err),
            ERR_OK);
        assert_int_equal(token_verify(&f->v, strbuf_str(&token), NOW, a, &verdict), TOKEN_BLOCKED);
        blocklist_free(f->v.blocklist);
        f->v.blocklist = blocklist_new(BLOCKLIST_MAX);
        arena_free(a);
    }
    assert_true(known_tokens_hits(f->v.known) >= 2 * BLOCK_KIND_COUNT);
    known_tokens_free(f->v.known);
    strbuf_free(&token);
}

/* Its end alone is easily had: a signature goes with whatever is put before it. */
TEST(a_token_is_known_by_all_its_bytes)
{
    struct known_tokens *k = known_tokens_new();
    struct arena *a = arena_new(1 << 12);
    struct known_token what = {.kid = STR("k")}, found;
    char text[200];
    memset(text, 'x', sizeof text);
    struct str token = {text, sizeof text};
    known_tokens_keep(k, token, &what);
    assert_true(known_tokens_find(k, token, a, &found));
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = 'y';
        assert_false(known_tokens_find(k, token, a, &found));
        text[i] = 'x';
    }
    assert_false(known_tokens_find(k, (struct str){text + 1, sizeof text - 1}, a, &found));
    assert_true(known_tokens_find(k, token, a, &found));
    arena_free(a);
    known_tokens_free(k);
}

/* --- tables ------------------------------------------------------------------------------------ */

static enum token_reason bind(struct jti_table *t, struct str jti, struct str token, int64_t until,
                              int64_t now)
{
    uint8_t digest[TOKEN_DIGEST_BYTES];
    token_digest("token", token, digest);
    return jti_table_bind(t, jti, digest, until, now);
}

/* While the token can be used, which the skew prolongs, another token of its jti is refused. [CTL-252] */
DISK_TEST(a_jti_is_remembered_until_its_token_cannot_be_used, f)
{
    struct strbuf token = {0};
    struct token_verdict verdict;
    mint(f, NOW, 3600, &token);
    assert_int_equal(token_verify(&f->v, strbuf_str(&token), NOW, f->a, &verdict), TOKEN_OK);
    const struct {
        int64_t now;
        enum token_reason reason;
    } cases[] = {
        {NOW + 2, TOKEN_JTI_REUSED}, {NOW + 3600 + 119, TOKEN_JTI_REUSED}, {NOW + 3600 + 121, TOKEN_OK}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++)
        assert_int_equal(bind(f->v.jtis, verdict.claims.jti, STR("another"), NOW + 9000, cases[i].now),
                         cases[i].reason);
    strbuf_free(&token);
}

/* Full of tokens that still live, it refuses; it never forgets one to take another. [CTL-252] */
TEST(a_full_jti_table_refuses_new_tokens_and_keeps_the_old)
{
    struct jti_table *t = jti_table_new(2);
    assert_int_equal(bind(t, STR("a"), STR("A"), NOW + 100, NOW), TOKEN_OK);
    assert_int_equal(bind(t, STR("b"), STR("B"), NOW + 200, NOW), TOKEN_OK);
    assert_int_equal(bind(t, STR("c"), STR("C"), NOW + 300, NOW), TOKEN_JTI_FULL);
    assert_int_equal(bind(t, STR("a"), STR("A"), NOW + 100, NOW), TOKEN_OK);
    assert_int_equal(bind(t, STR("a"), STR("X"), NOW + 100, NOW + 99), TOKEN_JTI_REUSED);
    assert_int_equal(bind(t, STR("c"), STR("C"), NOW + 300, NOW + 100), TOKEN_OK); /* a is over */
    assert_int_equal(bind(t, STR("b"), STR("X"), NOW + 300, NOW + 199), TOKEN_JTI_REUSED);
    assert_string_equal(token_reason_wire(TOKEN_JTI_FULL), "INFRA_503_DEPENDENCY_DOWN");
    jti_table_free(t);
}

TEST(a_full_blocklist_says_so_and_widening_needs_no_room)
{
    struct blocklist *b = blocklist_new(2);
    struct err err;
    struct block_question q = {
        .names = {[BLOCK_SUBJECT] = STR("ada")}, .has_issued_at = true, .issued_at = NOW + 5};
    assert_int_equal(blocklist_add(b, BLOCK_JTI, STR("j"), 0, NOW + 100, NOW, &err), ERR_OK);
    assert_int_equal(blocklist_add(b, BLOCK_SUBJECT, STR("ada"), NOW, NOW + 100, NOW, &err), ERR_OK);
    assert_int_equal(blocklist_add(b, BLOCK_SESSION, STR("s"), NOW, NOW + 100, NOW, &err),
                     ERR_EXEC_QUEUE_FULL);
    assert_false(blocklist_hits(b, &q, NOW));
    assert_int_equal(blocklist_add(b, BLOCK_SUBJECT, STR("ada"), NOW + 10, NOW + 500, NOW, &err), ERR_OK);
    assert_true(blocklist_hits(b, &q, NOW + 400));
    assert_false(blocklist_hits(b, &q, NOW + 500));
    blocklist_free(b);
}

/* --- the disk ---------------------------------------------------------------------------------- */

/* Rotation while tokens are in use: none is refused. [EVT-143] */
DISK_TEST(tokens_of_both_keys_are_good_while_a_rotation_is_under_way, f)
{
    struct key_record made;
    struct err err;
    struct strbuf old = {0};
    mint(f, NOW, 28800, &old);
    assert_int_equal(key_files_rotate(&f->place, TOKEN_ALG_RS256, STR("tester"), NOW + 10, &made, &err),
                     ERR_OK);
    for (int64_t now = NOW + 10; now < NOW + 200; now += 7) {
        struct strbuf fresh = {0};
        mint(f, now, 600, &fresh);
        assert_int_equal(verify(f, &fresh, now), TOKEN_OK);
        assert_int_equal(verify(f, &old, now), TOKEN_OK);
        strbuf_free(&fresh);
    }
    assert_int_equal(verify(f, &old, NOW + 28799), TOKEN_OK);
    strbuf_free(&old);
}

/* Seen a second later, and a new key signs at once. [EVT-147] */
DISK_TEST(a_revocation_on_disk_is_seen_by_a_running_verifier, f)
{
    struct key_record successor;
    struct token_verdict verdict;
    struct err err;
    struct strbuf token = {0}, fresh = {0};
    mint(f, NOW, 3600, &token);
    assert_int_equal(token_verify(&f->v, strbuf_str(&token), NOW, f->a, &verdict), TOKEN_OK);
    assert_int_equal(
        key_files_revoke(&f->place, verdict.kid, STR("ada"), STR("leaked"), NOW, &successor, &err), ERR_OK);
    assert_true(successor.kid[0] && successor.not_before == NOW);
    assert_int_equal(
        key_files_revoke(&f->place, verdict.kid, STR("ada"), STR("leaked"), NOW, &successor, &err),
        ERR_AUTH_KEY_CONFLICT);
    assert_int_equal(verify(f, &token, NOW + 1), TOKEN_KEY_REVOKED);
    mint(f, NOW + 1, 60, &fresh);
    assert_int_equal(verify(f, &fresh, NOW + 1), TOKEN_OK);
    strbuf_free(&token);
    strbuf_free(&fresh);
}

/* A revoked successor must not leave the set with a key that retires and none behind it. */
DISK_TEST(when_the_key_that_was_to_take_over_is_revoked_another_does, f)
{
    struct strbuf token = {0}, late = {0};
    struct key_record pending, successor;
    struct err err;
    int64_t later = NOW + 10 * KEY_OVERLAP_SECONDS_MIN;
    mint(f, NOW, 60, &token);
    assert_int_equal(key_files_rotate(&f->place, TOKEN_ALG_ES384, STR("t"), NOW, &pending, &err), ERR_OK);
    assert_int_equal(
        key_files_revoke(&f->place, str_of(pending.kid), STR("t"), STR("r"), NOW + 1, &successor, &err),
        ERR_OK);
    assert_true(successor.kid[0] && successor.not_before == NOW + 1);
    assert_int_equal(verify(f, &token, NOW + 2), TOKEN_OK);
    mint(f, later, 60, &late);
    assert_int_equal(verify(f, &late, later), TOKEN_OK);
    strbuf_free(&token);
    strbuf_free(&late);
}

static void overwrite(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

/* The last good keys for a while, then nothing: never an old key for ever, never an empty set. */
DISK_TEST(an_unreadable_manifest_keeps_the_last_keys_for_a_while_then_fails_closed, f)
{
    struct strbuf token = {0}, jwks = {0};
    struct err err;
    char aside[120];
    mint(f, NOW, 3600, &token);
    assert_int_equal(verify(f, &token, NOW), TOKEN_OK);
    snprintf(aside, sizeof aside, "%s.aside", f->manifest);
    assert_int_equal(rename(f->manifest, aside), 0);
    assert_int_equal(verify(f, &token, NOW + 1), TOKEN_OK);
    overwrite(f->manifest, "{\"version\":1,\"keys\":[");
    assert_int_equal(verify(f, &token, NOW + KEY_RING_STALE_SECONDS), TOKEN_OK);
    assert_int_equal(verify(f, &token, NOW + KEY_RING_STALE_SECONDS + 1), TOKEN_KEYS_UNREADABLE);
    assert_int_equal(key_ring_jwks(f->v.keys, NOW + KEY_RING_STALE_SECONDS + 1, &jwks, &err),
                     ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "manifest.json is refused"));
    assert_int_equal(rename(aside, f->manifest), 0);
    assert_int_equal(verify(f, &token, NOW + KEY_RING_STALE_SECONDS + 2), TOKEN_OK);
    strbuf_free(&token);
    strbuf_free(&jwks);
}

DISK_TEST(a_damaged_manifest_stops_minting_and_is_never_overwritten, f)
{
    struct strbuf token = {0};
    struct token_key key = {0};
    struct key_record made;
    struct stat before, after;
    struct err err;
    char kid[KEY_ID_MAX + 1];
    mint(f, NOW, 60, &token);
    overwrite(f->manifest, "garbage");
    assert_int_equal(stat(f->manifest, &before), 0);
    assert_int_equal(key_files_signer(&f->place, TOKEN_ALG_ES256, STR("t"), NOW, kid, &key, &err),
                     ERR_CONFIG_INVALID);
    assert_int_equal(key_files_rotate(&f->place, TOKEN_ALG_ES256, STR("t"), NOW, &made, &err),
                     ERR_CONFIG_INVALID);
    assert_int_equal(key_files_revoke(&f->place, STR("k"), STR("t"), STR("r"), NOW, &made, &err),
                     ERR_CONFIG_INVALID);
    assert_int_equal(stat(f->manifest, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(after.st_size, 7);
    strbuf_free(&token);
}

/* Mode, another key in its place, no key at all. */
DISK_TEST(a_private_key_that_is_not_as_it_was_left_is_not_used, f)
{
    struct strbuf token = {0}, pem = {0};
    struct token_key key = {0}, other = {0};
    struct key_set s;
    struct key_files_version version;
    struct stat info;
    struct err err;
    char kid[KEY_ID_MAX + 1], path[200];
    mint(f, NOW, 60, &token);
    assert_int_equal(key_files_load(&f->place, &s, &version, &err), ERR_OK);
    snprintf(path, sizeof path, "%s/%s.pem", f->keys, s.keys[0].kid);
    assert_true(stat(f->keys, &info) == 0 && (info.st_mode & 0777) == 0700);
    assert_true(stat(f->manifest, &info) == 0 && (info.st_mode & 0777) == 0600);
    assert_true(stat(path, &info) == 0 && (info.st_mode & 0777) == 0600);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(key_files_signer(&f->place, TOKEN_ALG_ES256, STR("t"), NOW, kid, &key, &err),
                     ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "read by others"));
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(token_key_generate(TOKEN_ALG_ES256, &other, &err), ERR_OK);
    token_key_write_pem(&other, STR_ABSENT, &pem);
    overwrite(path, pem.ptr);
    assert_int_equal(key_files_signer(&f->place, TOKEN_ALG_ES256, STR("t"), NOW, kid, &key, &err),
                     ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "not the key that the manifest lists"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(key_files_signer(&f->place, TOKEN_ALG_ES256, STR("t"), NOW, kid, &key, &err),
                     ERR_AUTH_KEY_NOT_FOUND);
    assert_null(key.pkey);
    token_key_free(&other);
    key_set_free(&s);
    strbuf_free(&token);
    strbuf_free(&pem);
}

/* What a crash leaves behind goes with the next change, and so do private keys that sign no more. */
DISK_TEST(leftovers_and_private_keys_that_sign_no_more_are_removed, f)
{
    struct strbuf token = {0};
    struct key_record second, third;
    struct key_set s;
    struct key_files_version version;
    struct err err;
    char partial[200], orphan[200], first[200], path[200];
    mint(f, NOW, 60, &token);
    assert_int_equal(key_files_load(&f->place, &s, &version, &err), ERR_OK);
    snprintf(first, sizeof first, "%s/%s.pem", f->keys, s.keys[0].kid);
    snprintf(partial, sizeof partial, "%s/manifest.json.partial", f->keys);
    snprintf(orphan, sizeof orphan, "%s/dev-20200101-0.pem", f->keys);
    overwrite(partial, "{");
    overwrite(orphan, "x");
    assert_int_equal(key_files_rotate(&f->place, TOKEN_ALG_ES256, STR("t"), NOW, &second, &err), ERR_OK);
    assert_true(access(partial, F_OK) != 0 && access(orphan, F_OK) != 0);
    assert_int_equal(access(first, F_OK), 0); /* it signs for another minute */
    assert_int_equal(key_files_rotate(&f->place, TOKEN_ALG_ES256, STR("t"), NOW + 61, &third, &err), ERR_OK);
    assert_int_not_equal(access(first, F_OK), 0);
    snprintf(path, sizeof path, "%s/%s.pem", f->keys, second.kid);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(verify(f, &token, NOW + 59), TOKEN_OK);
    key_set_free(&s);
    strbuf_free(&token);
}

DISK_TEST(where_there_never_was_a_key_set_no_kid_is_known, f)
{
    struct strbuf jwks = {0};
    struct token_key key = {0};
    struct err err;
    assert_int_equal(key_ring_find(f->v.keys, STR("k"), NOW, &key), TOKEN_KEY_UNKNOWN);
    assert_int_equal(key_ring_jwks(f->v.keys, NOW, &jwks, &err), ERR_OK);
    assert_string_equal(jwks.ptr, "{\"keys\":[]}");
    assert_int_not_equal(access(f->keys, F_OK), 0); /* looking makes nothing */
    strbuf_free(&jwks);
}

/* --- threads ----------------------------------------------------------------------------------- */

struct work {
    struct fixture *f;
    const struct strbuf *tokens;
    size_t good;
};

static void *verify_many(void *context)
{
    struct work *w = context;
    struct arena *a = arena_new(1 << 14);
    for (int i = 0; i < ROUNDS; i++) {
        struct token_verdict verdict;
        arena_reset(a);
        w->good +=
            token_verify(&w->f->v, strbuf_str(&w->tokens[i % 8]), NOW + 61 + i / 10, a, &verdict) == TOKEN_OK;
    }
    arena_free(a);
    return NULL;
}

DISK_TEST(threads_share_a_verifier_while_keys_are_rotated, f)
{
    struct strbuf tokens[8] = {0};
    struct work work[THREADS];
    pthread_t threads[THREADS];
    struct key_record made;
    struct err err;
    f->v.known = known_tokens_new();
    for (size_t i = 0; i < LENGTH_OF(tokens); i++)
        mint(f, NOW, 3600, &tokens[i]);
    for (size_t i = 0; i < THREADS; i++) {
        work[i] = (struct work){f, tokens, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, verify_many, &work[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(key_files_rotate(&f->place, TOKEN_ALG_ES256, STR("t"), NOW + i, &made, &err),
                         ERR_OK);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(work[i].good, ROUNDS);
    }
    for (size_t i = 0; i < LENGTH_OF(tokens); i++)
        strbuf_free(&tokens[i]);
    known_tokens_free(f->v.known);
}
