#include "store/sqlite/sqlite_index_set.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "base/random.h"

#include "base/banned.h"

enum { SLOTS_FIRST = 1024 };

static size_t slot_of(const struct index_set *s, int64_t run, int64_t hash)
{
    return hash_mix((uint64_t)hash + hash_mix((uint64_t)run ^ s->seed)) & (s->slot_count - 1);
}

/* Where it is, or would go. */
static size_t find_slot(const struct index_set *s, int64_t run, int64_t hash)
{
    size_t at = slot_of(s, run, hash);
    for (; s->slots[at]; at = (at + 1) & (s->slot_count - 1)) {
        const struct run_index_row *m = &s->rows[s->slots[at] - 1];
        if (m->hash == hash && m->run == run)
            break;
    }
    return at;
}

/* Half of the slots are used at most. */
static void grow(struct index_set *s)
{
    if (!s->seed)
        s->seed = random_u64() | 1;
    s->slot_count = s->slot_count ? s->slot_count * 2 : SLOTS_FIRST;
    MUST(s->slot_count <= UINT32_MAX);
    free(s->slots);
    s->slots = must_alloc(s->slot_count * sizeof *s->slots);
    s->rows = must_realloc(s->rows, s->slot_count / 2 * sizeof *s->rows);
    for (size_t i = 0; i < s->count; i++)
        s->slots[find_slot(s, s->rows[i].run, s->rows[i].hash)] = (uint32_t)i + 1;
}

void index_set_put(struct index_set *s, const struct run_index_row *m)
{
    if (s->count == s->slot_count / 2)
        grow(s);
    size_t at = find_slot(s, m->run, m->hash);
    if (s->slots[at])
        return;
    s->rows[s->count++] = *m;
    s->slots[at] = (uint32_t)s->count;
}

const struct run_index_row *index_set_find(const struct index_set *s, int64_t run, int64_t hash)
{
    if (!s->count)
        return NULL;
    size_t at = find_slot(s, run, hash);
    return s->slots[at] ? &s->rows[s->slots[at] - 1] : NULL;
}

void index_set_free(struct index_set *s)
{
    free(s->rows);
    free(s->slots);
    *s = (struct index_set){.seed = s->seed};
}
