/* Five bits of one block of 64 bytes: one place in memory for each question. */
#include "store/sqlite/sqlite_known_index.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "base/random.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum {
    BLOCK_WORDS = 8,
    BLOCK_BITS = 512,
    BLOCK_BITS_LOG = 9,
    BLOCKS_LOG = 18, /* 16 MiB */
    BITS_SET = 5,
    READ_AT_ONCE = 4096, /* about a millisecond */
};

struct known_block {
    uint64_t words[BLOCK_WORDS];
};

static void bits_of(const struct known_index *k, const struct run_index_row *m, size_t *ret_block,
                    struct known_block *ret_bits)
{
    uint64_t h = hash_mix((uint64_t)m->hash + hash_mix((uint64_t)m->run ^ k->seed));
    uint64_t which = hash_mix(h ^ k->seed);
    *ret_block = (size_t)(h >> (64 - BLOCKS_LOG));
    *ret_bits = (struct known_block){{0}};
    for (int i = 0; i < BITS_SET; i++, which >>= BLOCK_BITS_LOG) {
        unsigned bit = (unsigned)(which & (BLOCK_BITS - 1));
        ret_bits->words[bit / 64] |= UINT64_C(1) << bit % 64;
    }
}

void known_index_add(struct known_index *k, const struct run_index_row *m)
{
    size_t at;
    struct known_block bits;
    if (!k->blocks) {
        k->seed = random_u64();
        k->blocks = must_alloc(sizeof *k->blocks << BLOCKS_LOG);
    }
    bits_of(k, m, &at, &bits);
    for (int i = 0; i < BLOCK_WORDS; i++)
        k->blocks[at].words[i] |= bits.words[i];
}

bool known_index_lacks(const struct known_index *k, const struct run_index_row *m)
{
    size_t at;
    struct known_block bits;
    if (!k->complete || !k->blocks)
        return k->complete;
    bits_of(k, m, &at, &bits);
    for (int i = 0; i < BLOCK_WORDS; i++)
        if (bits.words[i] & ~k->blocks[at].words[i])
            return true;
    return false;
}

void known_index_free(struct known_index *k)
{
    sqlite3_finalize(k->read);
    free(k->blocks);
    *k = (struct known_index){0};
}

enum err_code known_index_prepare(struct sqlite_store *s, struct err *err)
{
    return sqlite_prepare(
        s->writer.db, "SELECT run,hash FROM run_index WHERE (run,hash)>=(?1,?2) ORDER BY run,hash LIMIT ?3",
        &s->known_index.read, err);
}

enum err_code known_index_tend(struct sqlite_store *s, struct err *err)
{
    struct known_index *k = &s->known_index;
    sqlite3_stmt *q = k->read;
    if (k->complete)
        return ERR_OK;
    if (!k->has_last)
        k->last = (struct run_index_row){.run = INT64_MIN, .hash = INT64_MIN};
    sqlite3_bind_int64(q, 1, k->last.run);
    sqlite3_bind_int64(q, 2, k->last.hash);
    sqlite3_bind_int64(q, 3, READ_AT_ONCE);
    size_t count = 0;
    int rc;
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
        k->last =
            (struct run_index_row){.run = sqlite3_column_int64(q, 0), .hash = sqlite3_column_int64(q, 1)};
        k->has_last = true;
        known_index_add(k, &k->last);
        count++;
    }
    sqlite3_reset(q);
    if (rc != SQLITE_DONE)
        return sqlite_err(s->writer.db, rc, "run_index", err);
    k->complete = count < READ_AT_ONCE;
    return ERR_OK;
}
