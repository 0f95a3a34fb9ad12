#include "api/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/digest.h"
#include "base/hash.h"
#include "base/must.h"
#include "base/random.h"
#include "lifecycle/client_lifecycle.h"

#include "base/banned.h"

/* A key with a longer list of queues is read with each request. */
enum { CACHE_SLOTS = 256, SECRET_TEXT_LEN = 43, NUMBER_TEXT_LEN = 16, QUEUES_CACHED_MAX = 119 };

struct cached_key {
    int64_t id, client, expires_ms, ends_ms;
    int64_t used_ms; /* as it was noted, or stored */
    bool revoked;
    unsigned scopes;
    uint8_t queues_len; /* 0: every queue */
    char queues[QUEUES_CACHED_MAX];
    bool suspended;
    uint8_t hash[KEY_HASH_BYTES];
    struct uuid client_id;
};

/* One per HTTP thread: direct-mapped, so it is bounded and never needs a sweep. Made when the thread first
 * needs it, and not thread-local itself: every thread of every process would have it. */
struct key_cache {
    struct auth *owner;
    struct key_cache *next;
    uint64_t generation;
    struct cached_key keys[CACHE_SLOTS];
};
static _Thread_local struct key_cache *mine;

struct auth {
    const struct settings *settings;
    struct key_uses *uses;
    _Atomic uint64_t generation;
    _Atomic(struct key_cache *) caches; /* of all threads */
};

struct auth *auth_new(const struct settings *s, struct key_uses *uses)
{
    struct auth *a = must_alloc(sizeof *a);
    a->settings = s;
    a->uses = uses;
    a->generation = 1;
    return a;
}

struct auth *auth_free(struct auth *a)
{
    for (struct key_cache *c = a ? a->caches : NULL, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    mine = NULL; /* tests look up keys on the thread that frees */
    free(a);
    return NULL;
}

void auth_keys_changed(struct auth *a)
{
    atomic_fetch_add(&a->generation, 1);
}

uint64_t auth_generation(const struct auth *a)
{
    return atomic_load(&a->generation);
}

void auth_make_key(struct new_key *ret)
{
    random_bytes(ret->secret, sizeof ret->secret);
    digest_sha256(ret->secret, sizeof ret->secret, ret->hash);
}

static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

struct str auth_key_text(const struct new_key *key, int64_t key_id, char out[API_KEY_TEXT_MAX])
{
    struct strbuf b = {out, 0, API_KEY_TEXT_MAX};
    strbuf_addf(&b, "weir_%016llx_", (unsigned long long)key_id);
    uint32_t bits = 0;
    int have = 0;
    for (size_t i = 0; i < sizeof key->secret; i++) {
        bits = bits << 8 | key->secret[i];
        for (have += 8; have >= 6; have -= 6)
            strbuf_add_char(&b, base64url[bits >> (have - 6) & 63]);
    }
    if (have)
        strbuf_add_char(&b, base64url[bits << (6 - have) & 63]);
    return strbuf_str(&b);
}

static bool parse_number(struct str text, int64_t *ret)
{
    uint64_t v = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                : 16;
        if (digit > 15)
            return false;
        v = v << 4 | digit;
    }
    *ret = (int64_t)v;
    return v >> 63 == 0;
}

static bool parse_secret(struct str text, uint8_t out[32])
{
    uint32_t bits = 0;
    int have = 0;
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *at = memchr(base64url, text.ptr[i], 64);
        if (!at)
            return false;
        bits = bits << 6 | (uint32_t)(at - base64url);
        have += 6;
        if (have >= 8) {
            have -= 8;
            out[n++] = (uint8_t)(bits >> have);
        }
    }
    return n == 32 && (bits & ((1u << have) - 1)) == 0; /* one spelling per key */
}

bool auth_key_parse(struct str text, int64_t *ret_key_id, uint8_t ret_secret[32])
{
    if (text.len != 5 + NUMBER_TEXT_LEN + 1 + SECRET_TEXT_LEN || !str_starts(text, "weir_") ||
        text.ptr[5 + NUMBER_TEXT_LEN] != '_')
        return false;
    struct str number = {text.ptr + 5, NUMBER_TEXT_LEN};
    struct str secret = {text.ptr + 6 + NUMBER_TEXT_LEN, SECRET_TEXT_LEN};
    return parse_number(number, ret_key_id) && parse_secret(secret, ret_secret);
}

struct str webhook_secret_text(struct arena *a, struct str secret)
{
    char *out = arena_alloc(a, 6 + (secret.len + 2) / 3 * 4 + 1);
    memcpy(out, "whsec_", 6);
    int n = EVP_EncodeBlock((unsigned char *)out + 6, (const unsigned char *)secret.ptr, (int)secret.len);
    return (struct str){out, 6 + (size_t)n};
}

/* --- lookup ------------------------------------------------------------------------------------ */

static void make_cache(struct auth *a)
{
    mine = must_alloc(sizeof *mine);
    mine->owner = a;
    mine->next = atomic_load(&a->caches);
    while (!atomic_compare_exchange_weak(&a->caches, &mine->next, mine))
        ;
}

static struct cached_key *slot_of(struct auth *a, int64_t id)
{
    uint64_t generation = atomic_load(&a->generation);
    if (!mine || mine->owner != a)
        make_cache(a);
    if (mine->generation != generation) {
        memset(mine->keys, 0, sizeof mine->keys);
        mine->generation = generation;
    }
    return &mine->keys[hash_mix((uint64_t)id) % CACHE_SLOTS];
}

/* Keys of a deleted client are gone with it; one that was made meanwhile is as unknown. */
static enum err_code look_up_state(struct reader *r, struct arena *arena, struct cached_key *slot,
                                   bool *ret_found, struct err *err)
{
    struct client_state_row row = {.client = slot->client};
    bool found;
    if (r->ops->reader_row(r, &table_client_state_row, &row, arena, &found, err) != ERR_OK)
        return err->code;
    slot->suspended = found && row.state == CLIENT_SUSPENDED;
    *ret_found = !found || row.state != CLIENT_DELETED;
    if (!*ret_found)
        slot->id = 0;
    return ERR_OK;
}

/* After the generation was looked at: the snapshot then has every key change that raised it (api/reads.h). */
static enum err_code look_up(struct reads *reads, struct arena *arena, int64_t id, struct cached_key *slot,
                             struct str *ret_queues, bool *ret_found, struct err *err)
{
    struct api_key_row row = {.id = id};
    struct reader *r = reads_begin(reads, err);
    if (!r)
        return err->code;
    enum err_code code = r->ops->reader_row(r, &table_api_key_row, &row, arena, ret_found, err);
    if (code != ERR_OK || !*ret_found)
        return code;
    *slot = (struct cached_key){.id = id,
                                .client = row.client,
                                .expires_ms = row.expires_ms,
                                .ends_ms = row.ends_ms ? row.ends_ms : INT64_MAX,
                                .used_ms = row.used_ms,
                                .revoked = row.revoked_ms != 0,
                                .scopes = key_scopes_of_stored(row.scopes)};
    *ret_queues = row.queues;
    if (row.queues.len > QUEUES_CACHED_MAX) {
        slot->id = 0;
    } else if (row.queues.len) {
        memcpy(slot->queues, row.queues.ptr, row.queues.len);
        slot->queues_len = (uint8_t)row.queues.len;
    }
    if (row.hash.len != KEY_HASH_BYTES || row.client_uuid.len != sizeof slot->client_id.bytes)
        return err_set(err, ERR_STORE_CORRUPT, "an API key row is damaged");
    memcpy(slot->hash, row.hash.ptr, KEY_HASH_BYTES);
    memcpy(slot->client_id.bytes, row.client_uuid.ptr, sizeof slot->client_id.bytes);
    return look_up_state(r, arena, slot, ret_found, err);
}

static bool is_operator(const struct auth *a, struct str token)
{
    struct str want = str_of(a->settings->operator_token);
    if (!want.len)
        return false;
    uint8_t x[32], y[32]; /* hashed first, so that neither length nor content shows in the time taken */
    digest_sha256(want.ptr, want.len, x);
    digest_sha256(token.ptr, token.len, y);
    return CRYPTO_memcmp(x, y, sizeof x) == 0;
}

static enum err_code refuse(struct err *err)
{
    return err_set(err, ERR_AUTH_INVALID_CREDENTIALS, "the API key is missing, malformed or unknown");
}

static enum err_code check_key(struct auth *a, struct reads *reads, struct arena *arena, struct str token,
                               int64_t now_ms, struct principal *ret_who, struct err *err)
{
    int64_t id;
    uint8_t secret[32], hash[KEY_HASH_BYTES];
    if (!auth_key_parse(token, &id, secret))
        return refuse(err);
    struct cached_key *slot = slot_of(a, id);
    struct str queues = STR_ABSENT;
    bool found = slot->id == id && id != 0;
    if (found && slot->queues_len) /* a copy: the slot may be another key's before the request is over */
        queues = arena_str(arena, (struct str){slot->queues, slot->queues_len});
    if (!found && look_up(reads, arena, id, slot, &queues, &found, err) != ERR_OK) {
        slot->id = 0;
        return err->code;
    }
    digest_sha256(secret, sizeof secret, hash);
    if (!found || CRYPTO_memcmp(hash, slot->hash, sizeof hash) != 0)
        return refuse(err);
    ret_who->client = slot->client; /* known even when refused: the log names it */
    ret_who->client_id = slot->client_id;
    if (slot->revoked || slot->ends_ms <= now_ms)
        return err_set(err, ERR_AUTH_API_KEY_DISABLED, "this API key was revoked or replaced");
    if (slot->expires_ms <= now_ms)
        return err_set(err, ERR_AUTH_TOKEN_EXPIRED, "this API key has expired");
    if (slot->suspended)
        return err_set(err, ERR_AUTH_CLIENT_SUSPENDED, "an operator has suspended this client");
    if (key_use_is_news(slot->used_ms, now_ms) && key_uses_note(a->uses, id, now_ms))
        slot->used_ms = now_ms;
    ret_who->kind = PRINCIPAL_KEY;
    ret_who->key = id;
    ret_who->power = (struct key_power){.scopes = slot->scopes, .queues = queues};
    ret_who->ends_ms = slot->ends_ms < slot->expires_ms ? slot->ends_ms : slot->expires_ms;
    return ERR_OK;
}

/* The token of "Bearer TOKEN"; false when it is nothing of the kind. */
static bool bearer(struct str header, struct str *ret_token)
{
    struct str scheme = str_cut(&header, ' ');
    *ret_token = str_trim(header);
    return str_equal_nocase(scheme, STR("Bearer")) && ret_token->len;
}

bool auth_is_operator(const struct auth *a, struct str header)
{
    struct str token;
    return header.ptr && bearer(header, &token) && is_operator(a, token);
}

enum err_code auth_check(struct auth *a, struct reads *reads, struct arena *arena, struct str header,
                         int64_t now_ms, struct principal *ret_who, struct err *err)
{
    *ret_who = (struct principal){.kind = PRINCIPAL_NONE};
    if (!header.ptr)
        return ERR_OK;
    struct str token;
    if (!bearer(header, &token))
        return refuse(err);
    if (is_operator(a, token)) {
        ret_who->kind = PRINCIPAL_OPERATOR;
        return ERR_OK;
    }
    return check_key(a, reads, arena, token, now_ms, ret_who, err);
}
