#include "api/client_ids.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

enum { PLACES = 1024 }; /* a power of two */

/* `version` is odd during a write; a reader that finds it odd, or changed, has read nothing. */
struct place {
    _Atomic uint64_t version, halves[2];
    _Atomic int64_t client;
};

struct client_ids {
    struct place places[PLACES];
};

struct client_ids *client_ids_new(void)
{
    return must_alloc(sizeof(struct client_ids));
}

struct client_ids *client_ids_free(struct client_ids *c)
{
    free(c);
    return NULL;
}

static struct place *place_of(struct client_ids *c, int64_t client)
{
    return &c->places[(uint64_t)client & (PLACES - 1)];
}

void client_ids_note(struct client_ids *c, int64_t client, const struct uuid *id)
{
    struct place *p = place_of(c, client);
    if (atomic_load_explicit(&p->client, memory_order_relaxed) == client)
        return;
    uint64_t version = atomic_load(&p->version), halves[2];
    if (version & 1 || !atomic_compare_exchange_strong(&p->version, &version, version + 1))
        return; /* another thread is at it; the next request tries again */
    memcpy(halves, id->bytes, sizeof halves);
    atomic_store(&p->halves[0], halves[0]);
    atomic_store(&p->halves[1], halves[1]);
    atomic_store(&p->client, client);
    atomic_store(&p->version, version + 2);
}

bool client_ids_find(struct client_ids *c, int64_t client, struct uuid *ret_id)
{
    struct place *p = place_of(c, client);
    uint64_t version = atomic_load(&p->version);
    uint64_t halves[2] = {atomic_load(&p->halves[0]), atomic_load(&p->halves[1])};
    if (!client || version & 1 || atomic_load(&p->client) != client || atomic_load(&p->version) != version)
        return false;
    memcpy(ret_id->bytes, halves, sizeof halves);
    return true;
}
