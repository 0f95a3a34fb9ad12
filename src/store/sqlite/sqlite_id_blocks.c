#include "store/sqlite/sqlite_id_blocks.h"

#include "base/varint.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

void id_block_encode(struct strbuf *b, int64_t first, const int64_t *ids, size_t count)
{
    int64_t before = first;
    strbuf_clear(b);
    for (size_t i = 0; i < count; i++) {
        varint_put(b, (uint64_t)(ids[i] - before));
        before = ids[i];
    }
}

bool id_block_decode(int64_t first, struct str bytes, struct id_block *ret_block)
{
    int64_t before = first;
    ret_block->first = first;
    ret_block->count = 0;
    while (bytes.len) {
        uint64_t more;
        if (ret_block->count == ID_BLOCK_MAX || !varint_take(&bytes, &more) ||
            more > (uint64_t)(INT64_MAX - before) || (ret_block->count && !more))
            return false;
        before += (int64_t)more;
        ret_block->ids[ret_block->count++] = before;
    }
    return first >= 0 && ret_block->count > 0;
}

/* --- list_into_runs(): the rows of list_4 into `list` -------------------------------------------- */

struct filling {
    sqlite3_stmt *put;
    int64_t client, bucket;
    struct id_block block;
    struct strbuf bytes;
};

static int put_block(struct filling *f)
{
    if (!f->block.count)
        return SQLITE_OK;
    id_block_encode(&f->bytes, f->block.ids[0], f->block.ids, f->block.count);
    sqlite3_bind_int64(f->put, 1, f->client);
    sqlite3_bind_int64(f->put, 2, f->bucket);
    sqlite3_bind_int64(f->put, 3, f->block.ids[0]);
    sqlite3_bind_blob64(f->put, 4, f->bytes.ptr, f->bytes.len, SQLITE_STATIC);
    f->block.count = 0;
    (void)sqlite3_step(f->put);
    return sqlite3_reset(f->put);
}

static int take_id(struct filling *f, int64_t client, int64_t bucket, int64_t id)
{
    int rc = SQLITE_OK;
    if (f->block.count == ID_BLOCK_MAX || client != f->client || bucket != f->bucket)
        rc = put_block(f);
    f->client = client;
    f->bucket = bucket;
    f->block.ids[f->block.count++] = id;
    return rc;
}

/* Row by row: sorted by SQLite they would all be in memory at once. */
static int fill(sqlite3 *db, struct filling *f)
{
    sqlite3_stmt *q = NULL;
    int rc =
        sqlite3_prepare_v2(db, "SELECT client,bucket,id FROM list_4 ORDER BY client,bucket,id", -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db, "INSERT INTO list(client,bucket,first,ids) VALUES(?,?,?,?)", -1, &f->put,
                                NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW)
        rc = take_id(f, sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1), sqlite3_column_int64(q, 2));
    if (rc == SQLITE_DONE)
        rc = put_block(f);
    sqlite3_finalize(q);
    return rc;
}

static void list_into_id_blocks(sqlite3_context *c, int arg_count, sqlite3_value **args)
{
    (void)arg_count;
    (void)args;
    struct filling f = {0};
    int rc = fill(sqlite3_context_db_handle(c), &f);
    if (rc != SQLITE_OK)
        sqlite3_result_error_code(c, rc);
    sqlite3_finalize(f.put);
    strbuf_free(&f.bytes);
}

enum err_code id_blocks_register(sqlite3 *db, struct err *err)
{
    int rc = sqlite3_create_function(db, "list_into_runs", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL,
                                     list_into_id_blocks, NULL, NULL);
    return rc == SQLITE_OK ? ERR_OK : sqlite_err(db, rc, "list_into_runs", err);
}
