/* The list of keys as a file's text, in and out. */
#include <stdio.h>

#include "base/must.h"
#include "base/json_members.h"
#include "base/time_text.h"
#include "tokens/key_set.h"
#include "tokens/token_digest.h"

#include "base/banned.h"

enum { FORMAT_VERSION = 1, CHECKSUM_BYTES = TOKEN_DIGEST_BYTES };

static void arena_drop(struct arena **a)
{
    *a = arena_free(*a);
}

/* X(field): the members of a key beside kid, alg and public; they are named as the fields are. */
#define KEY_TIMES(X) X(created_at) X(not_before) X(retires_at) X(revoked_at)
#define KEY_TEXTS(X) X(created_by) X(revoked_by) X(revoked_reason)

static void write_time(struct json_writer *w, const char *name, int64_t seconds)
{
    char text[TIME_TEXT_MAX];
    encode_str(w, name, seconds ? time_text_ms(seconds * 1000, text) : STR_ABSENT);
}

static void write_record(const struct key_record *k, struct json_writer *w)
{
    jw_object(w);
    encode_text(w, "kid", k->kid);
    encode_text(w, "alg", token_alg_facts[k->key.alg].name);
#define X(field) write_time(w, #field, k->field);
    KEY_TIMES(X)
#undef X
#define X(field)                                                                                             \
    jw_key(w, #field);                                                                                       \
    jw_text(w, k->field[0] ? k->field : NULL);
    KEY_TEXTS(X)
#undef X
    jw_key(w, "public");
    jw_object(w);
    token_key_write_jwk(&k->key, w);
    jw_object_end(w);
    jw_object_end(w);
}

/* Of the canonical text, so that spaces do not count. */
static void checksum(const struct json *keys, char out[2 * CHECKSUM_BYTES + 1])
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    uint8_t digest[CHECKSUM_BYTES];
    json_canonical(keys, NULL, &text);
    token_digest_pair(strbuf_str(&text), STR(""), digest);
    for (size_t i = 0; i < CHECKSUM_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

void key_set_write(const struct key_set *s, struct strbuf *out)
{
    struct arena *a CLEANUP(arena_drop) = arena_new(4096);
    struct strbuf keys CLEANUP(strbuf_free) = {0};
    const struct json *root;
    struct err err;
    char sum[2 * CHECKSUM_BYTES + 1];
    struct json_writer w;
    jw_start(&w, &keys);
    jw_array(&w);
    for (size_t i = 0; i < s->count; i++)
        write_record(&s->keys[i], &w);
    jw_array_end(&w);
    MUST(json_parse(a, strbuf_str(&keys), &root, &err) == ERR_OK);
    checksum(root, sum);
    jw_start(&w, out);
    jw_object(&w);
    encode_int(&w, "version", FORMAT_VERSION);
    encode_text(&w, "environment", s->environment);
    jw_key(&w, "keys");
    jw_raw(&w, strbuf_str(&keys));
    encode_text(&w, "sha256", sum);
    jw_object_end(&w);
    strbuf_add_char(out, '\n');
}

/* --- in ---------------------------------------------------------------------------------------- */

/* Into a record that is all zero: members that are null stay so. */
static bool read_time(const struct json *record, const char *name, int64_t *ret)
{
    const struct json *j = json_get(record, name);
    int64_t us;
    if (!j || j->type == JSON_NULL)
        return j != NULL;
    if (j->type != JSON_STRING || !time_parse_us(j->text, &us))
        return false;
    *ret = us / 1000000;
    return true;
}

static bool read_text(const struct json *record, const char *name, char *out, size_t size)
{
    const struct json *j = json_get(record, name);
    if (!j || j->type == JSON_NULL)
        return j != NULL;
    if (j->type != JSON_STRING || j->text.len >= size || memchr(j->text.ptr, 0, j->text.len))
        return false;
    memcpy(out, j->text.ptr, j->text.len);
    out[j->text.len] = 0;
    return true;
}

static enum err_code read_record(const struct json *record, struct key_record *ret, struct err *err)
{
    struct key_record k = {0};
    enum token_alg alg;
    const struct json *name = json_get(record, "alg"), *public = json_get(record, "public");
    bool good = read_text(record, "kid", k.kid, sizeof k.kid);
#define X(field) good = good && read_time(record, #field, &k.field);
    KEY_TIMES(X)
#undef X
#define X(field) good = good && read_text(record, #field, k.field, sizeof k.field);
    KEY_TEXTS(X)
#undef X
    if (!good || !name || name->type != JSON_STRING || !token_alg_parse(name->text, &alg))
        return err_set(err, ERR_CONFIG_INVALID, "key %s has a member that is missing or wrong",
                       k.kid[0] ? k.kid : "without kid");
    if (token_key_read_jwk(public, alg, &k.key, err) != ERR_OK) {
        struct err why = *err;
        return err_set(err, ERR_CONFIG_INVALID, "key %s: %.150s", k.kid, why.detail);
    }
    *ret = k;
    return ERR_OK;
}

static enum err_code read_records(const struct json *keys, struct key_set *s, struct err *err)
{
    if (!keys || keys->type != JSON_ARRAY || keys->count > KEY_SET_MAX)
        return err_set(err, ERR_CONFIG_INVALID, "keys is no list of at most %d keys", KEY_SET_MAX);
    s->keys = must_alloc((keys->count + 1) * sizeof *s->keys);
    for (const struct json *record = keys->child; record; record = record->next) {
        if (read_record(record, &s->keys[s->count], err) != ERR_OK)
            return err->code;
        s->count++;
    }
    const char *broken = key_set_broken_rule(s);
    return broken ? err_set(err, ERR_CONFIG_INVALID, "this does not hold: %s", broken) : ERR_OK;
}

static enum err_code read_root(const struct json *root, const char *environment, struct key_set *s,
                               struct err *err)
{
    const struct json *version = json_get(root, "version"), *keys = json_get(root, "keys"),
                      *sum = json_get(root, "sha256");
    char expected[2 * CHECKSUM_BYTES + 1];
    int64_t number;
    if (!version || !json_to_int(version, &number) || number != FORMAT_VERSION)
        return err_set(err, ERR_CONFIG_INVALID, "version is not %d; another program wrote it",
                       FORMAT_VERSION);
    if (!keys || !sum || sum->type != JSON_STRING ||
        !read_text(root, "environment", s->environment, sizeof s->environment))
        return err_set(err, ERR_CONFIG_INVALID, "keys, environment or sha256 is missing");
    checksum(keys, expected);
    if (!str_is(sum->text, expected))
        return err_set(err, ERR_CONFIG_INVALID, "its checksum is wrong; restore it from a backup");
    if (strcmp(s->environment, environment) != 0)
        return err_set(err, ERR_CONFIG_INVALID, "it holds the keys of environment %s, and this is %s",
                       s->environment, environment);
    return read_records(keys, s, err);
}

enum err_code key_set_read(struct str text, const char *environment, struct key_set *ret_set, struct err *err)
{
    struct arena *a CLEANUP(arena_drop) = arena_new(16384);
    struct key_set s = {0};
    const struct json *root;
    if (text.len > KEY_SET_BYTES_MAX)
        return err_set(err, ERR_CONFIG_INVALID, "it is longer than any list of keys");
    if (json_parse(a, text, &root, err) != ERR_OK)
        return err_set(err, ERR_CONFIG_INVALID, "it is no JSON, or a part of it is missing");
    enum err_code code = read_root(root, environment, &s, err);
    if (code == ERR_OK)
        *ret_set = s;
    else
        key_set_free(&s);
    return code;
}
