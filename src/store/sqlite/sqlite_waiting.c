#include "store/sqlite/sqlite_waiting.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/must.h"
#include "base/random.h"

#include "base/banned.h"

enum { SLOTS_FIRST = 1024, ARENA_BYTES = 1 << 16 };

/* Where a row is, or would go; in a set that rises: where the newest one of its run is. */
static uint32_t *find_slot(const struct waiting_set *s, int64_t run, int64_t key)
{
    uint64_t h = hash_mix((uint64_t)run ^ s->seed);
    size_t at = (s->rises ? h : hash_mix((uint64_t)key + h)) & (s->slot_count - 1);
    for (; s->slots[at]; at = (at + 1) & (s->slot_count - 1)) {
        const struct waiting_row *r = &s->rows[s->slots[at] - 1];
        if (r->run == run && (s->rises || r->key == key))
            break;
    }
    return &s->slots[at];
}

static void enter(struct waiting_set *s, size_t i, uint32_t *slot)
{
    if (s->rises)
        s->before[i] = *slot;
    *slot = (uint32_t)i + 1;
}

/* Half of the slots are used at most. */
static void grow(struct waiting_set *s)
{
    if (!s->seed)
        s->seed = random_u64() | 1;
    s->slot_count = s->slot_count ? s->slot_count * 2 : SLOTS_FIRST;
    MUST(s->slot_count <= UINT32_MAX);
    free(s->slots);
    s->slots = must_alloc(s->slot_count * sizeof *s->slots);
    s->rows = must_realloc(s->rows, s->slot_count / 2 * sizeof *s->rows);
    if (s->rises)
        s->before = must_realloc(s->before, s->slot_count / 2 * sizeof *s->before);
    for (size_t i = 0; i < s->count; i++)
        enter(s, i, find_slot(s, s->rows[i].run, s->rows[i].key));
}

void waiting_begin(struct waiting_set *s, int64_t block)
{
    if (s->block_count == s->block_capacity) {
        s->block_capacity = s->block_capacity ? s->block_capacity * 2 : 64;
        s->blocks = must_realloc(s->blocks, s->block_capacity * sizeof *s->blocks);
    }
    s->blocks[s->block_count++] = (struct waiting_block){block, s->count, s->bytes};
}

struct str waiting_bytes(const char *bytes)
{
    uint32_t len;
    memcpy(&len, bytes, sizeof len);
    return (struct str){bytes + sizeof len, len};
}

static const char *copy_bytes(struct arena **arena, const char *bytes)
{
    size_t len = sizeof(uint32_t) + waiting_bytes(bytes).len;
    if (!*arena)
        *arena = arena_new(ARENA_BYTES);
    return arena_str(*arena, (struct str){bytes, len}).ptr;
}

bool waiting_put(struct waiting_set *s, const struct waiting_row *r)
{
    if (s->count == s->slot_count / 2)
        grow(s);
    uint32_t *slot = find_slot(s, r->run, r->key);
    if (*slot && (!s->rises || s->rows[*slot - 1].key >= r->key))
        return !s->rises;
    struct waiting_row *mine = &s->rows[s->count];
    *mine = *r;
    if (s->has_bytes)
        mine->bytes = copy_bytes(&s->arena, r->bytes);
    s->bytes += sizeof *r + (s->has_bytes ? waiting_bytes(r->bytes).len : 0);
    enter(s, s->count++, slot);
    return true;
}

/* Newest first, so that each slot becomes what it was before its row came. */
void waiting_take_back(struct waiting_set *s, int64_t block)
{
    if (!s->block_count || s->blocks[s->block_count - 1].number != block)
        return;
    const struct waiting_block *b = &s->blocks[--s->block_count];
    s->bytes = b->bytes;
    while (s->count > b->begin) {
        const struct waiting_row *r = &s->rows[--s->count];
        *find_slot(s, r->run, r->key) = s->rises ? s->before[s->count] : 0;
    }
}

void waiting_free(struct waiting_set *s)
{
    free(s->rows);
    free(s->slots);
    free(s->before);
    free(s->blocks);
    arena_free(s->arena);
    *s = (struct waiting_set){.has_bytes = s->has_bytes, .rises = s->rises, .seed = s->seed};
}

/* --- looking ---------------------------------------------------------------------------------------- */

size_t waiting_until(const struct waiting_set *s, int64_t last)
{
    size_t until = s->count;
    for (size_t i = s->block_count; i-- > 0 && s->blocks[i].number > last;)
        until = s->blocks[i].begin;
    return until;
}

const struct waiting_row *waiting_find(const struct waiting_set *s, int64_t run, int64_t key, size_t until)
{
    if (!s->count)
        return NULL;
    uint32_t found = *find_slot(s, run, key);
    while (s->rises && found && s->rows[found - 1].key > key)
        found = s->before[found - 1];
    return found && found <= until && s->rows[found - 1].key == key ? &s->rows[found - 1] : NULL;
}

static void add_place(struct waiting_list *l, const struct waiting_row *r)
{
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? l->capacity * 2 : 16;
        l->rows = must_realloc(l->rows, l->capacity * sizeof *l->rows);
    }
    l->rows[l->count++] = *r;
}

/* Those from `begin` on, `max` at most, are the list's own. */
static void keep(struct waiting_list *l, const struct waiting_set *s, size_t begin, size_t max)
{
    l->count = l->count < max ? l->count : max;
    for (size_t i = begin; i < l->count && s->has_bytes; i++)
        l->rows[i].bytes = copy_bytes(&l->arena, l->rows[i].bytes);
}

void waiting_copy(struct waiting_list *l, const struct waiting_set *s, int64_t run, int64_t key, size_t until)
{
    const struct waiting_row *r = waiting_find(s, run, key, until);
    size_t begin = l->count;
    if (r)
        add_place(l, r);
    keep(l, s, begin, SIZE_MAX);
}

static void turn_round(struct waiting_row *rows, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct waiting_row r = rows[i];
        rows[i] = rows[count - 1 - i];
        rows[count - 1 - i] = r;
    }
}

void waiting_copy_run(struct waiting_list *l, const struct waiting_set *s, int64_t run, int64_t key,
                      size_t until, size_t max)
{
    size_t begin = l->count;
    if (!s->count || (s->rises && begin >= max))
        return;
    size_t at = s->rises ? *find_slot(s, run, key) : until;
    while (at && (!s->rises || s->rows[at - 1].key >= key)) {
        const struct waiting_row *r = &s->rows[at - 1];
        if (at <= until && r->run == run && r->key >= key)
            add_place(l, r);
        at = s->rises ? s->before[at - 1] : at - 1;
    }
    turn_round(l->rows + begin, l->count - begin);
    keep(l, s, begin, s->rises ? max : SIZE_MAX);
}

void waiting_list_free(struct waiting_list *l)
{
    free(l->rows);
    arena_free(l->arena);
    *l = (struct waiting_list){0};
}
