#include "engine/run_marks.h"

#include "base/digest.h"
#include "base/hash.h"
#include "base/must.h"

#include "base/banned.h"

int64_t run_mark_hash(enum mark_kind kind, struct str bytes)
{
    uint8_t digest[DIGEST_BYTES];
    uint64_t h;
    if (kind == MARK_KEY) { /* is a digest already */
        MUST(bytes.len == DIGEST_BYTES);
        memcpy(&h, bytes.ptr, sizeof h);
        return (int64_t)h;
    }
    digest_sha256(bytes.ptr, bytes.len, digest);
    memcpy(&h, digest, sizeof h);
    return (int64_t)(h ^ (uint64_t)kind);
}

void run_mark_want(struct unit *u, int64_t run, int64_t hash)
{
    unit_want(u, &table_run_mark_row, &(struct run_mark_row){.run = run, .hash = hash});
}

static const struct run_mark_row *mark_at(struct unit *u, int64_t run, uint64_t hash)
{
    return unit_get(u, &table_run_mark_row, &(struct run_mark_row){.run = run, .hash = (int64_t)hash});
}

int64_t run_mark_find(struct unit *u, int64_t run, int64_t hash, run_mark_fn *is_it, const void *arg)
{
    const struct run_mark_row *m;
    for (uint64_t h = (uint64_t)hash; (m = mark_at(u, run, h)); h++)
        if (is_it(u, run, m->place, arg))
            return m->place;
    return -1;
}

void run_mark_add(struct unit *u, int64_t run, int64_t hash, int64_t place)
{
    struct run_mark_row *m = ARENA_NEW(u->arena, struct run_mark_row);
    uint64_t h = (uint64_t)hash;
    while (mark_at(u, run, h))
        h++;
    *m = (struct run_mark_row){.run = run, .hash = (int64_t)h, .place = place};
    unit_insert(u, &table_run_mark_row, m);
}
