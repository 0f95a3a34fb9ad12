#include "store/sqlite/sqlite_marks.h"

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum {
    GROUP_MARKS = 1 << 18, /* a run of a million events has some 15,000 pages of marks: each gets many */
    GROUP_PACKS = 4096,    /* what a reader has to look through stays short, however small commits are */
    SLICE_MIN = 64,
    DROP_PACKS = 8, /* with a commit */
};

enum err_code marks_prepare(struct sqlite_store *s, struct err *err)
{
    struct sqlite_marks *m = &s->marks;
    sqlite3 *db = s->writer.db;
    if (sqlite_prepare(db, MARK_PACKS_SQL, &m->packs, err) != ERR_OK ||
        sqlite_prepare(db, "INSERT INTO mark_packs(n,marks) VALUES(?,?)", &m->put, err) != ERR_OK ||
        sqlite_prepare(db, "DELETE FROM mark_packs WHERE n<?", &m->drop, err) != ERR_OK ||
        sqlite_prepare(db, KNOWN_MARKS_SQL, &m->read_known, err) != ERR_OK)
        return err->code;
    return feed_prepare(db, "INSERT OR IGNORE", &table_run_mark_row, &m->merge, err);
}

void marks_close(struct sqlite_store *s)
{
    struct sqlite_marks *m = &s->marks;
    sqlite3_finalize(m->packs);
    sqlite3_finalize(m->put);
    sqlite3_finalize(m->drop);
    sqlite3_finalize(m->merge);
    sqlite3_finalize(m->read_known);
    known_marks_free(&m->known);
    mark_set_free(&m->young);
    mark_set_free(&m->old);
    mark_sort_free(&m->sort);
    strbuf_free(&m->pack);
}

/* The group is there: it becomes the old one, unless another still is. */
static void turn(struct sqlite_marks *m)
{
    if (m->old.count || (m->young.count < m->group && m->next_pack - m->first_pack < GROUP_PACKS))
        return;
    m->old = m->young;
    m->young = (struct mark_set){0};
    mark_sort_start(&m->sort, &m->old);
    m->merged = 0;
    m->old_below = m->next_pack;
}

static void put_young(const struct run_mark_row *mark, void *arg)
{
    mark_set_put(&((struct sqlite_marks *)arg)->young, mark);
}

enum err_code marks_load(struct sqlite_store *s, struct err *err)
{
    struct sqlite_marks *m = &s->marks;
    if (!m->group)
        m->group = GROUP_MARKS;
    if (mark_packs_each(s->writer.db, m->packs, (struct mark_filter){0}, put_young, m, &m->first_pack,
                        &m->next_pack, err) != ERR_OK)
        return err->code;
    m->next_pack++;
    m->first_pack = m->first_pack ? m->first_pack : m->next_pack;
    turn(m);
    return marks_tend(s, err);
}

enum err_code marks_tend(struct sqlite_store *s, struct err *err)
{
    return known_marks_read(&s->marks.known, s->writer.db, s->marks.read_known, err);
}

/* --- a commit -------------------------------------------------------------------------------------- */

static enum err_code write_pack(struct sqlite_store *s, struct err *err)
{
    struct sqlite_marks *m = &s->marks;
    sqlite3_bind_int64(m->put, 1, m->next_pack);
    sqlite3_bind_blob64(m->put, 2, m->pack.ptr, m->pack.len, SQLITE_STATIC);
    return sqlite_step_done(s->writer.db, m->put, "mark_packs", err);
}

static enum err_code drop_packs(struct sqlite_store *s, int64_t below, struct err *err)
{
    s->marks.drop_below = below;
    sqlite3_bind_int64(s->marks.drop, 1, below);
    return sqlite_step_done(s->writer.db, s->marks.drop, "mark_packs", err);
}

static enum err_code merge_rows(struct sqlite_store *s, const struct run_mark_row *rows, size_t count,
                                struct err *err)
{
    const void **fed = sqlite_fed_room(s, count);
    for (size_t i = 0; i < count; i++) {
        known_marks_add(&s->marks.known, &rows[i]);
        fed[i] = &rows[i];
    }
    return feed_write(s->writer.db, &s->feed, s->marks.merge, &table_run_mark_row, fed, count, err);
}

/* More than came with the commit, so that the old ones are merged before the young ones are as many. */
static enum err_code merge_slice(struct sqlite_store *s, size_t came, struct err *err)
{
    struct sqlite_marks *m = &s->marks;
    size_t left = m->sort.count - m->merged, slice = came + came / 4 + SLICE_MIN;
    if (!left) {
        int64_t below = m->first_pack + DROP_PACKS;
        return drop_packs(s, below < m->old_below ? below : m->old_below, err);
    }
    m->slice = slice < left ? slice : left;
    mark_sort_until(&m->sort, m->merged + m->slice);
    return merge_rows(s, m->sort.rows + m->merged, m->slice, err);
}

/* The commit's own are rows like any others then. */
static enum err_code merge_all(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    struct sqlite_marks *m = &s->marks;
    for (size_t i = 0; i < c->row_count; i++)
        if (c->rows[i].table == &table_run_mark_row)
            known_marks_add(&m->known, c->rows[i].row);
    if (merge_rows(s, m->old.rows, m->old.count, err) != ERR_OK ||
        merge_rows(s, m->young.rows, m->young.count, err) != ERR_OK)
        return err->code;
    return drop_packs(s, m->next_pack, err);
}

enum err_code marks_write(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    struct sqlite_marks *m = &s->marks;
    size_t came = 0;
    m->all_at_once = false;
    m->slice = 0;
    m->drop_below = 0;
    strbuf_clear(&m->pack);
    for (size_t i = 0; i < c->row_count; i++)
        if (c->rows[i].table == &table_run_mark_row) {
            came++;
            m->all_at_once = m->all_at_once || c->rows[i].op != ROW_INSERT;
        }
    if (!came)
        return ERR_OK;
    if (m->all_at_once)
        return merge_all(s, c, err);
    mark_pack_encode(&m->pack, c);
    if (write_pack(s, err) != ERR_OK)
        return err->code;
    return m->old.count ? merge_slice(s, came, err) : ERR_OK;
}

bool marks_ride(const struct sqlite_store *s, const struct row_change *r)
{
    return r->table == &table_run_mark_row && r->op == ROW_INSERT && !s->marks.all_at_once;
}

static void end_merge(struct sqlite_marks *m)
{
    mark_set_free(&m->old);
    mark_sort_free(&m->sort);
    m->merged = 0;
}

void marks_committed(struct sqlite_store *s, const struct change_set *c)
{
    struct sqlite_marks *m = &s->marks;
    m->merged += m->slice;
    if (m->drop_below)
        m->first_pack = m->drop_below;
    if (m->all_at_once) {
        mark_set_free(&m->young);
        end_merge(m);
        return;
    }
    if (m->old.count && m->first_pack >= m->old_below)
        end_merge(m);
    if (!m->pack.len)
        return;
    m->next_pack++;
    for (size_t i = 0; i < c->row_count; i++)
        if (marks_ride(s, &c->rows[i]))
            mark_set_put(&m->young, c->rows[i].row);
    turn(m);
}

enum err_code marks_of_writer(struct sqlite_store *s, struct run_mark_row *row, bool *ret_found,
                              struct err *err)
{
    const struct run_mark_row *found = mark_set_find(&s->marks.young, row->run, row->hash);
    if (!found)
        found = mark_set_find(&s->marks.old, row->run, row->hash);
    *ret_found = found != NULL;
    if (found)
        row->place = found->place;
    if (found || known_marks_lack(&s->marks.known, row))
        return ERR_OK;
    return rows_fetch(&s->writer, &table_run_mark_row, row, NULL, ret_found, err);
}
