#include "api/key_uses.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

enum { SAVED_A_TURN = 512 };

struct key_use {
    int64_t key, at_ms;
};

struct key_uses {
    pthread_mutex_t lock;
    size_t count, saving; /* the first ones are on their way into the store */
    struct key_use list[KEY_USES_MAX];
};

struct key_uses *key_uses_new(void)
{
    struct key_uses *k = must_alloc(sizeof *k);
    pthread_mutex_init(&k->lock, NULL);
    return k;
}

struct key_uses *key_uses_free(struct key_uses *k)
{
    if (k)
        pthread_mutex_destroy(&k->lock);
    free(k);
    return NULL;
}

bool key_uses_note(struct key_uses *k, int64_t key, int64_t now_ms)
{
    pthread_mutex_lock(&k->lock);
    bool room = k->count < KEY_USES_MAX;
    if (room)
        k->list[k->count++] = (struct key_use){key, now_ms};
    pthread_mutex_unlock(&k->lock);
    return room;
}

/* A key that is gone, or that another thread has noted, needs nothing. */
static void save(struct unit *u, const struct key_use *use)
{
    struct api_key_row *row = unit_row(u, &table_api_key_row, &(struct api_key_row){.id = use->key});
    if (!row || !key_use_is_news(row->used_ms, use->at_ms))
        return;
    row->used_ms = use->at_ms;
    unit_update(u, &table_api_key_row, row);
}

bool key_uses_save(struct key_uses *k, struct unit *u)
{
    struct key_use some[SAVED_A_TURN];
    pthread_mutex_lock(&k->lock);
    size_t n = k->saving = k->count < SAVED_A_TURN ? k->count : SAVED_A_TURN;
    memcpy(some, k->list, n * sizeof *some);
    pthread_mutex_unlock(&k->lock);
    for (size_t i = 0; i < n; i++)
        unit_prefetch(u, &table_api_key_row, &(struct api_key_row){.id = some[i].key});
    (void)unit_load(u);
    for (size_t i = 0; i < n && u->load_err.code == ERR_OK; i++) /* else nothing is written */
        save(u, &some[i]);
    return n == SAVED_A_TURN;
}

void key_uses_saved(struct key_uses *k, bool stored)
{
    pthread_mutex_lock(&k->lock);
    if (stored) {
        k->count -= k->saving;
        memmove(k->list, k->list + k->saving, k->count * sizeof *k->list);
    }
    k->saving = 0;
    pthread_mutex_unlock(&k->lock);
}
