#include "tokens/blocklist.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/must.h"
#include "tokens/expiring_table.h"

#include "base/banned.h"

struct blocklist {
    pthread_mutex_t lock;
    struct expiring_table entries; /* number: issued_until; of a jti INT64_MAX */
};

static const char *const claims[] = {
#define X(name, claim) [BLOCK_##name] = claim,
    BLOCK_KINDS(X)
#undef X
};

const char *block_kind_claim(enum block_kind kind)
{
    return claims[kind];
}

struct blocklist *blocklist_new(size_t max)
{
    struct blocklist *b = must_alloc(sizeof *b);
    pthread_mutex_init(&b->lock, NULL);
    expiring_table_init(&b->entries, max);
    return b;
}

struct blocklist *blocklist_free(struct blocklist *b)
{
    if (!b)
        return NULL;
    expiring_table_free(&b->entries);
    pthread_mutex_destroy(&b->lock);
    free(b);
    return NULL;
}

enum err_code blocklist_add(struct blocklist *b, enum block_kind kind, struct str name, int64_t issued_until,
                            int64_t expires_at, int64_t now, struct err *err)
{
    uint8_t key[TOKEN_DIGEST_BYTES];
    int64_t until = kind == BLOCK_JTI ? INT64_MAX : issued_until;
    token_digest(claims[kind], name, key);
    pthread_mutex_lock(&b->lock);
    struct expiring_entry *e = expiring_find(&b->entries, key);
    if (e)
        expiring_extend(&b->entries, e, expires_at);
    else
        e = expiring_add(&b->entries, key, expires_at, now);
    if (e && e->number < until)
        e->number = until;
    pthread_mutex_unlock(&b->lock);
    return e ? ERR_OK
             : err_set(err, ERR_EXEC_QUEUE_FULL, "the blocklist is full: it holds %zu entries",
                       b->entries.max);
}

bool blocklist_hits(struct blocklist *b, const struct block_question *q, int64_t now)
{
    bool hit = false;
    pthread_mutex_lock(&b->lock);
    bool empty = b->entries.heap.count == 0; /* as a rule: then nothing need be digested */
    pthread_mutex_unlock(&b->lock);
    for (int kind = 0; kind < BLOCK_KIND_COUNT && !hit && !empty; kind++) {
        uint8_t key[TOKEN_DIGEST_BYTES];
        if (!q->names[kind].ptr)
            continue;
        token_digest(claims[kind], q->names[kind], key);
        pthread_mutex_lock(&b->lock);
        const struct expiring_entry *e = expiring_find(&b->entries, key);
        hit = e && (int64_t)e->by_time.key > now && (!q->has_issued_at || q->issued_at <= e->number);
        pthread_mutex_unlock(&b->lock);
    }
    return hit;
}
