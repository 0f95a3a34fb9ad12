/* Layers, the order within them, and rows. */
#include "base/must.h"
#include "cli/dag_internal.h"

#include "base/banned.h"

enum { SWEEPS = 8, EDGES_COUNTED_MAX = 2000 };

/* How the items of a layer get their rows; tried in this order. */
enum row_style { ROWS_ALIGNED, ROWS_DENSE, ROWS_STAGGERED, ROW_STYLE_COUNT };

/* ---- layers ---- */

size_t dag_layers(struct arena *a, const struct dag_node *nodes, size_t count, uint32_t *ret_layers)
{
    size_t *first = ARENA_ARRAY(a, size_t, count + 2), edges = 0, done = 0, ready = 0, deepest = 0;
    for (size_t i = 0; i < count; i++) {
        edges += nodes[i].dependency_count;
        for (size_t k = 0; k < nodes[i].dependency_count; k++) {
            if (nodes[i].dependencies[k] >= count)
                return 0;
            first[nodes[i].dependencies[k] + 2]++;
        }
    }
    for (size_t i = 2; i < count + 2; i++) /* first[n + 1] becomes where the followers of n begin, then end */
        first[i] += first[i - 1];
    uint32_t *followers = ARENA_ARRAY(a, uint32_t, edges + 1), *queue = ARENA_ARRAY(a, uint32_t, count + 1);
    size_t *missing = ARENA_ARRAY(a, size_t, count + 1);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < nodes[i].dependency_count; k++)
            followers[first[nodes[i].dependencies[k] + 1]++] = (uint32_t)i;
        missing[i] = nodes[i].dependency_count;
        ret_layers[i] = 0;
        if (!missing[i])
            queue[ready++] = (uint32_t)i;
    }
    for (; done < ready; done++) {
        uint32_t n = queue[done];
        deepest = ret_layers[n] > deepest ? ret_layers[n] : deepest;
        for (size_t k = first[n]; k < first[n + 1]; k++) {
            uint32_t f = followers[k];
            ret_layers[f] = ret_layers[f] > ret_layers[n] ? ret_layers[f] : ret_layers[n] + 1;
            if (--missing[f] == 0)
                queue[ready++] = f;
        }
    }
    return done == count && count ? deepest + 1 : 0;
}

/* ---- items ---- */

static void add_edge(struct dag *d, uint32_t from, uint32_t to)
{
    struct dag_item *f = &d->items[from], *t = &d->items[to];
    f->to[f->to_count++] = to;
    t->from[t->from_count++] = from;
}

/* For each node the item that stands for it in each layer up to the last that follows it. */
struct chains {
    uint32_t *layer_of, *last, *first_item; /* by node; the chain's items have numbers in a row */
};

static bool count_items(struct dag *d, const struct dag_node *nodes, size_t count, struct chains *c)
{
    c->last = ARENA_ARRAY(d->arena, uint32_t, count);
    c->first_item = ARENA_ARRAY(d->arena, uint32_t, count);
    for (size_t i = 0; i < count; i++)
        c->last[i] = c->layer_of[i];
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < nodes[i].dependency_count; k++) {
            uint32_t *last = &c->last[nodes[i].dependencies[k]];
            *last = c->layer_of[i] - 1 > *last ? c->layer_of[i] - 1 : *last;
        }
    for (size_t i = 0; i < count; i++) {
        c->first_item[i] = (uint32_t)d->item_count;
        d->item_count += c->last[i] - c->layer_of[i] + 1;
        if (d->item_count > DAG_ITEMS_MAX)
            return false;
    }
    return true;
}

static void count_neighbours(struct dag *d, const struct dag_node *nodes, size_t count,
                             const struct chains *c)
{
    size_t *to = ARENA_ARRAY(d->arena, size_t, d->item_count);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < nodes[i].dependency_count; k++) {
            uint32_t n = nodes[i].dependencies[k];
            to[c->first_item[n] + c->layer_of[i] - 1 - c->layer_of[n]]++;
        }
    for (size_t i = 0; i < count; i++)
        for (uint32_t at = c->layer_of[i]; at <= c->last[i]; at++) {
            size_t number = c->first_item[i] + at - c->layer_of[i];
            struct dag_item *item = &d->items[number];
            bool begins = at == c->layer_of[i];
            *item = (struct dag_item){.node = begins ? (int32_t)i : DAG_NO_NODE,
                                      .columns = begins ? nodes[i].columns : 0};
            item->to = ARENA_ARRAY(d->arena, uint32_t, to[number] + 1);
            item->from = ARENA_ARRAY(d->arena, uint32_t, begins ? nodes[i].dependency_count + 1 : 1);
        }
}

static void join_layer(struct dag *d, uint32_t layer, uint32_t item)
{
    struct dag_layer *l = &d->layers[layer];
    l->items[l->count++] = item;
    l->columns = d->items[item].columns > l->columns ? d->items[item].columns : l->columns;
}

static bool make_items(struct dag *d, const struct dag_node *nodes, size_t count, struct chains *c)
{
    if (!count_items(d, nodes, count, c))
        return false;
    d->items = ARENA_ARRAY(d->arena, struct dag_item, d->item_count);
    d->layers = ARENA_ARRAY(d->arena, struct dag_layer, d->layer_count);
    count_neighbours(d, nodes, count, c);
    for (size_t i = 0; i < count; i++)
        for (uint32_t at = c->layer_of[i]; at <= c->last[i]; at++)
            d->layers[at].count++;
    for (size_t i = 0; i < d->layer_count; i++) {
        d->layers[i].items = ARENA_ARRAY(d->arena, uint32_t, d->layers[i].count);
        d->layers[i].count = 0;
    }
    for (size_t i = 0; i < count; i++)
        join_layer(d, c->layer_of[i], c->first_item[i]);
    for (size_t i = 0; i < count; i++) { /* lines that pass begin below the nodes */
        for (uint32_t at = c->layer_of[i] + 1; at <= c->last[i]; at++) {
            uint32_t item = c->first_item[i] + at - c->layer_of[i];
            join_layer(d, at, item);
            add_edge(d, item - 1, item);
        }
        for (size_t k = 0; k < nodes[i].dependency_count; k++) {
            uint32_t n = nodes[i].dependencies[k];
            add_edge(d, c->first_item[n] + c->layer_of[i] - 1 - c->layer_of[n], c->first_item[i]);
        }
    }
    return true;
}

/* ---- the order within layers ---- */

static void number_rows(struct dag *d, const struct dag_layer *l)
{
    for (size_t i = 0; i < l->count; i++)
        d->items[l->items[i]].row = i;
}

/* Each item goes to the mean place of its neighbours on one side; an item without any stays. */
static void sort_layer(struct dag *d, struct dag_layer *l, bool by_from)
{
    for (size_t i = 0; i < l->count; i++) {
        struct dag_item *item = &d->items[l->items[i]];
        const uint32_t *near = by_from ? item->from : item->to;
        size_t count = by_from ? item->from_count : item->to_count;
        double sum = 0;
        for (size_t k = 0; k < count; k++)
            sum += (double)d->items[near[k]].row;
        item->weight = count ? sum / (double)count : (double)i;
    }
    for (size_t i = 1; i < l->count; i++) { /* by insertion: equals keep their order */
        uint32_t moved = l->items[i];
        size_t at = i;
        for (; at > 0 && d->items[l->items[at - 1]].weight > d->items[moved].weight; at--)
            l->items[at] = l->items[at - 1];
        l->items[at] = moved;
    }
    number_rows(d, l);
}

struct stroke {
    size_t from, to;
};

static size_t crossings_behind(const struct dag *d, const struct dag_layer *l, struct stroke *strokes)
{
    size_t n = 0, crossed = 0;
    for (size_t i = 0; i < l->count; i++) {
        const struct dag_item *item = &d->items[l->items[i]];
        for (size_t k = 0; k < item->to_count && n < EDGES_COUNTED_MAX; k++)
            strokes[n++] = (struct stroke){item->row, d->items[item->to[k]].row};
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            crossed += strokes[i].from < strokes[k].from && strokes[i].to > strokes[k].to;
    return crossed;
}

static size_t crossings(const struct dag *d, struct stroke *strokes)
{
    size_t sum = 0;
    for (size_t i = 0; i + 1 < d->layer_count; i++)
        sum += crossings_behind(d, &d->layers[i], strokes);
    return sum;
}

static void copy_order(const struct dag *d, uint32_t *order, bool back)
{
    for (size_t i = 0; i < d->layer_count; i++) {
        struct dag_layer *l = &d->layers[i];
        memcpy(back ? l->items : order, back ? order : l->items, l->count * sizeof *order);
        order += l->count;
    }
}

static void order_layers(struct dag *d)
{
    struct stroke *strokes = ARENA_ARRAY(d->arena, struct stroke, EDGES_COUNTED_MAX);
    uint32_t *best = ARENA_ARRAY(d->arena, uint32_t, d->item_count);
    for (size_t i = 0; i < d->layer_count; i++)
        number_rows(d, &d->layers[i]);
    size_t fewest = crossings(d, strokes);
    copy_order(d, best, false);
    for (int sweep = 0; sweep < SWEEPS && fewest; sweep++) {
        bool down = sweep % 2 == 0;
        for (size_t i = 1; i < d->layer_count; i++)
            sort_layer(d, &d->layers[down ? i : d->layer_count - 1 - i], down);
        size_t crossed = crossings(d, strokes);
        if (crossed < fewest) {
            fewest = crossed;
            copy_order(d, best, false);
        }
    }
    copy_order(d, best, true);
}

/* ---- rows ---- */

/* The row in the middle of the neighbours, the upper one of two; `otherwise` without any. They are in no
 * order, so it is the one that has as many above as below. */
static size_t middle_row(const struct dag *d, const uint32_t *near, size_t count, size_t otherwise)
{
    for (size_t i = 0; i < count; i++) {
        size_t row = d->items[near[i]].row, above = 0;
        for (size_t k = 0; k < count; k++)
            above += d->items[near[k]].row < row;
        if (above == (count - 1) / 2)
            return row;
    }
    return otherwise;
}

static void align_down(struct dag *d, const struct dag_layer *l)
{
    size_t free_row = 0;
    for (size_t i = 0; i < l->count; i++) {
        struct dag_item *item = &d->items[l->items[i]];
        size_t wanted = middle_row(d, item->from, item->from_count, free_row);
        item->row = wanted > free_row ? wanted : free_row;
        free_row = item->row + 1;
    }
}

/* Towards those that follow, as far as the neighbours in the layer leave room. */
static void align_up(struct dag *d, const struct dag_layer *l)
{
    size_t below = SIZE_MAX;
    for (size_t i = l->count; i-- > 0;) {
        struct dag_item *item = &d->items[l->items[i]];
        size_t above = i ? d->items[l->items[i - 1]].row + 1 : 0;
        size_t wanted = middle_row(d, item->to, item->to_count, item->row);
        wanted = wanted < above ? above : wanted;
        item->row = wanted < below ? wanted : below - 1;
        below = item->row;
    }
}

static size_t place_rows(struct dag *d, enum row_style style)
{
    size_t rows = 0;
    for (size_t i = 0; i < d->layer_count; i++) {
        number_rows(d, &d->layers[i]);
        if (style == ROWS_ALIGNED)
            align_down(d, &d->layers[i]);
        for (size_t k = 0; style == ROWS_STAGGERED && k < d->layers[i].count; k++)
            d->items[d->layers[i].items[k]].row = 2 * k + i % 2; /* nothing stands beside a neighbour */
    }
    for (size_t i = d->layer_count - 1; style == ROWS_ALIGNED && i-- > 0;)
        align_up(d, &d->layers[i]);
    for (size_t i = 0; i < d->item_count; i++)
        rows = d->items[i].row >= rows ? d->items[i].row + 1 : rows;
    return rows;
}

bool dag_layout(struct arena *a, const struct dag_node *nodes, size_t count, size_t rows_max,
                size_t columns_max, struct dag_picture *ret_picture)
{
    struct dag d = {.arena = a};
    struct chains c;
    if (!count || count > DAG_NODES_MAX)
        return false;
    c.layer_of = ARENA_ARRAY(a, uint32_t, count);
    d.layer_count = dag_layers(a, nodes, count, c.layer_of);
    if (!d.layer_count || !make_items(&d, nodes, count, &c))
        return false;
    order_layers(&d);
    for (enum row_style style = 0; style < ROW_STYLE_COUNT; style++) {
        size_t rows = place_rows(&d, style);
        if (rows <= rows_max && dag_route(&d, rows, columns_max, count, ret_picture))
            return true;
    }
    return false;
}

const char *dag_glyph(uint8_t sides)
{
    static const char *const glyphs[16] = {
        [0] = " ",
        [DAG_UP] = "│",
        [DAG_DOWN] = "│",
        [DAG_UP | DAG_DOWN] = "│",
        [DAG_LEFT] = "─",
        [DAG_RIGHT] = "─",
        [DAG_LEFT | DAG_RIGHT] = "─",
        [DAG_UP | DAG_LEFT] = "┘",
        [DAG_UP | DAG_RIGHT] = "└",
        [DAG_DOWN | DAG_LEFT] = "┐",
        [DAG_DOWN | DAG_RIGHT] = "┌",
        [DAG_UP | DAG_DOWN | DAG_LEFT] = "┤",
        [DAG_UP | DAG_DOWN | DAG_RIGHT] = "├",
        [DAG_UP | DAG_LEFT | DAG_RIGHT] = "┴",
        [DAG_DOWN | DAG_LEFT | DAG_RIGHT] = "┬",
        [DAG_UP | DAG_DOWN | DAG_LEFT | DAG_RIGHT] = "┼",
    };
    MUST(sides < LENGTH_OF(glyphs));
    return glyphs[sides];
}
