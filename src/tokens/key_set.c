/* Keys by id and by time; rotation and revocation. */
#include "tokens/key_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json_members.h"
#include "base/must.h"
#include "base/random.h"

#include "base/banned.h"

static const struct {
    const char *name;
    bool verifies;
} states[] = {
#define X(name, wire, verifies) [KEY_##name] = {wire, verifies},
    KEY_STATES(X)
#undef X
};

const char *key_state_name(enum key_state state)
{
    return states[state].name;
}
bool key_state_verifies(enum key_state state)
{
    return states[state].verifies;
}

void key_set_free(struct key_set *s)
{
    for (size_t i = 0; i < s->count; i++)
        token_key_free(&s->keys[i].key);
    free(s->keys);
    *s = (struct key_set){0};
}

bool key_id_is_sound(struct str kid)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    for (size_t i = 0; i < kid.len; i++)
        if (!memchr(allowed, kid.ptr[i], sizeof allowed - 1))
            return false;
    return kid.len >= 1 && kid.len <= KEY_ID_MAX && kid.ptr[0] != '.';
}

struct key_record *key_set_find(const struct key_set *s, struct str kid)
{
    for (size_t i = 0; i < s->count; i++)
        if (str_is(kid, s->keys[i].kid))
            return &s->keys[i];
    return NULL;
}

const struct key_record *key_set_signer(const struct key_set *s, int64_t now)
{
    for (size_t i = s->count; i-- > 0;) {
        const struct key_record *k = &s->keys[i];
        if (k->revoked_at || k->not_before > now)
            continue;
        return k->retires_at && k->retires_at <= now ? NULL : k;
    }
    return NULL;
}

enum key_state key_set_state(const struct key_set *s, const struct key_record *k, int64_t now)
{
    if (k->revoked_at)
        return KEY_REVOKED;
    if (k->retires_at && k->retires_at <= now)
        return KEY_RETIRED;
    if (k->not_before > now)
        return KEY_PENDING;
    return k == key_set_signer(s, now) ? KEY_SIGNING : KEY_VERIFYING;
}

enum token_reason key_set_lookup(const struct key_set *s, struct str kid, int64_t now,
                                 struct token_key *ret_key)
{
    const struct key_record *k = key_set_find(s, kid);
    if (!k)
        return TOKEN_KEY_UNKNOWN;
    enum key_state state = key_set_state(s, k, now);
    if (!key_state_verifies(state))
        return state == KEY_REVOKED ? TOKEN_KEY_REVOKED : TOKEN_KEY_RETIRED;
    *ret_key = token_key_copy(&k->key);
    return TOKEN_OK;
}

const char *key_set_broken_rule(const struct key_set *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct key_record *k = &s->keys[i];
        if (!key_id_is_sound(str_of(k->kid)))
            return "a kid is 1 to 64 letters, digits, '.', '_' or '-'";
        if (key_set_find(s, str_of(k->kid)) != k)
            return "each kid stands once";
        if (k->not_before < k->created_at)
            return "a key signs after it was made";
        if (i && k->not_before < s->keys[i - 1].not_before)
            return "keys are listed by the time they begin to sign";
        if (k->retires_at && k->retires_at < k->not_before)
            return "a key retires after it began to sign";
        if (!k->revoked_at != !k->revoked_by[0])
            return "a revocation has a time and an actor";
    }
    return NULL;
}

/* "prod-20261116-5f3a09c1d2e4b687": kids of two environments never meet. */
static void make_kid(const char *environment, int64_t now, char out[KEY_ID_MAX + 1])
{
    struct tm date;
    time_t seconds = (time_t)now;
    MUST(gmtime_r(&seconds, &date));
    snprintf(out, KEY_ID_MAX + 1, "%s-%04d%02d%02d-%016llx", environment, (date.tm_year + 1900) % 10000,
             date.tm_mon + 1, date.tm_mday, (unsigned long long)random_u64());
}

/* Puts it in its place. Every key before it gets an end: its own successor's beginning plus the overlap. */
static struct key_record *insert(struct key_set *s, const struct key_record *made, int64_t overlap)
{
    size_t place = s->count;
    while (place && s->keys[place - 1].not_before > made->not_before)
        place--;
    s->keys = must_realloc(s->keys, (s->count + 1) * sizeof *s->keys);
    memmove(s->keys + place + 1, s->keys + place, (s->count - place) * sizeof *s->keys);
    s->keys[place] = *made;
    s->count++;
    for (size_t i = 0; i < place; i++) {
        struct key_record *k = &s->keys[i];
        if (!k->retires_at || k->retires_at > made->not_before + overlap)
            k->retires_at = made->not_before + overlap;
    }
    for (size_t i = s->count - 1; i > place; i--) /* the next one that is not revoked goes on signing */
        if (!s->keys[i].revoked_at)
            s->keys[place].retires_at = s->keys[i].not_before + overlap;
    return &s->keys[place];
}

/* When a new key begins to sign. */
static int64_t begins_at(const struct key_set *s, bool at_once, int64_t now)
{
    if (at_once || !s->count)
        return now;
    int64_t last = s->keys[s->count - 1].not_before; /* two rotations in a row, or the clock went back */
    return last >= now + KEY_PUBLISH_SECONDS ? last + 1 : now + KEY_PUBLISH_SECONDS;
}

enum err_code key_set_add(struct key_set *s, const struct token_key *key, struct str actor,
                          const struct key_rules *rules, bool at_once, int64_t now,
                          const struct key_record **ret_record, struct err *err)
{
    struct key_record made = {.created_at = now, .not_before = begins_at(s, at_once, now)};
    MUST(rules->overlap_seconds >= KEY_OVERLAP_SECONDS_MIN);
    if (s->count >= KEY_SET_MAX)
        return err_set(err, ERR_AUTH_KEY_CONFLICT,
                       "the key set is full: %d keys within the history that is kept", KEY_SET_MAX);
    make_kid(s->environment, now, made.kid);
    snprintf(made.created_by, sizeof made.created_by, "%.*s", STR_ARG(actor));
    made.key = token_key_copy(key);
    *ret_record = insert(s, &made, rules->overlap_seconds);
    return ERR_OK;
}

bool key_set_revoke(struct key_record *k, struct str actor, struct str reason, int64_t now)
{
    if (k->revoked_at)
        return false;
    k->revoked_at = now;
    snprintf(k->revoked_by, sizeof k->revoked_by, "%.*s", STR_ARG(actor));
    snprintf(k->revoked_reason, sizeof k->revoked_reason, "%.*s", STR_ARG(reason));
    return true;
}

void key_set_forget(struct key_set *s, const struct key_rules *rules, int64_t now)
{
    size_t kept = 0;
    MUST(rules->history_seconds >= KEY_HISTORY_SECONDS_MIN);
    for (size_t i = 0; i < s->count; i++) {
        struct key_record *k = &s->keys[i];
        int64_t ended = k->revoked_at ? k->revoked_at : k->retires_at;
        if (ended && ended + rules->history_seconds <= now)
            token_key_free(&k->key);
        else
            s->keys[kept++] = *k;
    }
    s->count = kept;
}

void key_set_write_jwks(const struct key_set *s, int64_t now, struct strbuf *out)
{
    struct json_writer w;
    jw_start(&w, out);
    jw_object(&w);
    jw_key(&w, "keys");
    jw_array(&w);
    for (size_t i = 0; i < s->count; i++) {
        if (!key_state_verifies(key_set_state(s, &s->keys[i], now)))
            continue;
        jw_object(&w);
        encode_text(&w, "kid", s->keys[i].kid);
        token_key_write_jwk(&s->keys[i].key, &w);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_object_end(&w);
}
