#include "runtime/pressure.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_members.h"
#include "base/must.h"

#include "base/banned.h"

enum { MILLION = 1000000 };

struct part {
    char process[PRESSURE_PROCESS_MAX];
    struct pressure_part queue;
    int64_t at_ms;
};

struct pressure_board {
    void (*tell)(void *self, const struct pressure_gauge *g, enum pressure_level before);
    void *self;
    struct pressure_gauge gauges[PRESSURE_GAUGES_MAX]; /* ordered by component, partition */
    size_t gauge_count;
    struct part parts[PRESSURE_PARTS_MAX];
    size_t part_count;
    uint64_t entered[PRESSURE_COMPONENT_COUNT][PRESSURE_LEVEL_COUNT];
};

#define X(name, wire, bound) [PRESSURE_##name] = wire,
static const char *const level_texts[] = {PRESSURE_LEVELS(X)};
#undef X
#define X(name, wire, bound) [PRESSURE_##name] = bound,
static const int64_t level_bounds[] = {PRESSURE_LEVELS(X)};
#undef X
#define X(name, wire, governs, what) [PRESSURE_OF_##name] = wire,
static const char *const component_texts[] = {PRESSURE_COMPONENTS(X)};
#undef X
#define X(name, wire, governs, what) [PRESSURE_OF_##name] = governs,
static const bool component_governs[] = {PRESSURE_COMPONENTS(X)};
#undef X

const char *pressure_level_text(enum pressure_level level)
{
    return level_texts[level];
}

int64_t pressure_bound_ppm(enum pressure_level level)
{
    return level_bounds[level];
}

const char *pressure_component_text(enum pressure_component component)
{
    return component_texts[component];
}

bool pressure_component_parse(struct str text, enum pressure_component *ret)
{
    for (int c = 0; c < PRESSURE_COMPONENT_COUNT; c++)
        if (str_is(text, component_texts[c])) {
            *ret = (enum pressure_component)c;
            return true;
        }
    return false;
}

bool pressure_component_governs(enum pressure_component component)
{
    return component_governs[component];
}

/* Exact: depth / capacity against ppm / MILLION. A queue without a capacity is empty. */
static bool reaches(int64_t depth, int64_t capacity, int64_t ppm)
{
    return capacity > 0 && (__int128)depth * MILLION >= (__int128)ppm * capacity;
}

static bool exceeds(int64_t depth, int64_t capacity, int64_t ppm)
{
    return capacity > 0 && (__int128)depth * MILLION > (__int128)ppm * capacity;
}

enum pressure_level pressure_next_level(enum pressure_level now, int64_t depth, int64_t capacity)
{
    enum pressure_level level = PRESSURE_NORMAL;
    for (int l = PRESSURE_WARN; l < PRESSURE_LEVEL_COUNT; l++) {
        bool holds = (int)now >= l ? exceeds(depth, capacity, level_bounds[l] - PRESSURE_LEAVE_PPM)
                                   : reaches(depth, capacity, level_bounds[l]);
        if (holds)
            level = (enum pressure_level)l;
    }
    return level;
}

double pressure_ratio(const struct pressure_gauge *g)
{
    return g->capacity > 0 ? (double)g->depth / (double)g->capacity : 0;
}

struct pressure_board *pressure_board_new(void (*tell)(void *self, const struct pressure_gauge *g,
                                                       enum pressure_level before),
                                          void *self)
{
    struct pressure_board *b = must_alloc(sizeof *b);
    b->tell = tell;
    b->self = self;
    return b;
}

struct pressure_board *pressure_board_free(struct pressure_board *b)
{
    free(b);
    return NULL;
}

/* --- gauges ------------------------------------------------------------------------------------------ */

static bool is_before(const struct pressure_gauge *g, enum pressure_component component, uint32_t partition)
{
    return g->component < component || (g->component == component && g->partition < partition);
}

/* The gauge, made if there is none; NULL: there is no room for it. */
static struct pressure_gauge *find_gauge(struct pressure_board *b, enum pressure_component component,
                                         uint32_t partition)
{
    size_t at = 0;
    while (at < b->gauge_count && is_before(&b->gauges[at], component, partition))
        at++;
    struct pressure_gauge *g = &b->gauges[at];
    if (at < b->gauge_count && g->component == component && g->partition == partition)
        return g;
    if (b->gauge_count == PRESSURE_GAUGES_MAX)
        return NULL;
    memmove(g + 1, g, (b->gauge_count++ - at) * sizeof *g);
    *g = (struct pressure_gauge){.component = component, .partition = partition};
    return g;
}

static void measure(struct pressure_board *b, struct pressure_gauge *g, int64_t depth, int64_t capacity)
{
    enum pressure_level before = g->level;
    g->depth = depth;
    g->capacity = capacity;
    g->level = pressure_next_level(before, depth, capacity);
    if (g->level == before)
        return;
    b->entered[g->component][g->level]++;
    if (b->tell)
        b->tell(b->self, g, before);
}

void pressure_set(struct pressure_board *b, enum pressure_component component, uint32_t partition,
                  int64_t depth, int64_t capacity)
{
    struct pressure_gauge *g = find_gauge(b, component, partition);
    if (g)
        measure(b, g, depth, capacity);
}

/* --- what other processes report ------------------------------------------------------------------- */

static bool is_about(const struct part *p, const struct pressure_gauge *g)
{
    return p->queue.component == g->component && p->queue.partition == g->partition;
}

static void remove_gauge(struct pressure_board *b, size_t at)
{
    struct pressure_gauge *g = &b->gauges[at];
    measure(b, g, 0, g->capacity); /* it ends normal, and that is told */
    memmove(g, g + 1, (--b->gauge_count - at) * sizeof *g);
}

/* Adds the parts of each reported gauge up; one without any is gone. `touched`: a component was reported
 * before or is now, so that what core measures itself stays. */
static void add_up(struct pressure_board *b, const bool touched[PRESSURE_COMPONENT_COUNT])
{
    for (size_t i = b->gauge_count; i-- > 0;) {
        struct pressure_gauge *g = &b->gauges[i];
        int64_t depth = 0, capacity = 0;
        bool any = false;
        if (!touched[g->component])
            continue;
        for (size_t p = 0; p < b->part_count; p++)
            if (is_about(&b->parts[p], g)) {
                depth += b->parts[p].queue.depth;
                capacity += b->parts[p].queue.capacity;
                any = true;
            }
        if (any)
            measure(b, g, depth, capacity);
        else
            remove_gauge(b, i);
    }
}

/* Removes the reports of `process` (NULL: of all) made at `until_ms` or before. */
static void drop_parts(struct pressure_board *b, const char *process, int64_t until_ms,
                       bool touched[PRESSURE_COMPONENT_COUNT])
{
    size_t kept = 0;
    for (size_t i = 0; i < b->part_count; i++) {
        const struct part *p = &b->parts[i];
        bool drop = p->at_ms <= until_ms && (!process || strcmp(p->process, process) == 0);
        if (drop)
            touched[p->queue.component] = true;
        else
            b->parts[kept++] = *p;
    }
    b->part_count = kept;
}

static size_t held_by_others(const struct pressure_board *b, const char *process)
{
    size_t count = 0;
    for (size_t i = 0; i < b->part_count; i++)
        count += strcmp(b->parts[i].process, process) != 0;
    return count;
}

bool pressure_report(struct pressure_board *b, const char *process, const struct pressure_part *parts,
                     size_t count, int64_t now_ms)
{
    bool touched[PRESSURE_COMPONENT_COUNT] = {false};
    if (strlen(process) >= PRESSURE_PROCESS_MAX || held_by_others(b, process) + count > PRESSURE_PARTS_MAX)
        return false;
    drop_parts(b, process, INT64_MAX, touched);
    for (size_t i = 0; i < count; i++) {
        struct part *p = &b->parts[b->part_count];
        if (!find_gauge(b, parts[i].component, parts[i].partition))
            continue;
        *p = (struct part){.queue = parts[i], .at_ms = now_ms};
        memcpy(p->process, process, strlen(process) + 1);
        touched[parts[i].component] = true;
        b->part_count++;
    }
    add_up(b, touched);
    return true;
}

void pressure_forget(struct pressure_board *b, int64_t now_ms)
{
    bool touched[PRESSURE_COMPONENT_COUNT] = {false};
    size_t before = b->part_count;
    drop_parts(b, NULL, now_ms - PRESSURE_REPORT_MS, touched);
    if (b->part_count != before)
        add_up(b, touched);
}

/* --- asking -------------------------------------------------------------------------------------------- */

enum pressure_level pressure_worst(const struct pressure_board *b, bool governing)
{
    enum pressure_level worst = PRESSURE_NORMAL;
    for (size_t i = 0; i < b->gauge_count; i++)
        if (b->gauges[i].level > worst && (!governing || component_governs[b->gauges[i].component]))
            worst = b->gauges[i].level;
    return worst;
}

double pressure_worst_ratio(const struct pressure_board *b)
{
    double worst = 0;
    for (size_t i = 0; i < b->gauge_count; i++)
        if (pressure_ratio(&b->gauges[i]) > worst)
            worst = pressure_ratio(&b->gauges[i]);
    return worst;
}

const struct pressure_gauge *pressure_gauges(const struct pressure_board *b, size_t *ret_count)
{
    *ret_count = b->gauge_count;
    return b->gauges;
}

int64_t pressure_depth(const struct pressure_board *b, enum pressure_component component, uint32_t partition)
{
    for (size_t i = 0; i < b->gauge_count; i++)
        if (b->gauges[i].component == component && b->gauges[i].partition == partition)
            return b->gauges[i].depth;
    return 0;
}

uint64_t pressure_entered(const struct pressure_board *b, enum pressure_component component,
                          enum pressure_level level)
{
    return b->entered[component][level];
}

void pressure_board_write(const struct pressure_board *b, struct json_writer *w)
{
    jw_array(w);
    for (size_t i = 0; i < b->gauge_count; i++) {
        const struct pressure_gauge *g = &b->gauges[i];
        jw_object(w);
        encode_text(w, "component", component_texts[g->component]);
        encode_int(w, "partition", g->partition);
        jw_key(w, "ratio");
        jw_double(w, pressure_ratio(g));
        encode_text(w, "level", level_texts[g->level]);
        jw_object_end(w);
    }
    jw_array_end(w);
}
