/* Listing entries: they are deferred (sqlite_listing_block.h), and many are merged, sorted, into the blocks
 * of `list` together (sqlite_list_write.c); a listing reads both in one snapshot. So a commit touches no page
 * for listing, instead of one random page per job and index. */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

/* The deferred entries of one query. */
struct overlay {
    const struct list_query *query;
    struct listing_words found;
};

static void overlay_add(const struct listing_word *w, void *arg)
{
    struct overlay *o = arg;
    const struct list_query *q = o->query;
    const struct list_entry *e = &w->entry;
    if (!w->counts.ptr && e->owner_key == q->owner_key && e->bucket == q->bucket && e->id < q->below_id &&
        e->id >= q->from_id)
        listing_words_add(w, &o->found);
}

/* --- what is merged ------------------------------------------------------------------------------ */

enum err_code list_damaged(int64_t first, struct err *err)
{
    return err_set(err, ERR_STORE_CORRUPT, "list: the row that begins with job number %lld is damaged",
                   (long long)first);
}

/* The next row's block, of columns `at` and `at` + 1; false at the end and when *code tells of trouble. */
static bool next_block(struct sqlite_reader *r, sqlite3_stmt *q, int at, struct id_block *ret_block,
                       enum err_code *code, struct err *err)
{
    int rc = sqlite3_step(q);
    if (rc != SQLITE_ROW) {
        *code = rc == SQLITE_DONE ? ERR_OK : sqlite_err(r->connection.db, rc, "list", err);
        return false;
    }
    struct str bytes = {sqlite3_column_blob(q, at + 1), (size_t)sqlite3_column_bytes(q, at + 1)};
    if (id_block_decode(sqlite3_column_int64(q, at), bytes, ret_block))
        return true;
    *code = list_damaged(ret_block->first, err);
    return false;
}

/* The merged ids of a query, newest first. */
struct merged {
    struct sqlite_reader *reader;
    const struct list_query *query;
    struct id_block block;
    size_t left; /* of the block */
    enum err_code code;
};

/* -1: no more, or m->code tells why. */
static int64_t merged_next(struct merged *m, struct err *err)
{
    do
        while (m->left) {
            int64_t id = m->block.ids[--m->left];
            if (id < m->query->from_id)
                return -1;
            if (id < m->query->below_id)
                return id;
        }
    while (next_block(m->reader, m->reader->list, 0, &m->block, &m->code, err) && (m->left = m->block.count));
    return -1;
}

/* Merges the merged part with the overlay (sorted newest first). */
/* `words`: in their order, so the newest is the last. */
static enum err_code merge_read(struct sqlite_reader *r, const struct list_query *query,
                                const struct listing_word *words, size_t count, int64_t *ret_ids,
                                size_t *ret_count, struct err *err)
{
    struct merged m = {.reader = r, .query = query};
    sqlite3_bind_int64(r->list, 1, query->owner_key);
    sqlite3_bind_int64(r->list, 2, query->bucket);
    sqlite3_bind_int64(r->list, 3, query->below_id);
    size_t n = 0;
    int64_t merged = merged_next(&m, err);
    while (n < query->limit && (merged >= 0 || count)) {
        const struct list_entry *fresh = count ? &words[count - 1].entry : NULL;
        bool is_merged = !fresh || merged > fresh->id, is_both = fresh && merged == fresh->id;
        if (is_merged)
            ret_ids[n++] = merged;
        else if (!fresh->removed)
            ret_ids[n++] = fresh->id;
        count -= !is_merged;
        if (is_merged || is_both)
            merged = merged_next(&m, err);
    }
    sqlite3_reset(r->list);
    *ret_count = n;
    return m.code;
}

enum err_code list_read(struct reader *base, const struct list_query *q, int64_t *ret_ids, size_t *ret_count,
                        struct err *err)
{
    struct sqlite_reader *r = (struct sqlite_reader *)base;
    struct overlay o = {.query = q};
    enum err_code code = listing_blocks_each(r->connection.db, r->listing_blocks, overlay_add, &o, err);
    size_t count = listing_words_last(&o.found);
    if (code == ERR_OK)
        code = merge_read(r, q, o.found.words, count, ret_ids, ret_count, err);
    listing_words_free(&o.found);
    return code;
}

/* --- every entry ------------------------------------------------------------------------------- */

/* Where the scan is in `list`. */
struct scan {
    struct sqlite_reader *reader;
    struct id_block block;
    size_t at;
    struct list_entry entry; /* the next one, if there is one */
    bool has_entry;
    enum err_code code;
};

static void scan_next(struct scan *s, struct err *err)
{
    sqlite3_stmt *q = s->reader->scan_list;
    bool more = s->at < s->block.count;
    if (!more && next_block(s->reader, q, 2, &s->block, &s->code, err)) {
        s->at = 0;
        more = true;
    }
    struct list_entry before = s->entry;
    s->has_entry = more;
    if (!more)
        return;
    s->entry = (struct list_entry){.owner_key = sqlite3_column_int64(q, 0),
                                   .bucket = (uint8_t)sqlite3_column_int64(q, 1),
                                   .id = s->block.ids[s->at++]};
    if (list_entry_order(&before, &s->entry) >= 0) /* a block reaches into the next */
        s->code = list_damaged(s->block.first, err);
}

static enum err_code scan_merged(struct sqlite_reader *r, const struct listing_word *fresh, size_t count,
                                 store_list_fn *fn, void *arg, struct err *err)
{
    struct scan s = {.reader = r};
    size_t at = 0;
    bool more = true;
    scan_next(&s, err);
    while (more && s.code == ERR_OK && (s.has_entry || at < count)) {
        int order = !s.has_entry ? 1 : at == count ? -1 : list_entry_order(&s.entry, &fresh[at].entry);
        if (order < 0)
            more = fn(&s.entry, arg);
        else if (!fresh[at].entry.removed)
            more = fn(&fresh[at].entry, arg);
        at += order >= 0;
        if (order <= 0)
            scan_next(&s, err);
    }
    sqlite3_reset(r->scan_list);
    return s.code;
}

enum err_code list_scan(struct reader *base, store_list_fn *fn, void *arg, struct err *err)
{
    struct sqlite_reader *r = (struct sqlite_reader *)base;
    struct listing_words waiting = {0};
    enum err_code code =
        listing_blocks_each(r->connection.db, r->listing_blocks, listing_words_add, &waiting, err);
    size_t count = listing_words_last(&waiting);
    if (code == ERR_OK)
        code = scan_merged(r, waiting.words, count, fn, arg, err);
    listing_words_free(&waiting);
    return code;
}
