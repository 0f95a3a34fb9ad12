#include "store/sqlite/sqlite_waiting_events.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/must.h"
#include "store/row_bytes.h"

#include "base/banned.h"

enum { ARENA_BYTES = 1 << 16, EVENTS_FIRST = 4 };

static struct run_waiting *find(const struct waiting_events *w, int64_t run)
{
    for (struct map_node *n = map_first(&w->by_run, hash_mix((uint64_t)run)); n; n = map_next(n))
        if (CONTAINER_OF(n, struct run_waiting, node)->run == run)
            return CONTAINER_OF(n, struct run_waiting, node);
    return NULL;
}

static struct run_waiting *find_or_add(struct waiting_events *w, int64_t run)
{
    struct run_waiting *r = find(w, run);
    if (r)
        return r;
    if (!w->arena)
        w->arena = arena_new(ARENA_BYTES);
    r = ARENA_NEW(w->arena, struct run_waiting);
    r->run = run;
    map_put(&w->by_run, &r->node, hash_mix((uint64_t)run));
    return r;
}

/* The former places stay in the arena: together they are no more than the new ones. */
static void make_room(struct waiting_events *w, struct run_waiting *r)
{
    if (r->count < r->capacity)
        return;
    r->capacity = r->capacity ? r->capacity * 2 : EVENTS_FIRST;
    struct waiting_event **events = ARENA_ARRAY(w->arena, struct waiting_event *, r->capacity);
    if (r->count)
        memcpy(events, r->events, r->count * sizeof *events);
    r->events = events;
}

bool waiting_put(struct waiting_events *w, int64_t run, int64_t seq, int64_t block, struct str packed)
{
    struct run_waiting *r = find_or_add(w, run);
    if (r->count && r->events[r->count - 1]->seq >= seq)
        return false;
    make_room(w, r);
    struct waiting_event *e = arena_alloc(w->arena, sizeof *e + packed.len);
    e->seq = seq;
    e->block = block;
    e->bytes = packed.len;
    memcpy(e->packed, packed.ptr, packed.len);
    r->events[r->count++] = e;
    w->count++;
    w->bytes += sizeof *e + packed.len;
    return true;
}

void waiting_take_back(struct waiting_events *w, int64_t run, int64_t block)
{
    struct run_waiting *r = find(w, run);
    while (r && r->count && r->events[r->count - 1]->block == block) {
        w->bytes -= sizeof **r->events + r->events[--r->count]->bytes;
        w->count--;
    }
}

const struct run_waiting *waiting_of_run(const struct waiting_events *w, int64_t run)
{
    return find(w, run);
}

size_t run_waiting_from(const struct run_waiting *r, int64_t seq)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->events[middle]->seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void waiting_free(struct waiting_events *w)
{
    map_free(&w->by_run);
    arena_free(w->arena);
    *w = (struct waiting_events){0};
}

/* --- in order -------------------------------------------------------------------------------------- */

struct order {
    const struct run_waiting **runs;
    size_t count;
};

static void add_run(struct map_node *n, void *arg)
{
    struct order *o = arg;
    o->runs[o->count++] = CONTAINER_OF(n, struct run_waiting, node);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = (*(const struct run_waiting *const *)a)->run,
            y = (*(const struct run_waiting *const *)b)->run;
    return x < y ? -1 : x > y;
}

const struct run_waiting **waiting_in_order(const struct waiting_events *w)
{
    struct order o = {must_alloc((w->by_run.count + 1) * sizeof *o.runs), 0};
    map_each(&w->by_run, add_run, &o);
    qsort(o.runs, o.count, sizeof *o.runs, by_number);
    return o.runs;
}

bool waiting_row(int64_t run, int64_t seq, struct str packed, struct run_event_row *ret_row)
{
    const struct table *t = &table_run_event_row;
    ret_row->run = run;
    ret_row->seq = seq;
    return row_bytes_take(&packed, t, t->key_count, t->column_count, ret_row) && !packed.len;
}
