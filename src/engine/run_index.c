#include "engine/run_index.h"

#include "base/digest.h"
#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

int64_t run_index_hash(enum run_index_kind kind, struct str bytes)
{
    uint8_t digest[DIGEST_BYTES];
    uint64_t h;
    if (kind == RUN_INDEX_KEY) { /* is a digest already */
        MUST(bytes.len == DIGEST_BYTES);
        memcpy(&h, bytes.ptr, sizeof h);
        return (int64_t)h;
    }
    digest_sha256(bytes.ptr, bytes.len, digest);
    memcpy(&h, digest, sizeof h);
    return (int64_t)(h ^ (uint64_t)kind);
}

void run_index_prefetch(struct unit *u, int64_t run, int64_t hash)
{
    unit_prefetch(u, &table_run_index_row, &(struct run_index_row){.run = run, .hash = hash});
}

static const struct run_index_row *mark_at(struct unit *u, int64_t run, uint64_t hash)
{
    return unit_fetch(u, &table_run_index_row, &(struct run_index_row){.run = run, .hash = (int64_t)hash});
}

int64_t run_index_find(struct unit *u, int64_t run, int64_t hash, run_index_fn *is_it, const void *arg)
{
    const struct run_index_row *m;
    for (uint64_t h = (uint64_t)hash; (m = mark_at(u, run, h)); h++)
        if (is_it(u, run, m->place, arg))
            return m->place;
    return -1;
}

void run_index_add(struct unit *u, int64_t run, int64_t hash, int64_t place)
{
    struct run_index_row *m = ARENA_NEW(u->arena, struct run_index_row);
    uint64_t h = (uint64_t)hash;
    while (mark_at(u, run, h))
        h++;
    *m = (struct run_index_row){.run = run, .hash = (int64_t)h, .place = place};
    unit_insert(u, &table_run_index_row, m);
}
