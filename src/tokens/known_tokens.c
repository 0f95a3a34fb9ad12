#include "tokens/known_tokens.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "base/random.h"

#include "base/banned.h"

enum {
    PLACE_BYTES = 64,   /* of the end of a token, its signature: they say which place it has */
    ENTRY_BYTES = 1024, /* the first chunk of an entry's memory */
};

struct entry {
    struct arena *a; /* holds the entry itself, too */
    struct str token;
    struct known_token what;
};

struct known_tokens {
    pthread_mutex_t lock;
    uint64_t hits;
    uint64_t hash_key[2];
    struct entry *entries[KNOWN_TOKENS]; /* NULL: empty */
};

struct known_tokens *known_tokens_new(void)
{
    struct known_tokens *k = must_alloc(sizeof *k);
    pthread_mutex_init(&k->lock, NULL);
    random_bytes(k->hash_key, sizeof k->hash_key);
    return k;
}

static void drop(struct entry *e)
{
    if (e)
        arena_free(e->a);
}

struct known_tokens *known_tokens_free(struct known_tokens *k)
{
    if (!k)
        return NULL;
    for (size_t i = 0; i < KNOWN_TOKENS; i++)
        drop(k->entries[i]);
    pthread_mutex_destroy(&k->lock);
    free(k);
    return NULL;
}

static struct entry **place_of(struct known_tokens *k, struct str token)
{
    size_t len = token.len < PLACE_BYTES ? token.len : PLACE_BYTES;
    return &k->entries[hash_sip(k->hash_key, token.ptr + token.len - len, len) % KNOWN_TOKENS];
}

static void copy_known(struct arena *a, const struct known_token *from, struct known_token *to)
{
    *to = *from;
    to->kid = arena_str(a, from->kid);
    to->claims = claims_copy(a, &from->claims);
}

/* Its end is a secret: that takes as long for bytes that are nearly right as for any others. */
static bool is_same(struct str left, struct str right)
{
    size_t open = left.len < PLACE_BYTES ? 0 : left.len - PLACE_BYTES;
    return left.len == right.len && memcmp(left.ptr, right.ptr, open) == 0 &&
           CRYPTO_memcmp(left.ptr + open, right.ptr + open, left.len - open) == 0;
}

bool known_tokens_find(struct known_tokens *k, struct str token, struct arena *a, struct known_token *ret)
{
    pthread_mutex_lock(&k->lock);
    const struct entry *e = *place_of(k, token);
    bool known = e && is_same(e->token, token);
    if (known) {
        k->hits++;
        copy_known(a, &e->what, ret);
    }
    pthread_mutex_unlock(&k->lock);
    return known;
}

void known_tokens_keep(struct known_tokens *k, struct str token, const struct known_token *what)
{
    struct arena *a = arena_new(ENTRY_BYTES + token.len);
    struct entry *e = ARENA_NEW(a, struct entry);
    e->a = a;
    e->token = arena_str(a, token);
    copy_known(a, what, &e->what);
    struct entry **place = place_of(k, token);
    pthread_mutex_lock(&k->lock);
    struct entry *former = *place;
    *place = e;
    pthread_mutex_unlock(&k->lock);
    drop(former);
}

uint64_t known_tokens_hits(struct known_tokens *k)
{
    pthread_mutex_lock(&k->lock);
    uint64_t hits = k->hits;
    pthread_mutex_unlock(&k->lock);
    return hits;
}
