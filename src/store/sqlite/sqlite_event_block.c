#include "store/sqlite/sqlite_event_block.h"

#include "base/hash.h"
#include "base/varint.h"
#include "store/row_bytes.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum { SUM_BYTES = 8 };

static uint64_t sum_of(const char *bytes, size_t len)
{
    static const uint64_t key[2] = {0}; /* against damage, not against somebody */
    return hash_sip(key, bytes, len);
}

void event_block_begin(struct strbuf *b)
{
    static const char no_sum[SUM_BYTES];
    strbuf_clear(b);
    strbuf_add(b, no_sum, SUM_BYTES);
}

struct str event_block_add(struct strbuf *b, const struct run_event_row *e)
{
    static const char no_length[4];
    const struct table *t = &table_run_event_row;
    varint_put(b, (uint64_t)e->run);
    varint_put(b, (uint64_t)e->seq);
    size_t at = b->len;
    strbuf_add(b, no_length, sizeof no_length);
    row_bytes_put(b, t, t->key_count, t->column_count, e);
    uint32_t len = (uint32_t)(b->len - at - sizeof len);
    memcpy(b->ptr + at, &len, sizeof len);
    return (struct str){b->ptr + at + sizeof len, len};
}

void event_block_end(struct strbuf *b)
{
    uint64_t sum = sum_of(b->ptr + SUM_BYTES, b->len - SUM_BYTES);
    memcpy(b->ptr, &sum, SUM_BYTES);
}

static bool take_event(int64_t number, struct str *rest, event_block_fn *fn, void *arg)
{
    uint64_t run, seq;
    uint32_t len;
    if (!varint_take(rest, &run) || !varint_take(rest, &seq) || rest->len < sizeof len)
        return false;
    memcpy(&len, rest->ptr, sizeof len);
    struct str packed = {rest->ptr + sizeof len, len};
    if (len > rest->len - sizeof len)
        return false;
    *rest = (struct str){packed.ptr + len, rest->len - sizeof len - len};
    return fn(number, (int64_t)run, (int64_t)seq, packed, arg);
}

bool event_block_decode(int64_t number, struct str block, event_block_fn *fn, void *arg)
{
    uint64_t sum;
    if (block.len <= SUM_BYTES)
        return false;
    struct str rest = {block.ptr + SUM_BYTES, block.len - SUM_BYTES};
    memcpy(&sum, block.ptr, SUM_BYTES);
    if (sum != sum_of(rest.ptr, rest.len))
        return false;
    while (rest.len)
        if (!take_event(number, &rest, fn, arg))
            return false;
    return true;
}

enum err_code event_blocks_each(sqlite3 *db, sqlite3_stmt *blocks, event_block_fn *fn, void *arg,
                                struct err *err)
{
    int rc;
    bool sound = true;
    while (sound && (rc = sqlite3_step(blocks)) == SQLITE_ROW) {
        struct str block = {sqlite3_column_blob(blocks, 1), (size_t)sqlite3_column_bytes(blocks, 1)};
        int64_t number = sqlite3_column_int64(blocks, 0);
        sound = event_block_decode(number, block, fn, arg);
        if (!sound)
            err_set(err, ERR_STORE_CORRUPT, "event_packs: row %lld, events of runs, is damaged",
                    (long long)number);
    }
    sqlite3_reset(blocks);
    if (!sound)
        return err->code;
    return rc == SQLITE_DONE ? ERR_OK : sqlite_err(db, rc, "event_packs", err);
}
