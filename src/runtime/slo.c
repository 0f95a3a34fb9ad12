#include "runtime/slo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_members.h"
#include "base/must.h"

#include "base/banned.h"

enum { MILLION = 1000000, US_PER_MS = 1000 };

/* Upper ends of the buckets, in microseconds. */
static const int64_t bucket_bounds[SLO_BUCKETS] = {
    100,      200,      300,      500,      750,      1000,     1500,     2000,     3000,
    5000,     7500,     10000,    15000,    20000,    25000,    30000,    35000,    40000,
    45000,    50000,    60000,    75000,    90000,    100000,   125000,   150000,   200000,
    300000,   500000,   750000,   1000000,  1500000,  2000000,  3000000,  5000000,  7500000,
    10000000, 15000000, 20000000, 30000000, 45000000, 60000000, 90000000, 120000000};

#define X(id, name, sli, kind, target, warn, event, dimensions)                                              \
    [SLO_##id] = {name, sli, event, dimensions, kind, target, warn},
const struct slo_row slo_rows[SLO_COUNT] = {SLO_LIST(X)};
#undef X

/* One slice of the window, plain numbers. */
struct slice {
    uint64_t count, above_warn, above_target, bad, buckets[SLO_BUCKETS + 1];
};

struct window {
    struct slice slices[SLO_SLICES], all, taken; /* all: their sum. taken: the tallies as they were last */
    int64_t slice_number;                        /* of the slice that is being filled */
    bool begun;
};

struct slo_board {
    void (*tell)(void *self, enum slo_id id, const struct slo_state *now, const struct slo_state *before);
    void *self;
    struct slo_bounds bounds[SLO_COUNT];
    struct window windows[SLO_COUNT];
    struct slo_state states[SLO_COUNT];
};

/* --- bounds ------------------------------------------------------------------------------------------ */

static int64_t setting_of(enum slo_id id, const struct settings *s)
{
    switch (id) {
    case SLO_INGEST:
        return s->slo_ingest_p95_ms * US_PER_MS;
    case SLO_ENQUEUE:
        return s->slo_enqueue_p95_ms * US_PER_MS;
    case SLO_DELIVERY:
        return (int64_t)(s->slo_delivery_ratio * MILLION + 0.5);
    case SLO_RECONNECT:
        return s->slo_reconnect_p95_ms * US_PER_MS;
    case SLO_PRESSURE:
    case SLO_CASCADES:
    case SLO_COUNT:
        break; /* the levels themselves, and none at all: there is nothing stricter to want */
    }
    return slo_rows[id].target;
}

struct slo_bounds slo_bounds(enum slo_id id, const struct settings *s)
{
    const struct slo_row *row = &slo_rows[id];
    struct slo_bounds b = {row->target, row->warn};
    int64_t wanted = s ? setting_of(id, s) : row->target;
    if (row->kind == SLO_P95 && wanted < row->target) {
        b.target = wanted;
        b.warn = (int64_t)((__int128)row->warn * wanted / row->target);
    } else if (row->kind == SLO_RATIO && wanted > row->target) {
        b.target = wanted; /* the warning stays at the same part of what may fail */
        b.warn = wanted + (row->warn - row->target) * (MILLION - wanted) / (MILLION - row->target);
    }
    return b;
}

/* --- tallies ------------------------------------------------------------------------------------------ */

static uint64_t get(const _Atomic uint64_t *n)
{
    return atomic_load_explicit(n, memory_order_relaxed);
}

/* Has one writer: no locked instruction is needed. */
static void add(_Atomic uint64_t *n, uint64_t more)
{
    atomic_store_explicit(n, get(n) + more, memory_order_relaxed);
}

static size_t bucket_of(int64_t us)
{
    size_t low = 0, high = SLO_BUCKETS;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (us <= bucket_bounds[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void slo_tally_sample(struct slo_tally *t, const struct slo_bounds *b, int64_t us)
{
    add(&t->count, 1);
    add(&t->buckets[bucket_of(us)], 1);
    if (us > b->warn)
        add(&t->above_warn, 1);
    if (us > b->target)
        add(&t->above_target, 1);
}

void slo_tally_result(struct slo_tally *t, bool good)
{
    add(&t->count, 1);
    if (!good)
        add(&t->bad, 1);
}

void slo_tally_look(struct slo_tally *t, const struct pressure_board *p)
{
    double steps = ceil(pressure_worst_ratio(p) * MILLION / SLO_OCCUPANCY_STEP_PPM);
    enum pressure_level level = pressure_worst(p, false);
    add(&t->count, 1);
    add(&t->buckets[steps < SLO_BUCKETS ? (size_t)steps : SLO_BUCKETS], 1);
    add(&t->above_warn, level >= PRESSURE_WARN);
    add(&t->above_target, level >= PRESSURE_DEGRADED);
    add(&t->bad, level >= PRESSURE_SHED);
}

void slo_tally_count(struct slo_tally *t, uint64_t n)
{
    add(&t->count, n);
}

void slo_tally_sum(struct slo_tally *into, const struct slo_tally *from)
{
    add(&into->count, get(&from->count));
    add(&into->above_warn, get(&from->above_warn));
    add(&into->above_target, get(&from->above_target));
    add(&into->bad, get(&from->bad));
    for (size_t i = 0; i <= SLO_BUCKETS; i++)
        add(&into->buckets[i], get(&from->buckets[i]));
}

/* --- the window --------------------------------------------------------------------------------------- */

static void slice_add(struct slice *into, const struct slice *s)
{
    into->count += s->count;
    into->above_warn += s->above_warn;
    into->above_target += s->above_target;
    into->bad += s->bad;
    for (size_t i = 0; i <= SLO_BUCKETS; i++)
        into->buckets[i] += s->buckets[i];
}

static void slice_subtract(struct slice *from, const struct slice *s)
{
    from->count -= s->count;
    from->above_warn -= s->above_warn;
    from->above_target -= s->above_target;
    from->bad -= s->bad;
    for (size_t i = 0; i <= SLO_BUCKETS; i++)
        from->buckets[i] -= s->buckets[i];
}

static struct slice read_tally(const struct slo_tally *t)
{
    struct slice s = {
        .above_warn = get(&t->above_warn), .above_target = get(&t->above_target), .bad = get(&t->bad)};
    for (size_t i = 0; i <= SLO_BUCKETS; i++)
        s.buckets[i] = get(&t->buckets[i]);
    s.count = get(&t->count);
    return s;
}

static struct slice *slice_at(struct window *w, int64_t number)
{
    return &w->slices[(number % SLO_SLICES + SLO_SLICES) % SLO_SLICES];
}

/* Empties the slices that have left the window. */
static void slide(struct window *w, int64_t now_ms)
{
    int64_t number = now_ms / (SLO_SLICE_S * 1000), gone = number - w->slice_number;
    if (!w->begun || gone > SLO_SLICES)
        gone = SLO_SLICES;
    w->begun = true;
    for (int64_t i = 0; i < gone; i++) {
        struct slice *s = slice_at(w, number - i);
        slice_subtract(&w->all, s);
        *s = (struct slice){0};
    }
    if (gone > 0)
        w->slice_number = number;
}

/* Nearest rank: the smallest sample that 95 of 100 are not above. */
static uint64_t p95_rank(uint64_t count)
{
    return (count * 95 + 99) / 100;
}

/* A sample that was written while it was read may have been counted in two slices, a part in each: the count
 * above a bound, or of bad ones, may then for a while be larger by one than the count of samples. */
static uint64_t rest_of(uint64_t count, uint64_t part)
{
    return part < count ? count - part : 0;
}

static bool p95_is_above(const struct slice *all, uint64_t above)
{
    return all->count && rest_of(all->count, above) < p95_rank(all->count);
}

/* Which bucket it is in; the last that has an upper end for whatever is above all of them. */
static size_t p95_bucket(const struct slice *all)
{
    uint64_t seen = 0, rank = p95_rank(all->count);
    for (size_t i = 0; i < SLO_BUCKETS; i++)
        if ((seen += all->buckets[i]) >= rank)
            return i;
    return SLO_BUCKETS - 1;
}

static bool ratio_is_below(const struct slice *all, int64_t ppm)
{
    return rest_of(all->count, all->bad) * MILLION < all->count * (uint64_t)ppm;
}

static enum slo_level level_of(enum slo_kind kind, const struct slo_bounds *b, const struct slice *all)
{
    bool warn = false, critical = false;
    switch (kind) {
    case SLO_P95:
    case SLO_OCCUPANCY:
        warn = p95_is_above(all, all->above_warn);
        critical = p95_is_above(all, all->above_target);
        break;
    case SLO_RATIO:
        warn = ratio_is_below(all, b->warn);
        critical = ratio_is_below(all, b->target);
        break;
    case SLO_COUNT_OF:
        critical = all->count > (uint64_t)b->target;
        break;
    }
    return critical ? SLO_CRITICAL : warn ? SLO_WARN : SLO_OK;
}

static double value_of(enum slo_kind kind, const struct slice *all)
{
    if (kind == SLO_COUNT_OF)
        return (double)all->count;
    if (kind == SLO_P95)
        return all->count ? (double)bucket_bounds[p95_bucket(all)] / US_PER_MS : 0;
    if (kind == SLO_OCCUPANCY)
        return all->count ? (double)p95_bucket(all) * SLO_OCCUPANCY_STEP_PPM / MILLION : 0;
    return all->count ? (double)rest_of(all->count, all->bad) / (double)all->count : 1;
}

static double target_of(enum slo_kind kind, int64_t target)
{
    return kind == SLO_COUNT_OF ? (double)target : (double)target / (kind == SLO_P95 ? US_PER_MS : MILLION);
}

/* --- the board ---------------------------------------------------------------------------------------- */

struct slo_board *slo_board_new(const struct settings *s,
                                void (*tell)(void *self, enum slo_id id, const struct slo_state *now,
                                             const struct slo_state *before),
                                void *self)
{
    struct slo_board *b = must_alloc(sizeof *b);
    b->tell = tell;
    b->self = self;
    for (int id = 0; id < SLO_COUNT; id++) {
        b->bounds[id] = slo_bounds((enum slo_id)id, s);
        b->states[id].target = target_of(slo_rows[id].kind, b->bounds[id].target);
        b->states[id].value = slo_rows[id].kind == SLO_RATIO ? 1 : 0;
    }
    return b;
}

struct slo_board *slo_board_free(struct slo_board *b)
{
    free(b);
    return NULL;
}

/* Of queues: warn and critical in their words. */
static enum pressure_level pressure_of(enum slo_level level, const struct slice *all)
{
    if (level != SLO_CRITICAL)
        return level == SLO_WARN ? PRESSURE_WARN : PRESSURE_NORMAL;
    return p95_is_above(all, all->bad) ? PRESSURE_SHED : PRESSURE_DEGRADED;
}

void slo_take(struct slo_board *b, enum slo_id id, const struct slo_tally *sum, int64_t now_ms)
{
    struct window *w = &b->windows[id];
    struct slice now = read_tally(sum), fresh = now;
    slide(w, now_ms);
    slice_subtract(&fresh, &w->taken);
    w->taken = now;
    slice_add(slice_at(w, w->slice_number), &fresh);
    slice_add(&w->all, &fresh);
    struct slo_state *s = &b->states[id], before = *s;
    s->samples = w->all.count;
    s->value = value_of(slo_rows[id].kind, &w->all);
    s->level = level_of(slo_rows[id].kind, &b->bounds[id], &w->all);
    if (slo_rows[id].kind == SLO_OCCUPANCY)
        s->pressure = pressure_of(s->level, &w->all);
    if (b->tell && (s->level != before.level || s->pressure != before.pressure))
        b->tell(b->self, id, s, &before);
}

void slo_state(const struct slo_board *b, enum slo_id id, struct slo_state *ret)
{
    *ret = b->states[id];
}

const char *slo_level_text(enum slo_id id, const struct slo_state *s)
{
    static const char *const words[SLO_LEVEL_COUNT] = {"ok", "warn", "critical"};
    return id == SLO_PRESSURE ? pressure_level_text(s->pressure) : words[s->level];
}

void slo_board_write(const struct slo_board *b, struct json_writer *w)
{
    jw_array(w);
    for (int id = 0; id < SLO_COUNT; id++) {
        const struct slo_state *s = &b->states[id];
        jw_object(w);
        encode_text(w, "name", slo_rows[id].name);
        encode_text(w, "sli", slo_rows[id].sli);
        encode_int(w, "window_s", SLO_WINDOW_S);
        jw_key(w, "value");
        jw_double(w, s->value);
        jw_key(w, "target");
        jw_double(w, s->target);
        encode_text(w, "level", slo_level_text((enum slo_id)id, s));
        encode_int(w, "samples", (int64_t)s->samples);
        jw_object_end(w);
    }
    jw_array_end(w);
}
