/* A block of listings in bytes: entry count, entries (client, bucket and removed, id against the one before),
 * counter count, counters (client, length, bytes with runs of zeros told by number). Numbers are varints:
 * most need one byte. */
#include "store/sqlite/sqlite_listing_block.h"

#include "base/varint.h"
#include "store/row_rules.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum { COUNTS_BYTES_MAX = 4096, REMOVED_BIT = 0x80 };

/* --- counters: mostly zeros -------------------------------------------------------------------- */

static size_t run_length(struct str s, bool zeros)
{
    size_t n = 0;
    while (n < s.len && (s.ptr[n] == 0) == zeros)
        n++;
    return n;
}

static void put_counts(struct strbuf *b, const struct stats_row *row)
{
    struct str rest = row->counts;
    varint_put(b, (uint64_t)row->client);
    varint_put(b, rest.len);
    while (rest.len) {
        size_t zeros = run_length(rest, true);
        varint_put(b, zeros);
        rest = (struct str){rest.ptr + zeros, rest.len - zeros};
        size_t others = run_length(rest, false);
        varint_put(b, others);
        strbuf_add(b, rest.ptr, others);
        rest = (struct str){rest.ptr + others, rest.len - others};
    }
}

static bool take_counts(struct str *s, listing_word_fn *fn, void *arg)
{
    char bytes[COUNTS_BYTES_MAX] = {0};
    uint64_t client, len, at = 0, run;
    if (!varint_take(s, &client) || client == 0 || client >= CLIENT_NUMBER_MAX || !varint_take(s, &len) ||
        len > sizeof bytes)
        return false;
    while (at < len) {
        if (!varint_take(s, &run) || run > len - at)
            return false;
        at += run; /* zeros are there already */
        if (!varint_take(s, &run) || run > len - at || run > s->len)
            return false;
        memcpy(bytes + at, s->ptr, run);
        at += run;
        *s = (struct str){s->ptr + run, s->len - run};
    }
    fn(&(struct listing_word){.entry.owner_key = (int64_t)client, .counts = {bytes, len}}, arg);
    return true;
}

/* --- listing entries --------------------------------------------------------------------------- */

static void put_entries(struct strbuf *b, const struct change_set *c)
{
    int64_t before = 0;
    varint_put(b, c->list_count);
    for (size_t i = 0; i < c->list_count; i++) {
        const struct list_entry *e = &c->list[i];
        varint_put(b, (uint64_t)e->owner_key);
        strbuf_add_char(b, (char)(e->bucket | (e->removed ? REMOVED_BIT : 0)));
        varint_put(b, varint_fold(e->id - before));
        before = e->id;
    }
}

static bool take_entry(struct str *s, int64_t *before, listing_word_fn *fn, void *arg)
{
    uint64_t client, id;
    if (!varint_take(s, &client) || !s->len)
        return false;
    uint8_t bucket = (uint8_t)*s->ptr;
    *s = (struct str){s->ptr + 1, s->len - 1};
    if (!varint_take(s, &id))
        return false;
    *before = (int64_t)((uint64_t)*before + (uint64_t)varint_unfold(id));
    struct listing_word w = {.entry = {.owner_key = (int64_t)client,
                                       .id = *before,
                                       .bucket = bucket & (REMOVED_BIT - 1),
                                       .removed = (bucket & REMOVED_BIT) != 0}};
    fn(&w, arg);
    return true;
}

/* --- the whole --------------------------------------------------------------------------------- */

bool counter_is_deferred(const struct row_change *change)
{
    return change->table == &table_stats_row && change->op == ROW_UPDATE &&
           ((const struct stats_row *)change->row)->counts.len <= COUNTS_BYTES_MAX;
}

void listing_block_encode(struct strbuf *b, const struct change_set *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->row_count; i++)
        count += counter_is_deferred(&c->rows[i]);
    if (!count && !c->list_count)
        return;
    put_entries(b, c);
    varint_put(b, count);
    for (size_t i = 0; i < c->row_count; i++)
        if (counter_is_deferred(&c->rows[i]))
            put_counts(b, c->rows[i].row);
}

bool listing_block_decode(struct str block, listing_word_fn *fn, void *arg)
{
    uint64_t count;
    int64_t id = 0;
    if (!varint_take(&block, &count))
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (!take_entry(&block, &id, fn, arg))
            return false;
    if (!varint_take(&block, &count))
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (!take_counts(&block, fn, arg))
            return false;
    return block.len == 0;
}

struct visit {
    listing_word_fn *fn;
    void *arg;
};

static bool decode(int64_t number, struct str block, void *arg)
{
    const struct visit *v = arg;
    (void)number;
    return listing_block_decode(block, v->fn, v->arg);
}

enum err_code listing_blocks_each(sqlite3 *db, sqlite3_stmt *blocks, listing_word_fn *fn, void *arg,
                                  struct err *err)
{
    struct visit v = {fn, arg};
    return blocks_each(db, blocks, "deferred", "listings and counters", decode, &v, err);
}
