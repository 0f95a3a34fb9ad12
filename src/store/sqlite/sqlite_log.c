#include "store/sqlite/sqlite_log.h"

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum {
    SUM_BYTES = LOG_FIRST_OFFSET,
    /* A piece that fills so much of a page is better a chunk of its own: it would be written twice. */
    PIECE_BYTES_MAX = LOG_CHUNK_BYTES * 3 / 4,
};

enum err_code log_prepare(struct sqlite_store *s, struct err *err)
{
    sqlite3 *db = s->writer.db;
    struct sqlite_log *l = &s->log;
    if (sqlite_prepare(db, "INSERT INTO log(g,data) VALUES(?,?)", &l->put, err) != ERR_OK ||
        sqlite_prepare(db, "DELETE FROM log WHERE g<?", &l->drop, err) != ERR_OK ||
        sqlite_prepare(db, "INSERT OR REPLACE INTO marks(name,value) VALUES('next_chunk',?)", &l->count_on,
                       err) != ERR_OK)
        return err->code;
    return sqlite_prepare(db, LOG_PIECES_SQL, &l->pieces, err);
}

void log_close(struct sqlite_store *s)
{
    struct sqlite_log *l = &s->log;
    sqlite3_finalize(l->put);
    sqlite3_finalize(l->drop);
    sqlite3_finalize(l->count_on);
    sqlite3_finalize(l->pieces);
    strbuf_free(&l->piece.bytes);
}

/* --- reading --------------------------------------------------------------------------------------- */

/* The newest piece: it says how far the chunk goes, and brings the checksum. */
static void put_last(struct open_chunk *o, int64_t number, size_t start, struct str piece)
{
    *o = (struct open_chunk){.is_open = true, .number = number, .len = start + piece.len - SUM_BYTES};
    memcpy(o->bytes, piece.ptr, SUM_BYTES);
}

/* Puts the piece of the statement's row before those that follow it and begin at *begin. */
static bool put_piece(sqlite3_stmt *q, struct open_chunk *o, size_t *begin)
{
    int64_t number = sqlite3_column_int64(q, 0), start = sqlite3_column_int64(q, 1);
    struct str piece = {sqlite3_column_blob(q, 2), (size_t)sqlite3_column_bytes(q, 2)};
    if (start < SUM_BYTES || start > LOG_CHUNK_BYTES || piece.len < SUM_BYTES ||
        piece.len - SUM_BYTES > LOG_CHUNK_BYTES - (size_t)start)
        return false;
    if (!o->is_open) {
        put_last(o, number, (size_t)start, piece);
        *begin = o->len;
    }
    size_t len = piece.len - SUM_BYTES;
    if (number != o->number || (size_t)start + len != *begin)
        return false;
    memcpy(o->bytes + start, piece.ptr + SUM_BYTES, len);
    *begin = (size_t)start;
    return true;
}

enum err_code open_chunk_read(sqlite3 *db, sqlite3_stmt *pieces, struct open_chunk *ret, struct err *err)
{
    size_t begin = LOG_CHUNK_BYTES;
    int rc;
    ret->is_open = false;
    while ((rc = sqlite3_step(pieces)) == SQLITE_ROW)
        if (!put_piece(pieces, ret, &begin) || begin == SUM_BYTES)
            break;
    if (rc == SQLITE_ROW && !ret->is_open) /* the newest one is damaged */
        *ret = (struct open_chunk){.is_open = true, .number = sqlite3_column_int64(pieces, 0)};
    sqlite3_reset(pieces);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : sqlite_err(db, rc, "deferred", err);
}

/* To a chunk whose checksum is wrong nothing is added: it is told damaged for ever, and what comes is not. */
static void show_open(struct sqlite_store *s)
{
    const struct open_chunk *o = &s->log.open;
    bool extends = o->is_open && log_chunk_is_sound((struct str){o->bytes, o->len});
    s->base.open_bytes = extends ? o->len : 0;
}

enum err_code log_load(struct sqlite_store *s, struct err *err)
{
    struct store *b = &s->base;
    struct sqlite_log *l = &s->log;
    if (sqlite_number(s->writer.db, NEXT_CHUNK_SQL, &b->next_chunk, err) != ERR_OK ||
        sqlite_number(s->writer.db, "SELECT coalesce(min(g),0) FROM log", &b->first_chunk, err) != ERR_OK ||
        open_chunk_read(s->writer.db, l->pieces, &l->open, err) != ERR_OK)
        return err->code;
    if (!b->first_chunk)
        b->first_chunk = l->open.is_open ? l->open.number : b->next_chunk;
    show_open(s);
    return ERR_OK;
}

/* --- a commit -------------------------------------------------------------------------------------- */

static enum err_code put_chunk(struct sqlite_store *s, int64_t number, struct str bytes, struct err *err)
{
    sqlite3_bind_int64(s->log.put, 1, number);
    sqlite3_bind_blob64(s->log.put, 2, bytes.len ? bytes.ptr : "", bytes.len, SQLITE_STATIC);
    return sqlite_step_done(s->writer.db, s->log.put, "log", err);
}

/* Nothing will be added to it any more. */
static enum err_code put_whole(struct sqlite_store *s, struct err *err)
{
    struct open_chunk *o = &s->log.next;
    bool was_open = o->is_open;
    o->is_open = false;
    return was_open ? put_chunk(s, o->number, (struct str){o->bytes, o->len}, err) : ERR_OK;
}

/* One that is too short or too long is never open: it is no chunk. */
static void take_chunk(struct open_chunk *o, int64_t number, struct str bytes)
{
    o->is_open = bytes.len >= LOG_FIRST_OFFSET && bytes.len <= LOG_CHUNK_BYTES;
    o->number = number;
    o->len = bytes.len;
    if (o->is_open)
        memcpy(o->bytes, bytes.ptr, bytes.len);
}

/* The last one stays open; *ret_start is where what this commit adds to it begins. */
static enum err_code put_chunks(struct sqlite_store *s, const struct change_set *c, size_t *ret_start,
                                struct err *err)
{
    struct open_chunk *o = &s->log.next;
    size_t i = 0;
    *ret_start = o->len;
    if (c->first_offset) {
        MUST(o->is_open && o->number == c->first_chunk && o->len == c->first_offset &&
             c->chunks[0].len <= LOG_CHUNK_BYTES - o->len);
        log_chunk_extend(o->bytes, o->len, c->chunks[0]);
        o->len += c->chunks[i++].len;
    }
    for (; i < c->chunk_count; i++) {
        int64_t number = c->first_chunk + (int64_t)i;
        if (put_whole(s, err) != ERR_OK)
            return err->code;
        take_chunk(o, number, c->chunks[i]);
        if (!o->is_open && put_chunk(s, number, c->chunks[i], err) != ERR_OK)
            return err->code;
        *ret_start = SUM_BYTES;
    }
    return ERR_OK;
}

static enum err_code make_piece(struct sqlite_store *s, size_t start, struct err *err)
{
    struct open_chunk *o = &s->log.next;
    struct log_piece *p = &s->log.piece;
    if (!o->is_open)
        return ERR_OK;
    if (o->len - start >= PIECE_BYTES_MAX)
        return put_whole(s, err);
    p->chunk = o->number;
    p->start = start;
    strbuf_add(&p->bytes, o->bytes, SUM_BYTES);
    strbuf_add(&p->bytes, o->bytes + start, o->len - start);
    return ERR_OK;
}

static enum err_code drop_chunks(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    struct sqlite_log *l = &s->log;
    int64_t next = c->first_chunk + (int64_t)c->chunk_count;
    sqlite3_bind_int64(l->drop, 1, c->drop_chunks_below);
    if (sqlite_step_done(s->writer.db, l->drop, "log", err) != ERR_OK)
        return err->code;
    if (c->drop_chunks_below < next)
        return ERR_OK;
    sqlite3_bind_int64(l->count_on, 1, next); /* the log is empty: its numbers go on all the same */
    return sqlite_step_done(s->writer.db, l->count_on, "marks", err);
}

enum err_code log_write(struct sqlite_store *s, const struct change_set *c, bool whole, struct err *err)
{
    struct sqlite_log *l = &s->log;
    size_t start;
    l->next = l->open;
    l->piece.chunk = 0;
    strbuf_clear(&l->piece.bytes);
    if (l->next.is_open && l->next.number < c->drop_chunks_below)
        l->next.is_open = false;
    if (put_chunks(s, c, &start, err) != ERR_OK)
        return err->code;
    if ((whole || c->chunk_count) && make_piece(s, whole ? SUM_BYTES : start, err) != ERR_OK)
        return err->code;
    return c->drop_chunks_below ? drop_chunks(s, c, err) : ERR_OK;
}

void log_committed(struct sqlite_store *s, const struct change_set *c)
{
    s->log.open = s->log.next;
    s->base.open_bytes = s->log.open.is_open ? s->log.open.len : 0;
    if (c->drop_chunks_below)
        s->base.first_chunk = c->drop_chunks_below;
}
