#include "store/idem_index.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

enum { SLOT_FREE, SLOT_REMOVED, FIRST_SLOTS = 1024 };

uint64_t idem_hash(int64_t client, struct str key)
{
    /* A fixed key: the value is stored. The client number keeps one client's keys from another's chains. */
    const uint64_t seed[2] = {UINT64_C(0x6964656d706f7465), (uint64_t)client};
    uint64_t h = hash_sip(seed, key.ptr, key.len);
    return h <= SLOT_REMOVED ? h + 2 : h;
}

/* With a known hash key a caller could choose idempotency keys that all fall on one slot, so the key is
 * secret. */
static size_t slot_of(uint64_t hash, size_t slot_count)
{
    return hash_secret(&hash, sizeof hash) & (slot_count - 1);
}

static void insert(struct idem_slot *slots, size_t slot_count, uint64_t hash, int64_t job)
{
    size_t i = slot_of(hash, slot_count);
    while (slots[i].hash != SLOT_FREE)
        i = (i + 1) & (slot_count - 1);
    slots[i] = (struct idem_slot){hash, job};
}

static void rebuild(struct idem_index *x)
{
    size_t want = FIRST_SLOTS;
    while (want < x->used * 4)
        want *= 2;
    struct idem_slot *slots = must_alloc(want * sizeof *slots);
    for (size_t i = 0; i < x->slot_count; i++)
        if (x->slots[i].hash > SLOT_REMOVED)
            insert(slots, want, x->slots[i].hash, x->slots[i].job);
    free(x->slots);
    x->slots = slots;
    x->slot_count = want;
    x->filled = x->used;
}

void idem_put(struct idem_index *x, uint64_t hash, int64_t job)
{
    if (x->filled * 2 >= x->slot_count)
        rebuild(x);
    insert(x->slots, x->slot_count, hash, job);
    x->used++;
    x->filled++;
}

void idem_remove(struct idem_index *x, uint64_t hash, int64_t job)
{
    if (!x->slot_count)
        return;
    for (size_t i = slot_of(hash, x->slot_count); x->slots[i].hash != SLOT_FREE;
         i = (i + 1) & (x->slot_count - 1))
        if (x->slots[i].hash == hash && x->slots[i].job == job) {
            x->slots[i] = (struct idem_slot){SLOT_REMOVED, 0};
            x->used--;
            return;
        }
}

int64_t idem_find(const struct idem_index *x, uint64_t hash, size_t *cursor)
{
    if (!x->slot_count)
        return 0;
    size_t i = *cursor ? *cursor - 1 : slot_of(hash, x->slot_count);
    for (; x->slots[i].hash != SLOT_FREE; i = (i + 1) & (x->slot_count - 1))
        if (x->slots[i].hash == hash) {
            *cursor = ((i + 1) & (x->slot_count - 1)) + 1;
            return x->slots[i].job;
        }
    return 0;
}

void idem_clear(struct idem_index *x)
{
    if (x->slot_count > FIRST_SLOTS)
        idem_free(x);
    else if (x->filled)
        memset(x->slots, 0, x->slot_count * sizeof *x->slots);
    x->used = x->filled = 0;
}

void idem_free(struct idem_index *x)
{
    free(x->slots);
    *x = (struct idem_index){0};
}
