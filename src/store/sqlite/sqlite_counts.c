/* Counters as a reader sees them: the row of client_stats, unless a later word is deferred. */
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

struct one_client {
    int64_t client;
    struct arena *arena;
    struct str latest;
};

static void note_one(const struct listing_word *w, void *arg)
{
    struct one_client *o = arg;
    if (w->counts.ptr && w->entry.owner_key == o->client)
        o->latest = arena_str(o->arena, w->counts);
}

enum err_code counts_fetch(struct sqlite_connection *c, sqlite3_stmt *blocks, struct stats_row *row,
                           struct arena *a, bool *ret_found, struct err *err)
{
    struct one_client o = {.client = row->client, .arena = a};
    if (rows_fetch(c, &table_stats_row, row, a, ret_found, err) != ERR_OK ||
        listing_blocks_each(c->db, blocks, note_one, &o, err) != ERR_OK)
        return err->code;
    if (*ret_found && o.latest.ptr)
        row->counts = o.latest;
    return ERR_OK;
}

struct all_clients {
    struct listing_words words;
    size_t at; /* the next counters: by client, as the rows are */
    store_row_fn *fn;
    void *arg;
};

static void note_any(const struct listing_word *w, void *arg)
{
    if (w->counts.ptr)
        listing_words_add(w, &((struct all_clients *)arg)->words);
}

static bool tell_latest(const void *row, void *arg)
{
    struct all_clients *all = arg;
    struct stats_row latest = *(const struct stats_row *)row;
    const struct listing_word *w = all->words.words;
    while (all->at < all->words.count && w[all->at].entry.owner_key < latest.client)
        all->at++;
    if (all->at < all->words.count && w[all->at].entry.owner_key == latest.client)
        latest.counts = w[all->at].counts;
    return all->fn(&latest, all->arg);
}

enum err_code counts_scan(struct sqlite_connection *c, sqlite3_stmt *blocks, store_row_fn *fn, void *arg,
                          struct err *err)
{
    struct all_clients all = {.fn = fn, .arg = arg};
    enum err_code code = listing_blocks_each(c->db, blocks, note_any, &all, err);
    (void)listing_words_last(&all.words);
    if (code == ERR_OK)
        code = rows_scan(c, &table_stats_row, tell_latest, &all, err);
    listing_words_free(&all.words);
    return code;
}
