#include "store/sqlite/sqlite_block.h"

#include <string.h>

#include "base/hash.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum { SUM_BYTES = 8 };

static uint64_t sum_of(struct str content)
{
    static const uint64_t key[2] = {0}; /* against damage, not against somebody */
    return hash_sip(key, content.ptr, content.len);
}

void block_begin(struct strbuf *b)
{
    static const char no_sum[SUM_BYTES];
    strbuf_clear(b);
    strbuf_add(b, no_sum, SUM_BYTES);
}

struct str block_end(struct strbuf *b)
{
    struct str content = {b->ptr + SUM_BYTES, b->len - SUM_BYTES};
    uint64_t sum = sum_of(content);
    memcpy(b->ptr, &sum, SUM_BYTES);
    return content;
}

/* Up to schema 22 the checksum of index entries was another one. */
bool block_content(struct str block, struct str *ret_content)
{
    uint64_t sum;
    if (block.len <= SUM_BYTES)
        return false;
    memcpy(&sum, block.ptr, SUM_BYTES);
    *ret_content = (struct str){block.ptr + SUM_BYTES, block.len - SUM_BYTES};
    return sum == sum_of(*ret_content) ||
           sum == hash_fnv1a(HASH_FNV_START, ret_content->ptr, ret_content->len);
}

enum err_code blocks_each(sqlite3 *db, sqlite3_stmt *q, const char *table, const char *what, block_fn *fn,
                          void *arg, struct err *err)
{
    int rc;
    bool sound = true;
    while (sound && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        struct str block = {sqlite3_column_blob(q, 1), (size_t)sqlite3_column_bytes(q, 1)};
        int64_t number = sqlite3_column_int64(q, 0);
        sound = fn(number, block, arg);
        if (!sound)
            err_set(err, ERR_STORE_CORRUPT, "%s: row %lld, %s, is damaged", table, (long long)number, what);
    }
    sqlite3_reset(q);
    if (!sound)
        return err->code;
    return rc == SQLITE_DONE ? ERR_OK : sqlite_err(db, rc, table, err);
}
