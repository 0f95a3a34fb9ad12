/* Merging entries into `list`. They come sorted, so each block of ids they touch is read and written once. */
#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

/* One block of the table and what becomes of it. */
struct place {
    struct sqlite_store *store;
    int64_t client, bucket;
    struct id_block block; /* empty: there is none yet where the first word belongs */
    int64_t next;          /* where the block after it begins */
    int64_t *ids;          /* of the block and the words together */
    size_t count;
    struct strbuf bytes;
};

static void bind_place(const struct place *p, sqlite3_stmt *q, int64_t id)
{
    sqlite3_bind_int64(q, 1, p->client);
    sqlite3_bind_int64(q, 2, p->bucket);
    sqlite3_bind_int64(q, 3, id);
}

/* The block that holds `id` or would. */
static enum err_code find_run(struct place *p, int64_t id, struct err *err)
{
    sqlite3_stmt *q = p->store->list_block;
    bool sound = true;
    p->block.count = 0;
    bind_place(p, q, id);
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW)
        sound = id_block_decode(sqlite3_column_int64(q, 0),
                                (struct str){sqlite3_column_blob(q, 1), (size_t)sqlite3_column_bytes(q, 1)},
                                &p->block);
    sqlite3_reset(q);
    if (!sound)
        return list_damaged(p->block.first, err);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : sqlite_err(p->store->writer.db, rc, "list", err);
}

/* Where the block after it begins. A word alone in its list, as most lists of deliveries have it, belongs to
 * the block that was found, whatever follows. */
static enum err_code find_next(struct place *p, const struct listing_word *words, size_t count,
                               struct err *err)
{
    sqlite3_stmt *q = p->store->list_next;
    bool alone = count == 1 || words[1].entry.owner_key != p->client || words[1].entry.bucket != p->bucket;
    p->next = INT64_MAX;
    if (alone && p->block.count < ID_BLOCK_MAX)
        return ERR_OK;
    bind_place(p, q, words[0].entry.id);
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW)
        p->next = sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : sqlite_err(p->store->writer.db, rc, "list", err);
}

/* Lays the words that belong to this block over its ids; returns how many those are. */
static size_t apply_words(struct place *p, const struct listing_word *words, size_t count)
{
    size_t at = 0, n = 0;
    for (; n < count; n++) {
        const struct list_entry *e = &words[n].entry;
        if (e->owner_key != p->client || e->bucket != p->bucket || e->id >= p->next)
            break;
        while (at < p->block.count && p->block.ids[at] < e->id)
            p->ids[p->count++] = p->block.ids[at++];
        at += at < p->block.count && p->block.ids[at] == e->id;
        if (!e->removed)
            p->ids[p->count++] = e->id;
    }
    while (at < p->block.count)
        p->ids[p->count++] = p->block.ids[at++];
    return n;
}

static enum err_code put_block(struct place *p, int64_t first, const int64_t *ids, size_t count,
                               struct err *err)
{
    sqlite3_stmt *q = p->store->list_put;
    id_block_encode(&p->bytes, first, ids, count);
    bind_place(p, q, first);
    sqlite3_bind_blob64(q, 4, p->bytes.ptr, p->bytes.len, SQLITE_STATIC);
    return sqlite_step_done(p->store->writer.db, q, "list", err);
}

/* In as many blocks as needed. The last ones of a list are filled, since what comes is mostly newer; among
 * others even halves leave room for both. */
static enum err_code write_blocks(struct place *p, struct err *err)
{
    bool is_stored = p->block.count > 0;
    if (!p->count && is_stored) {
        bind_place(p, p->store->list_drop, p->block.first);
        return sqlite_step_done(p->store->writer.db, p->store->list_drop, "list", err);
    }
    size_t blocks = (p->count + ID_BLOCK_MAX - 1) / ID_BLOCK_MAX, size = ID_BLOCK_MAX;
    if (p->next != INT64_MAX && blocks)
        size = (p->count + blocks - 1) / blocks;
    for (size_t at = 0; at < p->count; at += size) {
        size_t n = p->count - at < size ? p->count - at : size;
        int64_t first = at == 0 && is_stored ? p->block.first : p->ids[at];
        if (put_block(p, first, p->ids + at, n, err) != ERR_OK)
            return err->code;
    }
    return ERR_OK;
}

enum err_code list_merge(struct sqlite_store *s, const struct listing_word *words, size_t count,
                         struct err *err)
{
    struct place p = {.store = s, .ids = must_alloc((count + ID_BLOCK_MAX) * sizeof(int64_t))};
    enum err_code code = ERR_OK;
    for (size_t at = 0; at < count && code == ERR_OK;) {
        p.client = words[at].entry.owner_key;
        p.bucket = words[at].entry.bucket;
        p.count = 0;
        code = find_run(&p, words[at].entry.id, err);
        if (code == ERR_OK)
            code = find_next(&p, words + at, count - at, err);
        if (code == ERR_OK) {
            at += apply_words(&p, words + at, count - at);
            code = write_blocks(&p, err);
        }
    }
    strbuf_free(&p.bytes);
    free(p.ids);
    return code;
}
