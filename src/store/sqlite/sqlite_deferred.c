#include "store/sqlite/sqlite_deferred.h"

#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum {
    MERGE_ENTRIES = 2000, /* sorted together they share pages */
    MERGE_ROWS = 512,     /* what a reader lays over the tables stays short */
};

enum err_code deferred_prepare(struct sqlite_store *s, struct err *err)
{
    struct sqlite_deferred *d = &s->deferred;
    sqlite3 *db = s->writer.db;
    if (sqlite_prepare(db, "INSERT INTO deferred(n,listings,chunk,start,log) VALUES(?,?,?,?,?)", &d->put,
                       err) != ERR_OK ||
        sqlite_prepare(db, "DELETE FROM deferred WHERE n<?", &d->drop, err) != ERR_OK)
        return err->code;
    return sqlite_prepare(db, LISTING_BLOCKS_SQL, &d->blocks, err);
}

void deferred_close(struct sqlite_store *s)
{
    struct sqlite_deferred *d = &s->deferred;
    sqlite3_finalize(d->put);
    sqlite3_finalize(d->drop);
    sqlite3_finalize(d->blocks);
    strbuf_free(&d->block);
}

static void count_entry(const struct listing_word *w, void *arg)
{
    *(size_t *)arg += !w->counts.ptr;
}

enum err_code deferred_load(struct sqlite_store *s, struct err *err)
{
    struct sqlite_deferred *d = &s->deferred;
    int64_t rows;
    if (sqlite_number(s->writer.db, "SELECT count(*) FROM deferred", &rows, err) != ERR_OK)
        return err->code;
    d->rows = (size_t)rows;
    return listing_blocks_each(s->writer.db, d->blocks, count_entry, &d->entries, err);
}

/* --- merging listings and counters ----------------------------------------------------------------- */

static enum err_code write_counts(struct sqlite_store *s, const struct listing_word *words, size_t count,
                                  struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct stats_row row = {.client = words[i].entry.owner_key, .counts = words[i].counts};
        struct row_change change = {&table_stats_row, ROW_UPDATE, &row};
        if (rows_write(&s->writer, &change, err) != ERR_OK)
            return err->code;
    }
    return ERR_OK;
}

static void add_own(struct listing_words *w, const struct change_set *c)
{
    for (size_t i = 0; i < c->list_count; i++)
        listing_words_add(&(struct listing_word){.entry = c->list[i]}, w);
    for (size_t i = 0; i < c->row_count; i++)
        if (counter_is_deferred(&c->rows[i])) {
            const struct stats_row *row = c->rows[i].row;
            listing_words_add(&(struct listing_word){.entry.owner_key = row->client, .counts = row->counts},
                              w);
        }
}

static enum err_code merge(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    struct listing_words w = {0};
    enum err_code code = listing_blocks_each(s->writer.db, s->deferred.blocks, listing_words_add, &w, err);
    add_own(&w, c);
    size_t entries = listing_words_last(&w);
    if (code == ERR_OK)
        code = list_merge(s, w.words, entries, err);
    if (code == ERR_OK)
        code = write_counts(s, w.words + entries, w.count - entries, err);
    listing_words_free(&w);
    return code;
}

/* --- a commit -------------------------------------------------------------------------------------- */

static bool deletes_counter(const struct change_set *c)
{
    for (size_t i = 0; i < c->row_count; i++)
        if (c->rows[i].table == &table_stats_row && c->rows[i].op == ROW_DELETE)
            return true;
    return false;
}

static enum err_code put_row(struct sqlite_store *s, struct err *err)
{
    struct sqlite_deferred *d = &s->deferred;
    const struct log_piece *p = &s->log.piece;
    sqlite3_bind_int64(d->put, 1, s->position.commits + 1);
    sqlite3_bind_blob64(d->put, 2, d->block.len ? d->block.ptr : NULL, d->block.len, SQLITE_STATIC);
    if (p->chunk) {
        sqlite3_bind_int64(d->put, 3, p->chunk);
        sqlite3_bind_int64(d->put, 4, (int64_t)p->start);
        sqlite3_bind_blob64(d->put, 5, p->bytes.len ? p->bytes.ptr : "", p->bytes.len, SQLITE_STATIC);
    } else {
        for (int i = 3; i <= 5; i++)
            sqlite3_bind_null(d->put, i);
    }
    return sqlite_step_done(s->writer.db, d->put, "deferred", err);
}

static enum err_code drop_rows(struct sqlite_store *s, struct err *err)
{
    sqlite3_bind_int64(s->deferred.drop, 1, s->position.commits + 1);
    return sqlite_step_done(s->writer.db, s->deferred.drop, "deferred", err);
}

/* No row may stay that would bring back a counter that is deleted, or events of chunks that are dropped. */
enum err_code deferred_write(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    struct sqlite_deferred *d = &s->deferred;
    d->merges = d->rows >= MERGE_ROWS || d->entries + c->list_count >= MERGE_ENTRIES ||
                c->drop_chunks_below || deletes_counter(c);
    strbuf_clear(&d->block);
    if (!d->merges)
        listing_block_encode(&d->block, c);
    else if (merge(s, c, err) != ERR_OK || drop_rows(s, err) != ERR_OK)
        return err->code;
    return log_write(s, c, d->merges, err) == ERR_OK ? put_row(s, err) : err->code;
}

/* Counters that wait are in memory until they are merged, so the writer never looks for them. */
static void remember_counts(struct sqlite_store *s, const struct change_set *c)
{
    for (size_t i = 0; i < c->row_count; i++) {
        const struct stats_row *row = c->rows[i].row;
        if (c->rows[i].table != &table_stats_row)
            continue;
        if (c->rows[i].op == ROW_DELETE)
            counts_remove(&s->base.counts, row->client);
        else if (c->rows[i].op == ROW_UPDATE || counts_find(&s->base.counts, row->client))
            counts_from_bytes(counts_of(&s->base.counts, row->client), row->counts);
    }
}

void deferred_committed(struct sqlite_store *s, const struct change_set *c)
{
    struct sqlite_deferred *d = &s->deferred;
    remember_counts(s, c);
    log_committed(s, c);
    if (d->merges)
        counts_drop_idle(&s->base.counts); /* the table has the counters of all */
    d->entries = d->merges ? 0 : d->entries + c->list_count;
    d->rows = d->merges ? 1 : d->rows + 1;
}
