#include "store/copy.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "store/copy_internal.h"

#include "base/banned.h"

enum {
    COMMIT_ITEMS = 4000,
    COMMIT_CHUNKS = 1000,
    COMMIT_BYTES = 8 << 20, /* a commit is in memory twice */
};

/* Store numbers of the target. `copy.part` is the part under way + 1. */
#define NUMBER_SOURCE "copy.source"
#define NUMBER_PART   "copy.part"
#define NUMBER_ROWS   "copy.rows"

struct copying {
    struct reader *from;
    struct store *to;
    const struct copy_watch *watch;
    struct copy_result *result;
    struct chunk_numbers numbers;
    int64_t source_digest;
    int part;
    uint64_t
        part_rows; /* of this part: seen in the source, so many are in the target after the next commit */
    uint64_t skip; /* of this part: there already */
    uint64_t done, total;
    /* the next commit */
    struct arena *arena;
    size_t count;
    struct row_change *rows;
    struct str *chunks;
    int64_t first_chunk;
    struct list_entry *list;
    struct idem_entry *idem;
    enum err_code code;
    struct err *err;
};

/* --- store numbers -------------------------------------------------------------------------------- */

static enum err_code read_number(struct reader *r, const char *name, int64_t *ret, struct err *err)
{
    return r->ops->reader_number(r, name, ret, err);
}

enum err_code store_copy_is_unfinished(struct reader *r, bool *ret_unfinished, struct err *err)
{
    int64_t source = 0;
    if (r->ops->reader_begin(r, err) != ERR_OK)
        return err->code;
    enum err_code code = read_number(r, NUMBER_SOURCE, &source, err);
    r->ops->reader_end(r);
    *ret_unfinished = source != 0;
    return code;
}

enum err_code store_copy_finish(struct store *to, struct err *err)
{
    static const struct store_number none[] = {{NUMBER_SOURCE, 0}, {NUMBER_PART, 0}, {NUMBER_ROWS, 0}};
    struct change_set c = {.first_chunk = to->next_chunk, .numbers = none, .number_count = LENGTH_OF(none)};
    return to->ops->commit(to, &c, err);
}

/* What is copied, in one number that is never 0. */
static int64_t digest_of(const struct part_sum sums[COPY_PARTS_MAX])
{
    uint64_t h = HASH_FNV_START;
    for (int i = 0; i < COPY_PART_COUNT; i++)
        h = hash_mix(h + sums[i].rows * 3 + sums[i].digest);
    return (int64_t)(h >> 1 | 1);
}

/* --- one commit ----------------------------------------------------------------------------------- */

static void start_commit(struct copying *c)
{
    arena_reset(c->arena);
    c->count = 0;
    c->rows = ARENA_ARRAY(c->arena, struct row_change, COMMIT_ITEMS);
    c->chunks = ARENA_ARRAY(c->arena, struct str, COMMIT_CHUNKS);
    c->list = ARENA_ARRAY(c->arena, struct list_entry, COMMIT_ITEMS);
    c->idem = ARENA_ARRAY(c->arena, struct idem_entry, COMMIT_ITEMS);
}

static enum err_code commit(struct copying *c, int part, uint64_t rows)
{
    const struct store_number numbers[] = {
        {NUMBER_SOURCE, c->source_digest}, {NUMBER_PART, part + 1}, {NUMBER_ROWS, (int64_t)rows}};
    struct change_set s = {
        .first_chunk = c->to->next_chunk, .numbers = numbers, .number_count = LENGTH_OF(numbers)};
    if (c->part < COPY_TABLES) {
        s.rows = c->rows;
        s.row_count = c->count;
    } else if (c->part == COPY_LOG && c->count) {
        s.chunks = c->chunks;
        s.chunk_count = c->count;
        s.first_chunk = c->first_chunk;
    } else if (c->part == COPY_LIST) {
        s.list = c->list;
        s.list_count = c->count;
    } else if (c->part == COPY_IDEM) {
        s.idem_add = c->idem;
        s.idem_add_count = c->count;
    }
    c->code = c->to->ops->commit(c->to, &s, c->err);
    if (c->code == ERR_OK)
        c->result->copied += c->count;
    start_commit(c);
    c->watch->progress(c->watch->self, COPY_MOVES, c->part, c->done, c->total);
    return c->code;
}

/* --- one item ------------------------------------------------------------------------------------- */

static void take_row(struct copying *c, const void *from)
{
    const struct table *t = tables[c->part];
    void *row = arena_alloc(c->arena, t->row_size);
    memcpy(row, from, t->row_size);
    const struct column *refs = copy_refs_column(t, from);
    for (unsigned i = 0; i < t->column_count; i++)
        if (t->columns[i].type != COLUMN_INT) {
            struct str *text = (struct str *)(void *)((char *)row + t->columns[i].offset);
            *text = &t->columns[i] == refs ? copy_refs(&c->numbers, *text, c->arena) : *text;
            *text = arena_str(c->arena, *text);
        }
    c->rows[c->count++] = (struct row_change){t, ROW_INSERT, row};
}

static void take_item(struct copying *c, const void *item)
{
    if (c->part < COPY_TABLES) {
        take_row(c, item);
    } else if (c->part == COPY_LOG) {
        const struct copy_chunk *chunk = item;
        if (!c->count)
            c->first_chunk = chunk_number_of(&c->numbers, chunk->number);
        c->chunks[c->count++] = arena_str(c->arena, chunk->data);
    } else if (c->part == COPY_LIST) {
        c->list[c->count++] = *(const struct list_entry *)item;
    } else {
        c->idem[c->count++] = *(const struct idem_entry *)item;
    }
}

/* Chunks of a commit follow each other. */
static bool opens_gap(const struct copying *c, const void *item)
{
    const struct copy_chunk *chunk = item;
    return c->part == COPY_LOG && c->count &&
           chunk_number_of(&c->numbers, chunk->number) != c->first_chunk + (int64_t)c->count;
}

static bool is_full(const struct copying *c)
{
    return c->count == (c->part == COPY_LOG ? COMMIT_CHUNKS : COMMIT_ITEMS) ||
           arena_bytes(c->arena) >= COMMIT_BYTES;
}

static bool copy_item(const void *item, void *arg)
{
    struct copying *c = arg;
    if (c->part_rows < c->skip) {
        c->part_rows++;
        return true;
    }
    if (opens_gap(c, item) && commit(c, c->part, c->part_rows) != ERR_OK)
        return false;
    take_item(c, item);
    c->part_rows++;
    c->done++;
    return !is_full(c) || commit(c, c->part, c->part_rows) == ERR_OK;
}

static enum err_code copy_part(struct copying *c)
{
    c->part_rows = 0;
    start_commit(c);
    enum err_code code = copy_scan(c->from, c->part, copy_item, c, c->err);
    if (code != ERR_OK || c->code != ERR_OK)
        return c->err->code;
    c->skip = 0;
    return commit(c, c->part + 1, 0);
}

/* --- where it begins ------------------------------------------------------------------------------ */

static bool note_any(const void *item, void *arg)
{
    (void)item;
    *(bool *)arg = true;
    return false;
}

static enum err_code refuse_filled(struct reader *target, struct err *err)
{
    for (int part = 0; part < COPY_PART_COUNT; part++) {
        bool any = false;
        if (copy_scan(target, part, note_any, &any, err) != ERR_OK)
            return err->code;
        if (any)
            return err_set(err, ERR_JOB_CONFLICT,
                           "the target is not empty (%s) and holds no copy that broke off; give another one",
                           copy_part_name(part));
    }
    return ERR_OK;
}

/* How far an earlier copy came. */
static enum err_code find_place(struct copying *c, struct reader *target)
{
    int64_t source, part, rows;
    if (read_number(target, NUMBER_SOURCE, &source, c->err) != ERR_OK ||
        read_number(target, NUMBER_PART, &part, c->err) != ERR_OK ||
        read_number(target, NUMBER_ROWS, &rows, c->err) != ERR_OK)
        return c->err->code;
    if (!source)
        return refuse_filled(target, c->err);
    if (source != c->source_digest || part < 1 || part > COPY_PART_COUNT + 1 || rows < 0)
        return err_set(c->err, ERR_JOB_CONFLICT,
                       "the target holds a part of another copy, or the source has changed since; "
                       "empty it and begin again");
    c->part = (int)part - 1;
    c->skip = (uint64_t)rows;
    for (int i = 0; i < c->part; i++)
        c->done += c->result->source[i].rows;
    c->done += c->skip;
    c->result->resumed = c->done;
    return ERR_OK;
}

/* --- the whole ------------------------------------------------------------------------------------ */

static enum err_code with_reader(struct copying *c, enum err_code (*fn)(struct copying *c, struct reader *r))
{
    struct reader *r;
    if (c->to->ops->reader_open(c->to, &r, c->err) != ERR_OK)
        return c->err->code;
    enum err_code code = r->ops->reader_begin(r, c->err);
    if (code == ERR_OK) {
        code = fn(c, r);
        r->ops->reader_end(r);
    }
    r->ops->reader_close(r);
    return code;
}

/* New chunks must not take the numbers of old ones, also when those were purged. Behind a log that is not
 * empty one writer goes on without a gap. */
static enum err_code carry_next_chunk(struct copying *c)
{
    int64_t next;
    if (c->numbers.count && !c->to->shared)
        return ERR_OK;
    if (read_number(c->from, STORE_NUMBER_NEXT_CHUNK, &next, c->err) != ERR_OK)
        return c->err->code;
    const struct store_number number = {STORE_NUMBER_NEXT_CHUNK, next};
    struct change_set s = {.first_chunk = c->to->next_chunk, .numbers = &number, .number_count = 1};
    return c->to->ops->commit(c->to, &s, c->err);
}

static enum err_code sum_target(struct copying *c, struct reader *target)
{
    return copy_sum(target, NULL, false, c->watch, COPY_COUNTS_TARGET, c->total, c->result->target, c->err);
}

static bool sums_are_equal(const struct copy_result *r)
{
    for (int i = 0; i < COPY_PART_COUNT; i++)
        if (r->source[i].rows != r->target[i].rows || r->source[i].digest != r->target[i].digest)
            return false;
    return true;
}

/* In the snapshot of the source. */
static enum err_code copy_all(struct copying *c)
{
    bool to_one_writer = !c->to->shared;
    if (copy_sum(c->from, &c->numbers, to_one_writer, c->watch, COPY_COUNTS_SOURCE, 0, c->result->source,
                 c->err) != ERR_OK)
        return c->err->code;
    c->source_digest = digest_of(c->result->source);
    c->total = copy_total(c->result->source);
    if (with_reader(c, find_place) != ERR_OK)
        return c->err->code;
    for (; c->part < COPY_PART_COUNT; c->part++)
        if (copy_part(c) != ERR_OK)
            return c->err->code;
    if (carry_next_chunk(c) != ERR_OK || with_reader(c, sum_target) != ERR_OK)
        return c->err->code;
    c->result->equal = sums_are_equal(c->result);
    return ERR_OK;
}

enum err_code store_copy(struct reader *from, struct store *to, const struct copy_watch *watch,
                         struct copy_result *ret_result, struct err *err)
{
    struct copying c = {.from = from,
                        .to = to,
                        .watch = watch,
                        .result = ret_result,
                        .arena = arena_new(COMMIT_BYTES / 4),
                        .err = err};
    *ret_result = (struct copy_result){0};
    enum err_code code = from->ops->reader_begin(from, err);
    if (code == ERR_OK) {
        code = copy_all(&c);
        from->ops->reader_end(from);
    }
    chunk_numbers_free(&c.numbers);
    arena_free(c.arena);
    return code;
}
