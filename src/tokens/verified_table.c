#include "tokens/verified_table.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/must.h"
#include "tokens/token_digest.h"

#include "base/banned.h"

enum { PLACES = 8192 };

struct verified_table {
    pthread_mutex_t lock;
    uint64_t hits;
    uint8_t digests[PLACES][TOKEN_DIGEST_BYTES]; /* zero: empty */
};

struct verified_table *verified_table_new(void)
{
    struct verified_table *t = must_alloc(sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

struct verified_table *verified_table_free(struct verified_table *t)
{
    if (!t)
        return NULL;
    pthread_mutex_destroy(&t->lock);
    free(t);
    return NULL;
}

bool verified_table_check(struct verified_table *t, const struct token_key *key,
                          const uint8_t token[TOKEN_DIGEST_BYTES], struct str signed_part,
                          struct str signature)
{
    uint8_t digest[TOKEN_DIGEST_BYTES];
    uint64_t place;
    struct str print = {(const char *)token_key_print(key), TOKEN_KEY_PRINT_BYTES};
    token_digest_pair(print, (struct str){(const char *)token, TOKEN_DIGEST_BYTES}, digest);
    memcpy(&place, digest, sizeof place);
    uint8_t *entry = t->digests[place % PLACES];
    pthread_mutex_lock(&t->lock);
    bool known = CRYPTO_memcmp(entry, digest, TOKEN_DIGEST_BYTES) == 0;
    t->hits += known;
    pthread_mutex_unlock(&t->lock);
    if (known || !token_key_verify(key, signed_part, signature))
        return known;
    pthread_mutex_lock(&t->lock);
    memcpy(entry, digest, TOKEN_DIGEST_BYTES);
    pthread_mutex_unlock(&t->lock);
    return true;
}

uint64_t verified_table_hits(struct verified_table *t)
{
    pthread_mutex_lock(&t->lock);
    uint64_t hits = t->hits;
    pthread_mutex_unlock(&t->lock);
    return hits;
}
