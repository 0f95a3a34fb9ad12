/* Merging what lies beside the log into `list` and `client_stats`. Once many entries or commits have
 * gathered, and whenever a commit cannot carry its own: it has no log chunk, drops chunks, or deletes a
 * counter. */
#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum {
    MERGE_ENTRIES = 2000, /* sorted together they share pages */
    MERGE_COMMITS = 512,  /* what a reader lays over the tables stays short */
};

struct counts_word {
    int64_t client;
    size_t nth;
    struct str counts;
};

/* Everything that is to be merged, oldest first. */
struct merging {
    struct entry_list list;
    struct arena *arena;
    struct counts_word *words;
    size_t word_count, word_capacity;
};

static void add_counts(int64_t client, struct str counts, void *arg)
{
    struct merging *m = arg;
    if (m->word_count == m->word_capacity) {
        m->word_capacity = m->word_capacity ? m->word_capacity * 2 : 64;
        m->words = must_realloc(m->words, m->word_capacity * sizeof *m->words);
    }
    m->words[m->word_count] = (struct counts_word){client, m->word_count, arena_str(m->arena, counts)};
    m->word_count++;
}

static void add_entry(const struct list_entry *e, void *arg)
{
    entry_list_add(e, &((struct merging *)arg)->list);
}

static int by_client(const void *a, const void *b)
{
    const struct counts_word *x = a, *y = b;
    if (x->client != y->client)
        return x->client < y->client ? -1 : 1;
    return x->nth < y->nth ? -1 : 1;
}

static enum err_code write_counts(struct sqlite_store *s, struct merging *m, struct err *err)
{
    if (m->word_count)
        qsort(m->words, m->word_count, sizeof *m->words, by_client);
    for (size_t i = 0; i < m->word_count; i++) {
        if (i + 1 < m->word_count && m->words[i + 1].client == m->words[i].client)
            continue; /* a later word follows */
        struct stats_row row = {.client = m->words[i].client, .counts = m->words[i].counts};
        struct row_change change = {&table_stats_row, ROW_UPDATE, &row};
        if (rows_write(&s->writer, &change, err) != ERR_OK)
            return err->code;
    }
    return ERR_OK;
}

static enum err_code write_mark(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    int64_t next = c->chunk_count ? c->first_chunk + (int64_t)c->chunk_count : s->base.next_chunk;
    sqlite3_bind_int64(s->merged_mark, 1, next);
    return sqlite_step_done(s->writer.db, s->merged_mark, "marks", err);
}

static enum err_code merge(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    struct merging m = {.arena = arena_new(1 << 14)};
    const struct aside_visitor v = {add_entry, add_counts, &m};
    enum err_code code = ERR_OK;
    if (s->unmerged_commits)
        code = aside_each(s->writer.db, s->asides, &v, NULL, err);
    for (size_t i = 0; i < c->list_count; i++)
        add_entry(&c->list[i], &m);
    for (size_t i = 0; i < c->row_count; i++)
        if (aside_takes(&c->rows[i])) {
            const struct stats_row *row = c->rows[i].row;
            add_counts(row->client, row->counts, &m);
        }
    if (code == ERR_OK)
        code = list_merge(s, &m.list, err);
    if (code == ERR_OK)
        code = write_counts(s, &m, err);
    if (code == ERR_OK)
        code = write_mark(s, c, err);
    free(m.list.entries);
    free(m.words);
    arena_free(m.arena);
    return code;
}

/* What the commit adds; and does it delete a counter, which no older word may bring back? */
static bool adds_something(const struct change_set *c, bool *ret_deletes)
{
    bool adds = c->list_count > 0;
    *ret_deletes = false;
    for (size_t i = 0; i < c->row_count; i++) {
        adds = adds || aside_takes(&c->rows[i]);
        if (c->rows[i].table == &table_stats_row && c->rows[i].op == ROW_DELETE)
            *ret_deletes = true;
    }
    return adds;
}

enum err_code merge_or_ride(struct sqlite_store *s, const struct change_set *c, struct str *ret_aside,
                            struct err *err)
{
    bool deletes, adds = adds_something(c, &deletes);
    *ret_aside = STR_ABSENT;
    s->merges = (adds && (!c->chunk_count || s->unmerged_entries + c->list_count >= MERGE_ENTRIES ||
                          s->unmerged_commits >= MERGE_COMMITS)) ||
                (s->unmerged_commits && (deletes || c->drop_chunks_below));
    strbuf_clear(&s->aside);
    if (s->merges)
        return merge(s, c, err);
    if (adds) {
        aside_encode(&s->aside, c);
        *ret_aside = (struct str){s->aside.ptr, s->aside.len};
    }
    return ERR_OK;
}

/* Counters that lie beside the log are in memory until they are merged, so the writer never looks there. */
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

void merge_committed(struct sqlite_store *s, const struct change_set *c)
{
    remember_counts(s, c);
    if (s->merges) {
        s->unmerged_commits = s->unmerged_entries = 0;
        counts_drop_idle(&s->base.counts); /* the table has the counters of all */
    } else if (s->aside.len) {
        s->unmerged_commits++;
        s->unmerged_entries += c->list_count;
    }
}

static void count_entry(const struct list_entry *e, void *arg)
{
    (void)e;
    ++*(size_t *)arg;
}

enum err_code merge_load(struct sqlite_store *s, struct err *err)
{
    const struct aside_visitor v = {.entry = count_entry, .arg = &s->unmerged_entries};
    return aside_each(s->writer.db, s->asides, &v, &s->unmerged_commits, err);
}
