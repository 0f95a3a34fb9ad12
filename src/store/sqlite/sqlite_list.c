/* Listing entries: they ride beside the log (sqlite_aside.h) and are merged, sorted, into `list` many at a
 * time; a listing reads both in one snapshot. So a commit touches no page for listing, instead of one random
 * page per job and index. */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

static int compare_entries(const struct list_entry *x, const struct list_entry *y)
{
    if (x->client != y->client)
        return x->client < y->client ? -1 : 1;
    if (x->bucket != y->bucket)
        return x->bucket < y->bucket ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* By (client, bucket, id); qsort is not stable, so the array position settles equal ones. */
static int by_key(const void *a, const void *b)
{
    const struct list_entry *const *x = a, *const *y = b;
    int order = compare_entries(*x, *y);
    return order ? order : *x < *y ? -1 : 1;
}

/* A row of `list` as the feed takes it. */
struct list_row {
    int64_t client, bucket, id;
};
static const struct column list_columns[] = {{"client", COLUMN_INT, offsetof(struct list_row, client)},
                                             {"bucket", COLUMN_INT, offsetof(struct list_row, bucket)},
                                             {"id", COLUMN_INT, offsetof(struct list_row, id)}};
const struct table list_table = {.name = "list", .columns = list_columns, .column_count = 3};

static enum err_code delete_entry(struct sqlite_store *s, const struct list_entry *e, struct err *err)
{
    sqlite3_bind_int64(s->list_delete, 1, e->client);
    sqlite3_bind_int64(s->list_delete, 2, e->bucket);
    sqlite3_bind_int64(s->list_delete, 3, e->id);
    return sqlite_step_done(s->writer.db, s->list_delete, "list", err);
}

/* The last word on each key: what is to be there goes in at once, what is not goes out. */
static enum err_code write_words(struct sqlite_store *s, const struct list_entry *const *words, size_t count,
                                 struct err *err)
{
    struct list_row *rows = must_alloc((count + 1) * sizeof *rows);
    const void **fed = sqlite_fed_room(s, count);
    enum err_code code = ERR_OK;
    size_t n = 0;
    for (size_t i = 0; i < count && code == ERR_OK; i++) {
        const struct list_entry *e = words[i];
        if (e->removed) {
            code = delete_entry(s, e, err);
            continue;
        }
        rows[n] = (struct list_row){e->client, e->bucket, e->id};
        fed[n] = &rows[n];
        n++;
    }
    if (code == ERR_OK)
        code = feed_write(s->writer.db, &s->feed, s->list_insert, &list_table, fed, n, err);
    free(rows);
    return code;
}

/* By key, only the last word on each. */
static const struct list_entry **last_words(const struct entry_list *l, size_t *ret_count)
{
    const struct list_entry **sorted = must_alloc((l->count + 1) * sizeof *sorted);
    for (size_t i = 0; i < l->count; i++)
        sorted[i] = &l->entries[i];
    if (l->count)
        qsort(sorted, l->count, sizeof *sorted, by_key);
    size_t n = 0;
    for (size_t i = 0; i < l->count; i++)
        if (i + 1 == l->count || compare_entries(sorted[i], sorted[i + 1]) != 0)
            sorted[n++] = sorted[i];
    *ret_count = n;
    return sorted;
}

void entry_list_add(const struct list_entry *e, void *list)
{
    struct entry_list *l = list;
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? l->capacity * 2 : 256;
        l->entries = must_realloc(l->entries, l->capacity * sizeof *l->entries);
    }
    l->entries[l->count++] = *e;
}

enum err_code list_merge(struct sqlite_store *s, const struct entry_list *l, struct err *err)
{
    size_t count;
    const struct list_entry **words = last_words(l, &count);
    enum err_code code = write_words(s, words, count, err);
    free(words);
    return code;
}

/* What the asides say about the ids of one query: the last word per id wins. */
struct overlay {
    const struct list_query *query;
    struct list_entry *entries;
    size_t count, capacity;
};

static void overlay_add(const struct list_entry *e, void *arg)
{
    struct overlay *o = arg;
    const struct list_query *q = o->query;
    if (e->client != q->client || e->bucket != q->bucket || e->id >= q->below_id || e->id < q->from_id)
        return;
    for (size_t i = o->count; i-- > 0;)
        if (o->entries[i].id == e->id) {
            o->entries[i] = *e;
            return;
        }
    if (o->count == o->capacity) {
        o->capacity = o->capacity ? o->capacity * 2 : 64;
        o->entries = must_realloc(o->entries, o->capacity * sizeof *o->entries);
    }
    o->entries[o->count++] = *e;
}

static int newest_first(const void *a, const void *b)
{
    const struct list_entry *x = a, *y = b;
    return x->id > y->id ? -1 : x->id < y->id;
}

static bool overlay_removed(const struct overlay *o, int64_t id)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->entries[i].id == id)
            return o->entries[i].removed;
    return false;
}

/* Merges the merged part (newest first by the index) with the overlay (sorted newest first). */
static enum err_code merge_read(struct sqlite_reader *r, const struct overlay *o, int64_t *ret_ids,
                                size_t *ret_count, struct err *err)
{
    sqlite3_stmt *q = r->list;
    sqlite3_bind_int64(q, 1, o->query->client);
    sqlite3_bind_int64(q, 2, o->query->bucket);
    sqlite3_bind_int64(q, 3, o->query->below_id);
    sqlite3_bind_int64(q, 4, o->query->from_id);
    size_t at = 0, n = 0;
    int rc = sqlite3_step(q);
    while (n < o->query->limit) {
        while (at < o->count && o->entries[at].removed)
            at++;
        int64_t merged = rc == SQLITE_ROW ? sqlite3_column_int64(q, 0) : -1;
        int64_t fresh = at < o->count ? o->entries[at].id : -1;
        if (merged < 0 && fresh < 0)
            break;
        if (fresh >= merged) {
            ret_ids[n++] = fresh;
            at++;
        } else if (!overlay_removed(o, merged)) {
            ret_ids[n++] = merged;
        }
        if (merged >= fresh)
            rc = sqlite3_step(q);
    }
    sqlite3_reset(q);
    *ret_count = n;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : sqlite_err(r->connection.db, rc, "list", err);
}

enum err_code list_read(struct reader *base, const struct list_query *q, int64_t *ret_ids, size_t *ret_count,
                        struct err *err)
{
    struct sqlite_reader *r = (struct sqlite_reader *)base;
    struct overlay o = {.query = q};
    const struct aside_visitor v = {.entry = overlay_add, .arg = &o};
    enum err_code code = aside_each(r->connection.db, r->asides, &v, NULL, err);
    if (code == ERR_OK) {
        if (o.count)
            qsort(o.entries, o.count, sizeof *o.entries, newest_first);
        code = merge_read(r, &o, ret_ids, ret_count, err);
    }
    free(o.entries);
    return code;
}

/* --- every entry ------------------------------------------------------------------------------- */

static enum err_code scan_merged(struct sqlite_reader *r, const struct list_entry **fresh, size_t count,
                                 store_list_fn *fn, void *arg, struct err *err)
{
    sqlite3_stmt *q = r->scan_list;
    size_t at = 0;
    bool more = true;
    int rc = sqlite3_step(q);
    while (more && (rc == SQLITE_ROW || at < count)) {
        struct list_entry merged = {0};
        if (rc == SQLITE_ROW)
            merged = (struct list_entry){.client = sqlite3_column_int64(q, 0),
                                         .bucket = (uint8_t)sqlite3_column_int64(q, 1),
                                         .id = sqlite3_column_int64(q, 2)};
        int order = rc != SQLITE_ROW ? 1 : at == count ? -1 : compare_entries(&merged, fresh[at]);
        if (order < 0)
            more = fn(&merged, arg);
        else if (!fresh[at]->removed)
            more = fn(fresh[at], arg);
        at += order >= 0;
        if (order <= 0)
            rc = sqlite3_step(q);
    }
    sqlite3_reset(q);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : sqlite_err(r->connection.db, rc, "list", err);
}

enum err_code list_scan(struct reader *base, store_list_fn *fn, void *arg, struct err *err)
{
    struct sqlite_reader *r = (struct sqlite_reader *)base;
    struct entry_list waiting = {0};
    const struct aside_visitor v = {.entry = entry_list_add, .arg = &waiting};
    enum err_code code = aside_each(r->connection.db, r->asides, &v, NULL, err);
    if (code == ERR_OK) {
        size_t count;
        const struct list_entry **fresh = last_words(&waiting, &count);
        code = scan_merged(r, fresh, count, fn, arg, err);
        free(fresh);
    }
    free(waiting.entries);
    return code;
}
