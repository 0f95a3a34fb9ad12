#include "store/sqlite/sqlite_run_index.h"

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum {
    GROUP_ENTRIES =
        1 << 18, /* a run of a million events has some 15,000 pages of index entries: each gets many */
    GROUP_BLOCKS = 4096, /* what a reader has to look through stays short, however small commits are */
    SLICE_MIN = 64,
    DROP_BLOCKS = 8, /* with a commit */
};

enum err_code run_index_prepare(struct sqlite_store *s, struct err *err)
{
    struct sqlite_run_index *m = &s->run_index;
    sqlite3 *db = s->writer.db;
    if (sqlite_prepare(db, INDEX_BLOCKS_SQL, &m->blocks, err) != ERR_OK ||
        sqlite_prepare(db, "INSERT INTO mark_packs(n,marks) VALUES(?,?)", &m->put, err) != ERR_OK ||
        sqlite_prepare(db, "DELETE FROM mark_packs WHERE n<?", &m->drop, err) != ERR_OK ||
        sqlite_prepare(db, KNOWN_INDEX_SQL, &m->read_known, err) != ERR_OK)
        return err->code;
    return feed_prepare(db, "INSERT OR IGNORE", &table_run_index_row, &m->merge, err);
}

void run_index_close(struct sqlite_store *s)
{
    struct sqlite_run_index *m = &s->run_index;
    sqlite3_finalize(m->blocks);
    sqlite3_finalize(m->put);
    sqlite3_finalize(m->drop);
    sqlite3_finalize(m->merge);
    sqlite3_finalize(m->read_known);
    known_index_free(&m->known);
    index_set_free(&m->young);
    index_set_free(&m->old);
    index_sort_free(&m->sort);
    strbuf_free(&m->block);
}

/* The group is there: it becomes the old one, unless another still is. */
static void turn(struct sqlite_run_index *m)
{
    if (m->old.count || (m->young.count < m->group && m->next_block - m->first_block < GROUP_BLOCKS))
        return;
    m->old = m->young;
    m->young = (struct index_set){0};
    index_sort_start(&m->sort, &m->old);
    m->merged = 0;
    m->old_below = m->next_block;
}

static void put_young(const struct run_index_row *entry, void *arg)
{
    index_set_put(&((struct sqlite_run_index *)arg)->young, entry);
}

enum err_code run_index_load(struct sqlite_store *s, struct err *err)
{
    struct sqlite_run_index *m = &s->run_index;
    if (!m->group)
        m->group = GROUP_ENTRIES;
    if (index_blocks_each(s->writer.db, m->blocks, (struct index_filter){0}, put_young, m, &m->first_block,
                          &m->next_block, err) != ERR_OK)
        return err->code;
    m->next_block++;
    m->first_block = m->first_block ? m->first_block : m->next_block;
    turn(m);
    return run_index_tend(s, err);
}

enum err_code run_index_tend(struct sqlite_store *s, struct err *err)
{
    return known_index_read(&s->run_index.known, s->writer.db, s->run_index.read_known, err);
}

/* --- a commit -------------------------------------------------------------------------------------- */

static enum err_code write_block(struct sqlite_store *s, struct err *err)
{
    struct sqlite_run_index *m = &s->run_index;
    sqlite3_bind_int64(m->put, 1, m->next_block);
    sqlite3_bind_blob64(m->put, 2, m->block.ptr, m->block.len, SQLITE_STATIC);
    return sqlite_step_done(s->writer.db, m->put, "mark_packs", err);
}

static enum err_code drop_blocks(struct sqlite_store *s, int64_t below, struct err *err)
{
    s->run_index.drop_below = below;
    sqlite3_bind_int64(s->run_index.drop, 1, below);
    return sqlite_step_done(s->writer.db, s->run_index.drop, "mark_packs", err);
}

static enum err_code merge_rows(struct sqlite_store *s, const struct run_index_row *rows, size_t count,
                                struct err *err)
{
    const void **fed = sqlite_fed_room(s, count);
    for (size_t i = 0; i < count; i++) {
        known_index_add(&s->run_index.known, &rows[i]);
        fed[i] = &rows[i];
    }
    return feed_write(s->writer.db, &s->feed, s->run_index.merge, &table_run_index_row, fed, count, err);
}

/* More than came with the commit, so that the old ones are merged before the young ones are as many. */
static enum err_code merge_slice(struct sqlite_store *s, size_t came, struct err *err)
{
    struct sqlite_run_index *m = &s->run_index;
    size_t left = m->sort.count - m->merged, slice = came + came / 4 + SLICE_MIN;
    if (!left) {
        int64_t below = m->first_block + DROP_BLOCKS;
        return drop_blocks(s, below < m->old_below ? below : m->old_below, err);
    }
    m->slice = slice < left ? slice : left;
    index_sort_until(&m->sort, m->merged + m->slice);
    return merge_rows(s, m->sort.rows + m->merged, m->slice, err);
}

/* The commit's own are rows like any others then. */
static enum err_code merge_all(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    struct sqlite_run_index *m = &s->run_index;
    for (size_t i = 0; i < c->row_count; i++)
        if (c->rows[i].table == &table_run_index_row)
            known_index_add(&m->known, c->rows[i].row);
    if (merge_rows(s, m->old.rows, m->old.count, err) != ERR_OK ||
        merge_rows(s, m->young.rows, m->young.count, err) != ERR_OK)
        return err->code;
    return drop_blocks(s, m->next_block, err);
}

enum err_code run_index_write(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    struct sqlite_run_index *m = &s->run_index;
    size_t came = 0;
    m->all_at_once = false;
    m->slice = 0;
    m->drop_below = 0;
    strbuf_clear(&m->block);
    for (size_t i = 0; i < c->row_count; i++)
        if (c->rows[i].table == &table_run_index_row) {
            came++;
            m->all_at_once = m->all_at_once || c->rows[i].op != ROW_INSERT;
        }
    if (!came)
        return ERR_OK;
    if (m->all_at_once)
        return merge_all(s, c, err);
    index_block_encode(&m->block, c);
    if (write_block(s, err) != ERR_OK)
        return err->code;
    return m->old.count ? merge_slice(s, came, err) : ERR_OK;
}

bool run_index_defers(const struct sqlite_store *s, const struct row_change *r)
{
    return r->table == &table_run_index_row && r->op == ROW_INSERT && !s->run_index.all_at_once;
}

static void end_merge(struct sqlite_run_index *m)
{
    index_set_free(&m->old);
    index_sort_free(&m->sort);
    m->merged = 0;
}

void run_index_committed(struct sqlite_store *s, const struct change_set *c)
{
    struct sqlite_run_index *m = &s->run_index;
    m->merged += m->slice;
    if (m->drop_below)
        m->first_block = m->drop_below;
    if (m->all_at_once) {
        index_set_free(&m->young);
        end_merge(m);
        return;
    }
    if (m->old.count && m->first_block >= m->old_below)
        end_merge(m);
    if (!m->block.len)
        return;
    m->next_block++;
    for (size_t i = 0; i < c->row_count; i++)
        if (run_index_defers(s, &c->rows[i]))
            index_set_put(&m->young, c->rows[i].row);
    turn(m);
}

enum err_code run_index_of_writer(struct sqlite_store *s, struct run_index_row *row, bool *ret_found,
                                  struct err *err)
{
    const struct run_index_row *found = index_set_find(&s->run_index.young, row->run, row->hash);
    if (!found)
        found = index_set_find(&s->run_index.old, row->run, row->hash);
    *ret_found = found != NULL;
    if (found)
        row->place = found->place;
    if (found || known_index_lacks(&s->run_index.known, row))
        return ERR_OK;
    return rows_fetch(&s->writer, &table_run_index_row, row, NULL, ret_found, err);
}
