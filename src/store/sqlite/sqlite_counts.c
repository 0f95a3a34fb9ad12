/* Counters: the rows of client_stats, unless a later word is deferred. Of the words on a client the last one
 * counts. */
#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

void counts_words_add(int64_t client, struct str counts, void *words)
{
    struct counts_words *w = words;
    if (w->count == w->capacity) {
        w->capacity = w->capacity ? w->capacity * 2 : 64;
        w->words = must_realloc(w->words, w->capacity * sizeof *w->words);
    }
    if (!w->arena)
        w->arena = arena_new(1 << 12);
    w->words[w->count] = (struct counts_word){client, w->count, arena_str(w->arena, counts)};
    w->count++;
}

static int by_client(const void *a, const void *b)
{
    const struct counts_word *x = a, *y = b;
    if (x->client != y->client)
        return x->client < y->client ? -1 : 1;
    return x->nth < y->nth ? -1 : 1;
}

void counts_words_last(struct counts_words *w)
{
    size_t n = 0;
    if (w->count)
        qsort(w->words, w->count, sizeof *w->words, by_client);
    for (size_t i = 0; i < w->count; i++)
        if (i + 1 == w->count || w->words[i + 1].client != w->words[i].client)
            w->words[n++] = w->words[i];
    w->count = n;
}

void counts_words_free(struct counts_words *w)
{
    free(w->words);
    arena_free(w->arena);
}

/* --- reading ----------------------------------------------------------------------------------- */

struct one_client {
    int64_t client;
    struct arena *arena;
    struct str latest;
};

static void note_one(int64_t client, struct str counts, void *arg)
{
    struct one_client *o = arg;
    if (client == o->client)
        o->latest = arena_str(o->arena, counts);
}

enum err_code counts_fetch(struct sqlite_connection *c, sqlite3_stmt *blocks, struct stats_row *row,
                           struct arena *a, bool *ret_found, struct err *err)
{
    struct one_client o = {.client = row->client, .arena = a};
    struct listing_visitor v = {.counts = note_one, .arg = &o};
    if (rows_fetch(c, &table_stats_row, row, a, ret_found, err) != ERR_OK ||
        listing_blocks_each(c->db, blocks, &v, err) != ERR_OK)
        return err->code;
    if (*ret_found && o.latest.ptr)
        row->counts = o.latest;
    return ERR_OK;
}

struct all_clients {
    struct counts_words words; /* by client, as the rows are */
    size_t at;
    store_row_fn *fn;
    void *arg;
};

static bool tell_latest(const void *row, void *arg)
{
    struct all_clients *all = arg;
    const struct counts_words *w = &all->words;
    struct stats_row latest = *(const struct stats_row *)row;
    while (all->at < w->count && w->words[all->at].client < latest.client)
        all->at++;
    if (all->at < w->count && w->words[all->at].client == latest.client)
        latest.counts = w->words[all->at].counts;
    return all->fn(&latest, all->arg);
}

enum err_code counts_scan(struct sqlite_connection *c, sqlite3_stmt *blocks, store_row_fn *fn, void *arg,
                          struct err *err)
{
    struct all_clients all = {.fn = fn, .arg = arg};
    struct listing_visitor v = {.counts = counts_words_add, .arg = &all.words};
    enum err_code code = listing_blocks_each(c->db, blocks, &v, err);
    counts_words_last(&all.words);
    if (code == ERR_OK)
        code = rows_scan(c, &table_stats_row, tell_latest, &all, err);
    counts_words_free(&all.words);
    return code;
}
