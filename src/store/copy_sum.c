/* How much a store holds, and a digest of it that does not depend on the order of rows: backends may sort
 * texts by rules of their own. */
#include <stddef.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "store/copy_internal.h"

#include "base/banned.h"

enum { TICK_ROWS = 1 << 13 };

const char *copy_part_name(int part)
{
    static const char *const others[] = {"log", "listings", "idempotency keys"};
    return part < COPY_TABLES ? tables[part]->name : others[part - COPY_TABLES];
}

/* --- the parts, one like the other -------------------------------------------------------------- */

struct scan {
    store_row_fn *fn;
    void *arg;
};

static bool tell_chunk(int64_t number, struct str chunk, void *arg)
{
    const struct scan *s = arg;
    const struct copy_chunk item = {number, chunk};
    return s->fn(&item, s->arg);
}

static bool tell_entry(const struct list_entry *entry, void *arg)
{
    const struct scan *s = arg;
    return s->fn(entry, s->arg);
}

static bool tell_idem(const struct idem_entry *entry, void *arg)
{
    const struct scan *s = arg;
    return s->fn(entry, s->arg);
}

enum err_code copy_scan(struct reader *r, int part, store_row_fn *fn, void *arg, struct err *err)
{
    struct scan s = {fn, arg};
    if (part < COPY_TABLES)
        return r->ops->reader_scan(r, tables[part], fn, arg, err);
    if (part == COPY_LOG)
        return r->ops->reader_scan_log(r, 0, tell_chunk, &s, err);
    if (part == COPY_LIST)
        return r->ops->reader_scan_list(r, tell_entry, &s, err);
    return r->ops->reader_scan_idem(r, tell_idem, &s, err);
}

/* --- numbers of chunks -------------------------------------------------------------------------- */

void chunk_numbers_free(struct chunk_numbers *n)
{
    free(n->numbers);
}

static void note_chunk(struct chunk_numbers *n, int64_t number)
{
    if (n->count == n->capacity) {
        n->capacity = n->capacity ? n->capacity * 2 : 1024;
        n->numbers = must_realloc(n->numbers, n->capacity * sizeof *n->numbers);
    }
    n->numbers[n->count++] = number;
}

static bool has_gaps(const struct chunk_numbers *n)
{
    return n->count && n->numbers[n->count - 1] - n->numbers[0] != (int64_t)n->count - 1;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

int64_t chunk_number_of(const struct chunk_numbers *n, int64_t number)
{
    if (!n->renumber)
        return number;
    const int64_t *at = bsearch(&number, n->numbers, n->count, sizeof number, by_number);
    return at ? at - n->numbers + 1 : 0;
}

struct str copy_refs(const struct chunk_numbers *n, struct str refs, struct arena *a)
{
    if (!n->renumber || !refs.len)
        return refs;
    size_t count = log_ref_count(refs);
    uint64_t *moved = ARENA_ARRAY(a, uint64_t, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t ref = log_ref_at(refs, i);
        moved[i] = (uint64_t)chunk_number_of(n, log_ref_chunk(ref)) << 16 | log_ref_offset(ref);
    }
    return (struct str){(const char *)moved, count * sizeof *moved};
}

const struct column *copy_refs_column(const struct table *t, const void *row)
{
    if (t == &table_task_row && task_is_stream(row))
        return NULL; /* a stream's refs are its deliveries */
    for (unsigned i = 0; i < t->column_count; i++)
        if (t->columns[i].has_log_positions)
            return &t->columns[i];
    return NULL;
}

/* --- digests ------------------------------------------------------------------------------------ */

struct summing {
    int part;
    struct chunk_numbers *numbers; /* NULL: as they are */
    struct part_sum *sum;
    uint64_t renumbered; /* digest of the log if its chunks are counted through */
    struct arena *arena;
    const struct copy_watch *watch;
    enum copy_step step;
    uint64_t done, total; /* of all parts */
};

static uint64_t add_int(uint64_t h, int64_t v)
{
    return hash_fnv1a(h, &v, sizeof v);
}

static uint64_t add_str(uint64_t h, struct str s)
{
    h = add_int(h, s.ptr ? (int64_t)s.len : -1);
    return s.len ? hash_fnv1a(h, s.ptr, s.len) : h;
}

/* Counters as they are read: an older program stored fewer. */
static uint64_t hash_stats(const struct stats_row *r)
{
    struct client_counts counts;
    counts_from_bytes(&counts, r->counts);
    return add_str(add_int(HASH_FNV_START, r->client), counts_bytes(&counts));
}

static uint64_t hash_row(const struct summing *s, const struct table *t, const void *row)
{
    if (t == &table_stats_row)
        return hash_stats(row);
    const struct column *refs = copy_refs_column(t, row);
    uint64_t h = HASH_FNV_START;
    for (unsigned i = 0; i < t->column_count; i++) {
        const struct column *c = &t->columns[i];
        if (c->type == COLUMN_INT) {
            h = add_int(h, row_int(row, c));
            continue;
        }
        bool moves = c == refs && s->numbers;
        h = add_str(h, moves ? copy_refs(s->numbers, row_str(row, c), s->arena) : row_str(row, c));
    }
    return h;
}

static uint64_t hash_item(struct summing *s, const void *item)
{
    if (s->part < COPY_TABLES)
        return hash_row(s, tables[s->part], item);
    if (s->part == COPY_LOG) {
        const struct copy_chunk *chunk = item;
        if (s->numbers)
            note_chunk(s->numbers, chunk->number);
        s->renumbered += hash_mix(add_str(add_int(HASH_FNV_START, (int64_t)s->sum->rows + 1), chunk->data));
        return add_str(add_int(HASH_FNV_START, chunk->number), chunk->data);
    }
    if (s->part == COPY_LIST) {
        const struct list_entry *e = item;
        return add_int(add_int(add_int(HASH_FNV_START, e->owner_key), e->bucket), e->id);
    }
    const struct idem_entry *e = item;
    return add_int(add_int(HASH_FNV_START, (int64_t)e->hash), e->job);
}

static bool sum_item(const void *item, void *arg)
{
    struct summing *s = arg;
    s->sum->digest += hash_mix(hash_item(s, item));
    s->sum->rows++;
    arena_reset(s->arena);
    if (++s->done % TICK_ROWS == 0)
        s->watch->progress(s->watch->self, s->step, s->part, s->done, s->total);
    return true;
}

/* The log comes first: what becomes of its numbers decides about the positions in the rows. */
enum err_code copy_sum(struct reader *r, struct chunk_numbers *numbers, bool to_one_writer,
                       const struct copy_watch *watch, enum copy_step step, uint64_t total,
                       struct part_sum ret_sums[COPY_PARTS_MAX], struct err *err)
{
    struct summing s = {
        .numbers = numbers, .arena = arena_new(1 << 12), .watch = watch, .step = step, .total = total};
    enum err_code code = ERR_OK;
    for (int i = 0; i < COPY_PART_COUNT && code == ERR_OK; i++) {
        s.part = (i + COPY_LOG) % COPY_PART_COUNT;
        s.sum = &ret_sums[s.part];
        *s.sum = (struct part_sum){0};
        watch->progress(watch->self, step, s.part, s.done, total);
        code = copy_scan(r, s.part, sum_item, &s, err);
        if (s.part != COPY_LOG || !numbers)
            continue;
        numbers->renumber = to_one_writer && has_gaps(numbers);
        if (numbers->renumber)
            s.sum->digest = s.renumbered;
    }
    arena_free(s.arena);
    return code;
}

uint64_t copy_total(const struct part_sum sums[COPY_PARTS_MAX])
{
    uint64_t total = 0;
    for (int i = 0; i < COPY_PART_COUNT; i++)
        total += sums[i].rows;
    return total;
}
