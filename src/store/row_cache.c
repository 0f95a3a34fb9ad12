#include "store/row_cache.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/must.h"
#include "store/row_bytes.h"

#include "base/banned.h"

enum {
    ROW_BYTES_MAX = 2048, /* a larger one would push many out */
    ROW_BYTES_STEP = 32,  /* so that a number that grows seldom moves its row */
    SLOT_BYTES = 32,      /* the cost of an entry beside its bytes: the map's slot, the allocator's head */
};

struct cached_row {
    struct map_node node;
    struct cached_row *newer, *older;
    uint32_t fixed_bytes, bytes, room; /* the columns that no UPDATE touches stand in front */
    char packed[];
};

struct row_cache {
    struct map rows;
    struct cached_row *newest, *oldest;
    size_t bytes, bytes_max;
    struct strbuf key, packed; /* scratch */
};

struct row_cache *row_cache_new(size_t bytes_max)
{
    struct row_cache *c = must_alloc(sizeof *c);
    c->bytes_max = bytes_max;
    return c;
}

struct row_cache *row_cache_free(struct row_cache *c)
{
    if (!c)
        return NULL;
    row_cache_clear(c);
    map_free(&c->rows);
    strbuf_free(&c->key);
    strbuf_free(&c->packed);
    free(c);
    return NULL;
}

static bool is_kept(const struct table *t)
{
    return t == &table_run_row || t == &table_run_id_row || t == &table_run_step_row ||
           t == &table_tenant_row;
}

/* Texts are borrowed from `bytes`: the table's number, then every column in its order. */
static void unpack(struct str bytes, const struct table *t, void *row)
{
    char keys[64]
        __attribute__((aligned(8))); /* the caller's own are as good, and may be what it holds on to */
    bytes = (struct str){bytes.ptr + 1, bytes.len - 1};
    MUST(t->columns[t->key_count - 1].offset + sizeof(struct str) <= sizeof keys);
    bool whole = row_bytes_take(&bytes, t, 0, t->key_count, keys) &&
                 row_bytes_take(&bytes, t, t->key_count, t->column_count, row);
    MUST(whole);
}

/* --- entries ------------------------------------------------------------------------------------- */

static size_t cost(const struct cached_row *r)
{
    return sizeof *r + r->room + SLOT_BYTES;
}

static void unlink_row(struct row_cache *c, struct cached_row *r)
{
    *(r->newer ? &r->newer->older : &c->newest) = r->older;
    *(r->older ? &r->older->newer : &c->oldest) = r->newer;
}

static void link_newest(struct row_cache *c, struct cached_row *r)
{
    r->newer = NULL;
    r->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = r;
    c->newest = r;
}

static void drop(struct row_cache *c, struct cached_row *r)
{
    unlink_row(c, r);
    map_remove(&c->rows, &r->node);
    c->bytes -= cost(r);
    free(r);
}

/* By the key columns of `row`; leaves them packed in c->key, and their hash. */
static struct cached_row *find(struct row_cache *c, const struct table *t, const void *row,
                               uint64_t *ret_hash)
{
    strbuf_clear(&c->key);
    strbuf_add_char(&c->key, (char)t->number);
    row_bytes_put(&c->key, t, 0, t->key_count, row);
    *ret_hash = hash_mix(hash_fnv1a(HASH_FNV_START, c->key.ptr, c->key.len));
    for (struct map_node *n = map_first(&c->rows, *ret_hash); n; n = map_next(n)) {
        struct cached_row *r = CONTAINER_OF(n, struct cached_row, node);
        if (r->bytes >= c->key.len && memcmp(r->packed, c->key.ptr, c->key.len) == 0)
            return r;
    }
    return NULL;
}

static void make_room(struct row_cache *c)
{
    while (c->bytes > c->bytes_max)
        drop(c, c->oldest);
}

/* Stores the row in c->packed. `r`: the row before, NULL when there is none. */
static void put(struct row_cache *c, struct cached_row *r, uint64_t hash, size_t fixed_bytes)
{
    size_t bytes = c->packed.len;
    if (r && (bytes > r->room || bytes > ROW_BYTES_MAX)) {
        drop(c, r);
        r = NULL;
    }
    if (bytes > ROW_BYTES_MAX)
        return;
    if (!r) {
        size_t room = (bytes + ROW_BYTES_STEP - 1) / ROW_BYTES_STEP * ROW_BYTES_STEP;
        r = must_alloc(sizeof *r + room);
        r->room = (uint32_t)room;
        c->bytes += cost(r);
        map_put(&c->rows, &r->node, hash);
        link_newest(c, r);
    }
    memcpy(r->packed, c->packed.ptr, bytes);
    r->bytes = (uint32_t)bytes;
    r->fixed_bytes = (uint32_t)fixed_bytes;
    make_room(c);
}

/* Columns from `from` on are the row's; those before are in c->packed. */
static void put_rest(struct row_cache *c, const struct table *t, unsigned from, const void *row,
                     struct cached_row *r, uint64_t hash)
{
    row_bytes_put(&c->packed, t, from, t->fixed_count, row);
    size_t fixed_bytes = c->packed.len;
    row_bytes_put(&c->packed, t, t->fixed_count, t->column_count, row);
    put(c, r, hash, fixed_bytes);
}

/* --- what the store calls ------------------------------------------------------------------------ */

bool row_cache_find(struct row_cache *c, const struct table *t, void *row, struct arena *a)
{
    uint64_t hash;
    struct cached_row *r = is_kept(t) ? find(c, t, row, &hash) : NULL;
    if (!r)
        return false;
    unlink_row(c, r);
    link_newest(c, r);
    unpack((struct str){arena_copy(a, r->packed, r->bytes), r->bytes}, t, row);
    return true;
}

void row_cache_keep(struct row_cache *c, const struct table *t, const void *row)
{
    uint64_t hash;
    if (!is_kept(t))
        return;
    struct cached_row *r = find(c, t, row, &hash);
    strbuf_clear(&c->packed);
    strbuf_add(&c->packed, c->key.ptr, c->key.len);
    put_rest(c, t, t->key_count, row, r, hash);
}

/* Of an UPDATE the fixed columns do not count: they stay as they are. */
static void update(struct row_cache *c, const struct table *t, const void *row)
{
    uint64_t hash;
    struct cached_row *r = find(c, t, row, &hash);
    if (!r)
        return;
    strbuf_clear(&c->packed);
    strbuf_add(&c->packed, r->packed, r->fixed_bytes);
    put_rest(c, t, t->fixed_count, row, r, hash);
}

void row_cache_apply(struct row_cache *c, const struct row_change *rows, size_t row_count)
{
    uint64_t hash;
    for (size_t i = 0; i < row_count; i++) {
        const struct row_change *change = &rows[i];
        if (!is_kept(change->table))
            continue;
        if (change->op == ROW_UPDATE) {
            update(c, change->table, change->row);
        } else if (change->op == ROW_INSERT) {
            row_cache_keep(c, change->table, change->row);
        } else {
            struct cached_row *r = find(c, change->table, change->row, &hash);
            if (r)
                drop(c, r);
        }
    }
}

static void free_row(struct map_node *n, void *arg)
{
    (void)arg;
    free(CONTAINER_OF(n, struct cached_row, node));
}

void row_cache_clear(struct row_cache *c)
{
    map_drain(&c->rows, free_row, NULL);
    c->newest = c->oldest = NULL;
    c->bytes = 0;
}

size_t row_cache_bytes(const struct row_cache *c)
{
    return c->bytes;
}

size_t row_cache_rows(const struct row_cache *c)
{
    return c->rows.count;
}
