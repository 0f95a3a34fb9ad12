/* Counters as a reader sees them: the row of client_stats, unless a later word lies beside the log. */
#include "base/hash.h"
#include "base/map.h"
#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

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

enum err_code counts_fetch(struct sqlite_connection *c, sqlite3_stmt *deferred_rows, struct stats_row *row,
                           struct arena *a, bool *ret_found, struct err *err)
{
    struct one_client o = {.client = row->client, .arena = a};
    const struct listing_visitor v = {.counts = note_one, .arg = &o};
    if (rows_fetch(c, &table_stats_row, row, a, ret_found, err) != ERR_OK ||
        listing_blocks_each(c->db, deferred_rows, &v, err) != ERR_OK)
        return err->code;
    if (*ret_found && o.latest.ptr)
        row->counts = o.latest;
    return ERR_OK;
}

/* --- all of them ------------------------------------------------------------------------------- */

struct latest_word {
    struct map_node node;
    int64_t client;
    struct str counts;
};

struct all_clients {
    struct map words; /* by client */
    struct arena *arena;
    store_row_fn *fn;
    void *arg;
};

static struct latest_word *find_word(const struct all_clients *all, int64_t client)
{
    for (struct map_node *n = map_first(&all->words, hash_mix((uint64_t)client)); n; n = map_next(n)) {
        struct latest_word *w = CONTAINER_OF(n, struct latest_word, node);
        if (w->client == client)
            return w;
    }
    return NULL;
}

static void note_any(int64_t client, struct str counts, void *arg)
{
    struct all_clients *all = arg;
    struct latest_word *w = find_word(all, client);
    if (!w) {
        w = ARENA_NEW(all->arena, struct latest_word);
        w->client = client;
        map_put(&all->words, &w->node, hash_mix((uint64_t)client));
    }
    w->counts = arena_str(all->arena, counts);
}

static bool tell_latest(const void *row, void *arg)
{
    const struct all_clients *all = arg;
    struct stats_row latest = *(const struct stats_row *)row;
    const struct latest_word *w = find_word(all, latest.client);
    if (w)
        latest.counts = w->counts;
    return all->fn(&latest, all->arg);
}

enum err_code counts_scan(struct sqlite_connection *c, sqlite3_stmt *deferred_rows, store_row_fn *fn,
                          void *arg, struct err *err)
{
    struct all_clients all = {.arena = arena_new(1 << 12), .fn = fn, .arg = arg};
    const struct listing_visitor v = {.counts = note_any, .arg = &all};
    enum err_code code = listing_blocks_each(c->db, deferred_rows, &v, err);
    if (code == ERR_OK)
        code = rows_scan(c, &table_stats_row, tell_latest, &all, err);
    map_free(&all.words);
    arena_free(all.arena);
    return code;
}
