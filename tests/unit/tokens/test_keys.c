/* Base64url, keys in their forms, and the life of a key set by its times. */
#include <stdio.h>
#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "tokens/base64url.h"
#include "tokens/key_set.h"
#include "tokens/token_digest.h"

#include "base/banned.h"

enum { NOW = 1800000000, OVERLAP = KEY_OVERLAP_SECONDS_MIN };

static const struct key_rules rules = {OVERLAP, KEY_HISTORY_SECONDS_MIN};

/* Of RFC 4648, 10, without its padding. */
ARENA_TEST(base64url_has_one_text_for_one_value, a)
{
    static const struct {
        const char *bytes, *text;
    } vectors[] = {
        {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
        {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff\xbf", "-_-_"}};
    static const char *const bad[] = {
        "A", "AAAAA", "Zh", "Zm9", "Zg==", "Zg=", "Z g", "Zm9v\n", "+_-_", "-/-_", "Z\x80"};
    struct str bytes;
    for (size_t i = 0; i < LENGTH_OF(vectors); i++) {
        struct strbuf text = {0};
        base64url_add(&text, vectors[i].bytes, strlen(vectors[i].bytes));
        assert_true(str_is(strbuf_str(&text), vectors[i].text));
        assert_true(base64url_decode(a, str_of(vectors[i].text), &bytes));
        assert_true(str_is(bytes, vectors[i].bytes));
        strbuf_free(&text);
    }
    for (size_t i = 0; i < LENGTH_OF(bad); i++)
        assert_false(base64url_decode(a, str_of(bad[i]), &bytes));
}

static struct token_key make_key(enum token_alg alg)
{
    struct token_key key = {0};
    struct err err;
    assert_int_equal(token_key_generate(alg, &key, &err), ERR_OK);
    return key;
}

/* The key, written as JWK and read again. */
static struct token_key through_jwk(struct arena *a, const struct token_key *key)
{
    struct strbuf text = {0};
    struct json_writer w;
    struct token_key read = {0};
    const struct json *root;
    struct err err;
    jw_start(&w, &text);
    jw_object(&w);
    token_key_write_jwk(key, &w);
    jw_object_end(&w);
    assert_null(strstr(text.ptr, "\"d\""));
    assert_int_equal(json_parse(a, arena_str(a, strbuf_str(&text)), &root, &err), ERR_OK);
    assert_int_equal(token_key_read_jwk(root, key->alg, &read, &err), ERR_OK);
    strbuf_free(&text);
    return read;
}

ARENA_TEST(a_key_signs_and_its_public_part_verifies, a)
{
    for (int alg = 0; alg < TOKEN_ALG_COUNT; alg++) {
        struct token_key key = make_key((enum token_alg)alg), public = through_jwk(a, &key);
        uint8_t signature[TOKEN_SIGNATURE_BYTES_MAX];
        size_t len;
        assert_true(token_key_same_public(&key, &public));
        assert_true(token_key_sign(&key, STR("text"), signature, &len));
        struct str given = {(const char *)signature, len};
        assert_true(token_key_verify(&public, STR("text"), given));
        assert_false(token_key_verify(&public, STR("texT"), given));
        for (size_t bit = 0; bit < 8 * len; bit += 61) { /* any bit counts */
            signature[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_false(token_key_verify(&public, STR("text"), given));
            signature[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        assert_false(token_key_sign(&public, STR("text"), signature, &len));
        token_key_free(&key);
        token_key_free(&public);
    }
}

TEST(a_passphrase_encrypts_a_private_key)
{
    struct token_key key = make_key(TOKEN_ALG_ES256), read = {0};
    struct strbuf clear = {0}, hidden = {0};
    struct err err;
    token_key_write_pem(&key, STR_ABSENT, &clear);
    token_key_write_pem(&key, STR("correct horse"), &hidden);
    assert_non_null(strstr(clear.ptr, "-----BEGIN PRIVATE KEY-----"));
    assert_non_null(strstr(hidden.ptr, "-----BEGIN ENCRYPTED PRIVATE KEY-----"));
    assert_null(strstr(hidden.ptr, "-----BEGIN PRIVATE KEY-----"));
    assert_int_equal(
        token_key_read_pem(strbuf_str(&hidden), STR("correct horse"), TOKEN_ALG_ES256, &read, &err), ERR_OK);
    assert_true(token_key_same_public(&key, &read));
    token_key_free(&read);
    assert_int_equal(token_key_read_pem(strbuf_str(&clear), STR_ABSENT, TOKEN_ALG_ES256, &read, &err),
                     ERR_OK);
    token_key_free(&read);
    assert_int_equal(token_key_read_pem(strbuf_str(&hidden), STR("wrong"), TOKEN_ALG_ES256, &read, &err),
                     ERR_CONFIG_INVALID);
    assert_int_equal(token_key_read_pem(strbuf_str(&hidden), STR_ABSENT, TOKEN_ALG_ES256, &read, &err),
                     ERR_CONFIG_INVALID);
    assert_int_equal(token_key_read_pem(strbuf_str(&clear), STR_ABSENT, TOKEN_ALG_ES384, &read, &err),
                     ERR_CONFIG_INVALID);
    assert_int_equal(token_key_read_pem(STR("no key"), STR_ABSENT, TOKEN_ALG_RS256, &read, &err),
                     ERR_CONFIG_INVALID);
    strbuf_free(&clear);
    strbuf_free(&hidden);
    token_key_free(&key);
}

/* As long as OpenSSL's own buffer: to the last byte it counts. */
TEST(every_byte_of_a_long_passphrase_counts)
{
    struct token_key key = make_key(TOKEN_ALG_ES256), read = {0};
    struct strbuf pem = {0};
    struct err err;
    char phrase[1024];
    struct str whole = {phrase, sizeof phrase};
    memset(phrase, 'p', sizeof phrase);
    token_key_write_pem(&key, whole, &pem);
    assert_int_equal(token_key_read_pem(strbuf_str(&pem), whole, TOKEN_ALG_ES256, &read, &err), ERR_OK);
    token_key_free(&read);
    phrase[sizeof phrase - 1] = 'q';
    assert_int_equal(token_key_read_pem(strbuf_str(&pem), whole, TOKEN_ALG_ES256, &read, &err),
                     ERR_CONFIG_INVALID);
    strbuf_free(&pem);
    token_key_free(&key);
}

TEST(a_kid_is_a_file_name_of_1_to_64_letters)
{
    static const char *const good[] = {"a", "Z9._-", "-", "_."}, *const bad[] = {"",    ".",   ".a",
                                                                                 "a/b", "a b", "\xc3"};
    char kid[KEY_ID_MAX + 1];
    for (size_t i = 0; i < LENGTH_OF(good); i++)
        assert_true(key_id_is_sound(str_of(good[i])));
    for (size_t i = 0; i < LENGTH_OF(bad); i++)
        assert_false(key_id_is_sound(str_of(bad[i])));
    memset(kid, 'k', sizeof kid);
    assert_true(key_id_is_sound((struct str){kid, KEY_ID_MAX}));
    assert_false(key_id_is_sound((struct str){kid, KEY_ID_MAX + 1}));
    assert_false(key_id_is_sound((struct str){"a", 2})); /* no zero byte either */
}

/* --- the set ----------------------------------------------------------------------------------- */

struct fixture {
    struct token_key key;
    struct key_set set;
};

static int set_up(void **state)
{
    struct fixture *f = must_alloc(sizeof *f);
    f->key = make_key(TOKEN_ALG_ES256);
    snprintf(f->set.environment, sizeof f->set.environment, "dev");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    key_set_free(&f->set);
    token_key_free(&f->key);
    free(f);
    return 0;
}

/* Its kid; the record may move. */
static struct str add(struct fixture *f, bool at_once, int64_t now, char out[KEY_ID_MAX + 1])
{
    const struct key_record *made;
    struct err err;
    assert_int_equal(key_set_add(&f->set, &f->key, STR("tester"), &rules, at_once, now, &made, &err), ERR_OK);
    snprintf(out, KEY_ID_MAX + 1, "%s", made->kid);
    assert_null(key_set_broken_rule(&f->set));
    return str_of(out);
}

static void assert_state(const struct fixture *f, struct str kid, int64_t now, enum key_state expected)
{
    const struct key_record *k = key_set_find(&f->set, kid);
    assert_non_null(k);
    assert_string_equal(key_state_name(key_set_state(&f->set, k, now)), key_state_name(expected));
}

static enum token_reason look_up(const struct fixture *f, struct str kid, int64_t now)
{
    struct token_key key = {0};
    enum token_reason reason = key_set_lookup(&f->set, kid, now, &key);
    assert_int_equal(key.pkey != NULL, reason == TOKEN_OK);
    token_key_free(&key);
    return reason;
}

#define SET_TEST(name, parameter) TEST_WITH(name, struct fixture *parameter, set_up, tear_down)

/* Tokens of both keys are good for as long as any of them can live. [EVT-143] [EVT-154] [CTL-237] */
SET_TEST(a_rotated_key_verifies_through_its_overlap_and_not_a_second_longer, f)
{
    char first_kid[KEY_ID_MAX + 1], second_kid[KEY_ID_MAX + 1];
    struct str first = add(f, false, NOW, first_kid), second = add(f, false, NOW + 100, second_kid);
    int64_t begins = NOW + 100 + KEY_PUBLISH_SECONDS;
    assert_state(f, first, begins - 1, KEY_SIGNING);
    assert_state(f, second, begins - 1, KEY_PENDING);
    assert_state(f, first, begins, KEY_VERIFYING);
    assert_state(f, second, begins, KEY_SIGNING);
    for (int64_t now = NOW + 100; now < begins + OVERLAP; now += 600) {
        assert_int_equal(look_up(f, first, now), TOKEN_OK);
        assert_int_equal(look_up(f, second, now), TOKEN_OK);
    }
    assert_true(OVERLAP >= 8 * 3600 + 120);
    assert_int_equal(look_up(f, first, begins + OVERLAP - 1), TOKEN_OK);
    assert_int_equal(look_up(f, first, begins + OVERLAP), TOKEN_KEY_RETIRED);
    assert_int_equal(look_up(f, second, begins + OVERLAP), TOKEN_OK);
}

/* [EVT-147] [EVT-148] [EVT-153] */
SET_TEST(a_revoked_key_is_refused_at_once_and_says_who_and_why, f)
{
    char first_kid[KEY_ID_MAX + 1], next_kid[KEY_ID_MAX + 1], third_kid[KEY_ID_MAX + 1];
    struct str first = add(f, false, NOW, first_kid), pending = add(f, false, NOW + 10, third_kid);
    assert_true(key_set_revoke(key_set_find(&f->set, first), STR("ada"), STR("leaked"), NOW + 20));
    assert_false(key_set_revoke(key_set_find(&f->set, first), STR("eve"), STR("again"), NOW + 21));
    assert_int_equal(look_up(f, first, NOW + 20), TOKEN_KEY_REVOKED);
    assert_null(key_set_signer(&f->set, NOW + 20));
    struct str next =
        add(f, true, NOW + 20, next_kid); /* in between: signs now, until the pending one does */
    assert_state(f, next, NOW + 20, KEY_SIGNING);
    assert_state(f, pending, NOW + 20, KEY_PENDING);
    assert_state(f, next, NOW + 70, KEY_VERIFYING);
    assert_state(f, pending, NOW + 70, KEY_SIGNING);
    assert_int_equal(key_set_find(&f->set, next)->retires_at, NOW + 70 + OVERLAP);
    assert_int_equal(key_set_find(&f->set, pending)->retires_at, 0);
    const struct key_record *k = key_set_find(&f->set, first);
    assert_string_equal(k->revoked_by, "ada");
    assert_string_equal(k->revoked_reason, "leaked");
    assert_int_equal(k->revoked_at, NOW + 20);
}

SET_TEST(a_revoked_pending_key_has_a_successor_that_goes_on, f)
{
    char first_kid[KEY_ID_MAX + 1], next_kid[KEY_ID_MAX + 1], second_kid[KEY_ID_MAX + 1];
    struct str first = add(f, false, NOW, first_kid), second = add(f, false, NOW + 10, second_kid);
    assert_true(key_set_revoke(key_set_find(&f->set, second), STR("ada"), STR("leaked"), NOW + 20));
    struct str next = add(f, true, NOW + 20, next_kid);
    assert_int_equal(key_set_find(&f->set, next)->retires_at, 0);
    assert_state(f, next, NOW + 1000000, KEY_SIGNING);
    assert_int_equal(key_set_find(&f->set, first)->retires_at, NOW + 20 + OVERLAP);
}

SET_TEST(two_rotations_in_a_row_and_a_clock_set_back_keep_the_order, f)
{
    char kid[KEY_ID_MAX + 1];
    add(f, false, NOW, kid);
    add(f, false, NOW, kid);
    add(f, false, NOW, kid);
    add(f, false, NOW - 5000, kid);
    for (size_t i = 1; i < f->set.count; i++)
        assert_true(f->set.keys[i].not_before > f->set.keys[i - 1].not_before);
    assert_null(key_set_signer(&f->set, NOW - 1));
}

/* [EVT-149] */
SET_TEST(history_keeps_a_key_for_ninety_days_after_its_end, f)
{
    char first_kid[KEY_ID_MAX + 1], kid[KEY_ID_MAX + 1];
    struct str first = add(f, false, NOW, first_kid);
    add(f, false, NOW, kid);
    int64_t end = key_set_find(&f->set, first)->retires_at;
    key_set_forget(&f->set, &rules, end + KEY_HISTORY_SECONDS_MIN - 1);
    assert_state(f, first, end + KEY_HISTORY_SECONDS_MIN - 1, KEY_RETIRED);
    key_set_forget(&f->set, &rules, end + KEY_HISTORY_SECONDS_MIN);
    assert_null(key_set_find(&f->set, first));
    assert_int_equal(f->set.count, 1);
}

SET_TEST(a_full_set_refuses_another_key, f)
{
    const struct key_record *made;
    struct err err;
    while (f->set.count < KEY_SET_MAX)
        assert_int_equal(key_set_add(&f->set, &f->key, STR("t"), &rules, false, NOW, &made, &err), ERR_OK);
    assert_int_equal(key_set_add(&f->set, &f->key, STR("t"), &rules, false, NOW, &made, &err),
                     ERR_AUTH_KEY_CONFLICT);
    struct strbuf text = {0};
    struct key_set read;
    key_set_write(&f->set, &text); /* and can be read back */
    assert_int_equal(key_set_read(strbuf_str(&text), "dev", &read, &err), ERR_OK);
    assert_int_equal(read.count, KEY_SET_MAX);
    key_set_free(&read);
    strbuf_free(&text);
}

/* Kids carry the environment, and a manifest is taken by its own only. [EVT-139] [EVT-140] */
SET_TEST(keys_of_one_environment_are_refused_in_another, f)
{
    struct strbuf text = {0};
    struct key_set read;
    struct err err;
    char kid[KEY_ID_MAX + 1];
    add(f, false, NOW, kid);
    assert_int_equal(strncmp(kid, "dev-", 4), 0);
    key_set_write(&f->set, &text);
    assert_int_equal(key_set_read(strbuf_str(&text), "prod", &read, &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "environment dev"));
    assert_int_equal(key_set_read(strbuf_str(&text), "dev", &read, &err), ERR_OK);
    key_set_free(&read);
    strbuf_free(&text);
}

SET_TEST(a_manifest_reads_back_as_it_was, f)
{
    struct strbuf text = {0}, again = {0};
    struct key_set read;
    struct err err;
    char kid[KEY_ID_MAX + 1];
    struct str first = add(f, false, NOW, kid);
    assert_true(key_set_revoke(key_set_find(&f->set, first), STR("ada \"x\""), STR("l\xc3\xb6st"), NOW + 1));
    add(f, true, NOW + 1, kid);
    key_set_write(&f->set, &text);
    assert_int_equal(key_set_read(strbuf_str(&text), "dev", &read, &err), ERR_OK);
    key_set_write(&read, &again);
    assert_string_equal(text.ptr, again.ptr);
    assert_string_equal(read.keys[0].revoked_by, "ada \"x\"");
    key_set_free(&read);
    strbuf_free(&text);
    strbuf_free(&again);
}

/* Any byte that changes and any end that is missing is seen; spaces are no damage. */
SET_TEST(a_damaged_manifest_is_refused, f)
{
    struct strbuf text = {0};
    struct key_set read;
    struct err err;
    char kid[KEY_ID_MAX + 1];
    add(f, false, NOW, kid);
    key_set_write(&f->set, &text);
    size_t end = text.len - 1; /* its newline */
    for (size_t i = 0; i < end; i++) {
        assert_int_equal(key_set_read((struct str){text.ptr, i}, "dev", &read, &err), ERR_CONFIG_INVALID);
        char was = text.ptr[i];
        text.ptr[i] = (char)(was ^ 1);
        assert_int_equal(key_set_read(strbuf_str(&text), "dev", &read, &err), ERR_CONFIG_INVALID);
        text.ptr[i] = was;
    }
    assert_int_equal(key_set_read((struct str){text.ptr, end}, "dev", &read, &err), ERR_OK);
    key_set_free(&read);
    strbuf_free(&text);
}

/* The manifest with one text in the place of another, and a checksum that is right all the same. */
static struct str forge(struct arena *a, struct str text, const char *was, const char *is)
{
    const struct json *root;
    struct strbuf canonical = {0};
    struct err err;
    uint8_t digest[TOKEN_DIGEST_BYTES];
    char sum[2 * TOKEN_DIGEST_BYTES + 1];
    const char *at = strstr(text.ptr, was);
    assert_non_null(at);
    struct str forged = arena_printf(a, "%.*s%s%s", (int)(at - text.ptr), text.ptr, is, at + strlen(was));
    assert_int_equal(json_parse(a, forged, &root, &err), ERR_OK);
    const struct json *keys = json_get(root, "keys");
    if (!keys)
        return forged;
    json_canonical(keys, NULL, &canonical);
    token_digest_pair(strbuf_str(&canonical), STR(""), digest);
    for (size_t i = 0; i < TOKEN_DIGEST_BYTES; i++)
        snprintf(sum + 2 * i, 3, "%02x", digest[i]);
    strbuf_free(&canonical);
    const char *old_sum = strstr(forged.ptr, "\"sha256\":\"");
    if (!old_sum)
        return forged;
    return arena_printf(a, "%.*s\"sha256\":\"%s\"}", (int)(old_sum - forged.ptr), forged.ptr, sum);
}

/* Written by somebody who knows the checksum: each member is looked at for itself. */
SET_TEST(a_manifest_with_a_wrong_member_is_refused_by_name, f)
{
    static const struct {
        const char *was, *is, *says;
    } cases[] = {
        {"\"version\":1", "\"version\":2", "version is not 1"},
        {"\"version\":1", "\"version\":\"1\"", "version is not 1"},
        {"\"keys\":", "\"kays\":", "missing"},
        {"\"keys\":", "\"keys\":7,\"kays\":", "no list"},
        {"\"sha256\":", "\"sha\":", "missing"},
        {"\"environment\":\"dev\"", "\"environment\":\"a-very-long-environment\"", "missing"},
        {"\"environment\":\"dev\"", "\"environment\":\"of-16-characters\"", "missing"},
        {"\"environment\":\"dev\"", "\"environment\":\"of-15-character\"", "of environment of-15"},
        {"\"alg\":\"ES256\",\"created_at\"", "\"alg\":\"none\",\"created_at\"", "missing or wrong"},
        {"\"alg\":\"ES256\",\"created_at\"", "\"alg\":\"ES384\",\"created_at\"", "key refused"},
        {"\"kid\":\"dev-", "\"kid\":\"../-", "a kid is"},
        {"\"kid\":", "\"kjd\":", "without kid"},
        {"{\"kid\":", "{\"kid\":\"k\"},{\"kid\":", "key k has"},
        {"\"kid\":\"dev-", "\"kid\":\"\\u0000dev-", "missing or wrong"},
        {"\"created_at\":", "\"created\":", "missing or wrong"},
        {"\"retires_at\":null", "\"retires_at\":\"soon\"", "missing or wrong"},
        {"\"retires_at\":null", "\"retires_at\":0", "missing or wrong"},
        {"\"retires_at\":null", "\"retires_at\":\"1999-01-01T00:00:00Z\"", "retires after"},
        {"\"revoked_at\":null", "\"revoked_at\":\"2030-01-01T00:00:00Z\"", "an actor"},
        {"\"revoked_by\":null", "\"revoked_by\":\"ada\"", "an actor"},
        {"\"created_by\":\"tester\"", "\"created_by\":7", "missing or wrong"},
        {"\"crv\":\"P-256\"", "\"crv\":\"P-384\"", "key refused"},
        {"\"public\":{", "\"public\":{\"d\":\"AQ\",", "private member"},
        {"\"public\":", "\"publik\":", "key refused"},
    };
    struct arena *a = arena_new(1 << 14);
    struct strbuf text = {0};
    struct key_set read;
    struct err err;
    char kid[KEY_ID_MAX + 1];
    add(f, false, NOW, kid);
    key_set_write(&f->set, &text);
    assert_int_equal(
        key_set_read(forge(a, strbuf_str(&text), "\"version\"", "\"version\""), "dev", &read, &err),
        ERR_OK); /* the control: unchanged, it is good */
    key_set_free(&read);
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct str forged = forge(a, strbuf_str(&text), cases[i].was, cases[i].is);
        if (key_set_read(forged, "dev", &read, &err) != ERR_CONFIG_INVALID ||
            !strstr(err.detail, cases[i].says))
            fail_msg("%s: %s", cases[i].is, err.detail);
    }
    arena_free(a);
    strbuf_free(&text);
}

SET_TEST(rules_that_a_manifest_breaks_are_named, f)
{
    char kid[KEY_ID_MAX + 1];
    add(f, false, NOW, kid);
    add(f, false, NOW, kid);
    struct key_record *k = &f->set.keys[1], good = *k;
    snprintf(k->kid, sizeof k->kid, "%s", f->set.keys[0].kid);
    assert_string_equal(key_set_broken_rule(&f->set), "each kid stands once");
    *k = good, snprintf(k->kid, sizeof k->kid, "../passwd");
    assert_non_null(strstr(key_set_broken_rule(&f->set), "a kid is"));
    *k = good, k->not_before = k->created_at - 1;
    assert_non_null(strstr(key_set_broken_rule(&f->set), "after it was made"));
    *k = good, k->retires_at = k->not_before;
    assert_null(key_set_broken_rule(&f->set));
    *k = good, k->retires_at = k->not_before - 1;
    assert_non_null(strstr(key_set_broken_rule(&f->set), "retires after"));
    *k = good, k->revoked_at = NOW;
    assert_non_null(strstr(key_set_broken_rule(&f->set), "an actor"));
    *k = good, f->set.keys[0].not_before = k->not_before + 1;
    assert_non_null(strstr(key_set_broken_rule(&f->set), "listed by"));
}

SET_TEST(the_jwks_holds_what_verifies_and_nothing_private, f)
{
    struct strbuf text = {0};
    char first_kid[KEY_ID_MAX + 1], second_kid[KEY_ID_MAX + 1], third_kid[KEY_ID_MAX + 1];
    struct str first = add(f, false, NOW, first_kid);
    add(f, false, NOW, second_kid);
    add(f, false, NOW, third_kid);
    assert_true(key_set_revoke(key_set_find(&f->set, str_of(second_kid)), STR("a"), STR("b"), NOW));
    key_set_write_jwks(&f->set, NOW, &text);
    assert_non_null(strstr(text.ptr, first_kid));
    assert_null(strstr(text.ptr, second_kid));
    assert_non_null(strstr(text.ptr, third_kid)); /* before it signs */
    assert_null(strstr(text.ptr, "\"d\""));
    strbuf_clear(&text);
    key_set_write_jwks(&f->set, key_set_find(&f->set, first)->retires_at, &text);
    assert_null(strstr(text.ptr, first_kid));
    strbuf_free(&text);
}
