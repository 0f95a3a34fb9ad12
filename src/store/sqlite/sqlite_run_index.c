/* The run index as deferred rows (sqlite_deferred_rows.h). The key of an index entry is a digest, so those of
 * a commit belong on pages all over their run.
 *
 * A block's content, for each stretch of entries of one run: the run, how many entries, how many bytes their
 * places take, the hashes (eight bytes each), the places as differences. Most entries take nine bytes. */
#include "base/varint.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum {
    HASH_BYTES = 8,
    /* A run of a million events has some 15,000 pages of index entries: each gets many of a group. */
    GROUP_ENTRIES = 1 << 18,
    GROUP_BLOCKS = 4096,
};

static void encode(struct strbuf *b, const void *const *rows, size_t count)
{
    struct strbuf places = {0};
    for (size_t at = 0, end; at < count; at = end) {
        const struct run_index_row *first = rows[at], *m;
        int64_t before = 0;
        strbuf_clear(&places);
        for (end = at; end < count && (m = rows[end])->run == first->run; end++) {
            varint_put(&places, varint_fold((int64_t)((uint64_t)m->place - (uint64_t)before)));
            before = m->place;
        }
        varint_put(b, (uint64_t)first->run);
        varint_put(b, end - at);
        varint_put(b, places.len);
        for (size_t i = at; i < end; i++)
            strbuf_add(b, (const char *)&((const struct run_index_row *)rows[i])->hash, HASH_BYTES);
        strbuf_add(b, places.ptr, places.len);
    }
    strbuf_free(&places);
}

static bool take_stretch(struct str *s, struct waiting_set *into)
{
    uint64_t run, count, place_bytes, more;
    if (!varint_take(s, &run) || !varint_take(s, &count) || !varint_take(s, &place_bytes) ||
        count > s->len / HASH_BYTES || place_bytes > s->len - count * HASH_BYTES)
        return false;
    const char *hashes = s->ptr;
    struct str places = {hashes + count * HASH_BYTES, place_bytes};
    struct waiting_row w = {.run = (int64_t)run};
    *s = (struct str){places.ptr + place_bytes, s->len - count * HASH_BYTES - place_bytes};
    for (uint64_t i = 0; i < count; i++) {
        if (!varint_take(&places, &more))
            return false;
        w.number = (int64_t)((uint64_t)w.number + (uint64_t)varint_unfold(more));
        memcpy(&w.key, hashes + i * HASH_BYTES, HASH_BYTES);
        if (!waiting_put(into, &w))
            return false;
    }
    return places.len == 0;
}

static bool decode(struct str content, struct waiting_set *into)
{
    while (content.len)
        if (!take_stretch(&content, into))
            return false;
    return true;
}

static bool unpack(const struct waiting_row *w, void *row)
{
    *(struct run_index_row *)row = (struct run_index_row){.run = w->run, .hash = w->key, .place = w->number};
    return true;
}

static void to_table(struct sqlite_store *s, const void *row)
{
    known_index_add(&s->known_index, row);
}

static bool lacks(const struct sqlite_store *s, const void *row)
{
    return known_index_lacks(&s->known_index, row);
}

const struct deferred_kind deferred_run_index = {
    .table = &table_run_index_row,
    .area = "deferred_run_index",
    .what = "index entries of runs",
    .group_bytes = GROUP_ENTRIES * sizeof(struct waiting_row),
    .group_blocks = GROUP_BLOCKS,
    .encode = encode,
    .decode = decode,
    .unpack = unpack,
    .to_table = to_table,
    .lacks = lacks,
};
