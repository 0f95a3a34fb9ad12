#include "tokens/jti_table.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/must.h"
#include "tokens/expiring_table.h"

#include "base/banned.h"

struct jti_table {
    pthread_mutex_t lock;
    struct expiring_table entries;
};

struct jti_table *jti_table_new(size_t max)
{
    struct jti_table *t = must_alloc(sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    expiring_table_init(&t->entries, max);
    return t;
}

struct jti_table *jti_table_free(struct jti_table *t)
{
    if (!t)
        return NULL;
    expiring_table_free(&t->entries);
    pthread_mutex_destroy(&t->lock);
    free(t);
    return NULL;
}

static enum token_reason bind_locked(struct jti_table *t, const uint8_t *jti, const uint8_t *token,
                                     int64_t expires_at, int64_t now)
{
    struct expiring_entry *e = expiring_find(&t->entries, jti);
    if (e && (int64_t)e->by_time.key > now)
        return CRYPTO_memcmp(e->value, token, TOKEN_DIGEST_BYTES) == 0 ? TOKEN_OK : TOKEN_JTI_REUSED;
    e = expiring_add(&t->entries, jti, expires_at, now); /* drops the expired one, too */
    if (!e)
        return TOKEN_JTI_FULL;
    memcpy(e->value, token, TOKEN_DIGEST_BYTES);
    return TOKEN_OK;
}

enum token_reason jti_table_bind(struct jti_table *t, struct str jti, const uint8_t token[TOKEN_DIGEST_BYTES],
                                 int64_t expires_at, int64_t now)
{
    uint8_t jti_digest[TOKEN_DIGEST_BYTES];
    token_digest("jti", jti, jti_digest);
    pthread_mutex_lock(&t->lock);
    enum token_reason reason = bind_locked(t, jti_digest, token, expires_at, now);
    pthread_mutex_unlock(&t->lock);
    return reason;
}
