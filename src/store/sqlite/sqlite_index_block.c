#include "store/sqlite/sqlite_index_block.h"

#include "base/hash.h"
#include "base/varint.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum { HASH_BYTES = 8, SUM_BYTES = 8 };

/* --- into bytes ------------------------------------------------------------------------------------ */

static const struct run_index_row *inserted(const struct row_change *r)
{
    return r->table == &table_run_index_row && r->op == ROW_INSERT ? r->row : NULL;
}

/* Index entries of one run from row `at` on; *ret_end is behind the last. Rows of other tables may lie
 * between. */
static size_t count_stretch(const struct change_set *c, size_t at, int64_t run, size_t *ret_end)
{
    size_t count = 0;
    const struct run_index_row *m;
    *ret_end = at;
    for (size_t i = at; i < c->row_count; i++) {
        if (!(m = inserted(&c->rows[i])))
            continue;
        if (m->run != run)
            break;
        count++;
        *ret_end = i + 1;
    }
    return count;
}

static void put_stretch(struct strbuf *b, struct strbuf *places, const struct change_set *c, size_t at,
                        size_t end)
{
    const struct run_index_row *m;
    int64_t before = 0;
    strbuf_clear(places);
    for (size_t i = at; i < end; i++)
        if ((m = inserted(&c->rows[i]))) {
            varint_put(places, varint_fold((int64_t)((uint64_t)m->place - (uint64_t)before)));
            before = m->place;
        }
    varint_put(b, places->len);
    for (size_t i = at; i < end; i++)
        if ((m = inserted(&c->rows[i])))
            strbuf_add(b, (const char *)&m->hash, HASH_BYTES);
    strbuf_add(b, places->ptr, places->len);
}

void index_block_encode(struct strbuf *b, const struct change_set *c)
{
    static const char no_sum[SUM_BYTES];
    struct strbuf places = {0};
    size_t end;
    strbuf_clear(b);
    for (size_t i = 0; i < c->row_count; i++) {
        const struct run_index_row *m = inserted(&c->rows[i]);
        if (!m)
            continue;
        if (!b->len)
            strbuf_add(b, no_sum, SUM_BYTES);
        varint_put(b, (uint64_t)m->run);
        varint_put(b, count_stretch(c, i, m->run, &end));
        put_stretch(b, &places, c, i, end);
        i = end - 1;
    }
    strbuf_free(&places);
    if (!b->len)
        return;
    uint64_t sum = hash_fnv1a(HASH_FNV_START, b->ptr + SUM_BYTES, b->len - SUM_BYTES);
    memcpy(b->ptr, &sum, SUM_BYTES);
}

/* --- and back -------------------------------------------------------------------------------------- */

static bool take_stretch(struct str *s, struct index_filter f, index_fn *fn, void *arg)
{
    uint64_t run, count, place_bytes, more;
    if (!varint_take(s, &run) || !varint_take(s, &count) || !varint_take(s, &place_bytes) ||
        count > s->len / HASH_BYTES || place_bytes > s->len - count * HASH_BYTES)
        return false;
    const char *hashes = s->ptr;
    struct str places = {hashes + count * HASH_BYTES, place_bytes};
    *s = (struct str){places.ptr + place_bytes, s->len - count * HASH_BYTES - place_bytes};
    if (f.run && *f.run != (int64_t)run)
        return true;
    struct run_index_row m = {.run = (int64_t)run};
    for (uint64_t i = 0; i < count; i++) {
        if (!varint_take(&places, &more))
            return false;
        m.place = (int64_t)((uint64_t)m.place + (uint64_t)varint_unfold(more));
        memcpy(&m.hash, hashes + i * HASH_BYTES, HASH_BYTES);
        if (!f.hash || *f.hash == m.hash)
            fn(&m, arg);
    }
    return places.len == 0;
}

bool index_block_decode(struct str block, struct index_filter f, index_fn *fn, void *arg)
{
    uint64_t sum;
    if (block.len <= SUM_BYTES)
        return false;
    struct str rest = {block.ptr + SUM_BYTES, block.len - SUM_BYTES};
    memcpy(&sum, block.ptr, SUM_BYTES);
    if (sum != hash_fnv1a(HASH_FNV_START, rest.ptr, rest.len))
        return false;
    while (rest.len)
        if (!take_stretch(&rest, f, fn, arg))
            return false;
    return true;
}

enum err_code index_blocks_each(sqlite3 *db, sqlite3_stmt *blocks, struct index_filter f, index_fn *fn,
                                void *arg, int64_t *ret_first, int64_t *ret_last, struct err *err)
{
    int64_t first = 0, last = 0;
    bool sound = true;
    int rc;
    while ((rc = sqlite3_step(blocks)) == SQLITE_ROW) {
        struct str block = {sqlite3_column_blob(blocks, 1), (size_t)sqlite3_column_bytes(blocks, 1)};
        last = sqlite3_column_int64(blocks, 0);
        first = first ? first : last;
        sound = index_block_decode(block, f, fn, arg);
        if (!sound) {
            err_set(err, ERR_STORE_CORRUPT, "mark_packs: row %lld, index entries of runs, is damaged",
                    (long long)last);
            break;
        }
    }
    sqlite3_reset(blocks);
    if (ret_first)
        *ret_first = first;
    if (ret_last)
        *ret_last = last;
    if (!sound)
        return err->code;
    return rc == SQLITE_DONE ? ERR_OK : sqlite_err(db, rc, "mark_packs", err);
}
