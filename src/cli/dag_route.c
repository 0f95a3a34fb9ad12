/* Between two layers: which lines share an upright stroke, and in which column it stands; then drawing. */
#include "base/must.h"
#include "cli/dag_internal.h"

#include "base/banned.h"

/* Beside the strokes: a blank, a dash, and the same again behind them. */
enum { MARGIN = 2 };

/* Lines that lead to the same items, and so share a stroke. */
struct net {
    const struct dag_item *first; /* one of the items; all in the net have its followers */
    size_t top, bottom;           /* rows of the stroke */
    size_t column;                /* from the left of the gap; SIZE_MAX: not yet placed */
};

struct gap {
    const struct dag *d;
    const struct dag_layer *before, *behind;
    struct net *nets;
    size_t net_count;
    size_t *net_of;   /* by place in `before`; SIZE_MAX: leads nowhere */
    size_t *leftmost; /* by place in `behind`: the column in which its line begins */
    size_t columns;
};

static const struct dag_item *item_at(const struct dag *d, const struct dag_layer *l, size_t place)
{
    return &d->items[l->items[place]];
}

static bool leads_to(const struct dag *d, const struct net *n, const struct dag_item *target)
{
    for (size_t i = 0; i < n->first->to_count; i++)
        if (&d->items[n->first->to[i]] == target)
            return true;
    return false;
}

static bool same_targets(const struct dag *d, const struct net *n, const struct dag_item *source)
{
    if (n->first->to_count != source->to_count)
        return false;
    for (size_t i = 0; i < source->to_count; i++)
        if (!leads_to(d, n, &d->items[source->to[i]]))
            return false;
    return true;
}

static void stretch(struct net *n, size_t row)
{
    n->top = row < n->top ? row : n->top;
    n->bottom = row > n->bottom ? row : n->bottom;
}

static void find_nets(struct gap *g)
{
    const struct dag *d = g->d;
    for (size_t i = 0; i < g->before->count; i++) {
        const struct dag_item *source = item_at(d, g->before, i);
        size_t at = 0;
        g->net_of[i] = SIZE_MAX;
        if (!source->to_count)
            continue;
        while (at < g->net_count && !same_targets(d, &g->nets[at], source))
            at++;
        if (at == g->net_count) {
            g->nets[g->net_count++] = (struct net){source, source->row, source->row, SIZE_MAX};
            for (size_t k = 0; k < source->to_count; k++)
                stretch(&g->nets[at], d->items[source->to[k]].row);
        }
        g->net_of[i] = at;
        stretch(&g->nets[at], source->row);
    }
}

/* Where a source and a target stand in one row, the source's stroke has to stand left of all others that
 * lead to the target; else its line would seem to go on there. False: some such stroke is not placed yet. */
static bool is_free(const struct gap *g, size_t net, size_t *ret_column)
{
    size_t column = 0;
    for (size_t i = 0; i < g->before->count; i++) {
        const struct dag_item *source = item_at(g->d, g->before, i);
        size_t other = g->net_of[i];
        if (other == net || other == SIZE_MAX)
            continue;
        for (size_t k = 0; k < g->nets[net].first->to_count; k++) {
            if (g->d->items[g->nets[net].first->to[k]].row != source->row)
                continue;
            if (g->nets[other].column == SIZE_MAX)
                return false;
            column = g->nets[other].column + 1 > column ? g->nets[other].column + 1 : column;
        }
    }
    *ret_column = column;
    return true;
}

static bool is_taken(const struct gap *g, const struct net *n, size_t column)
{
    for (size_t i = 0; i < g->net_count; i++) {
        const struct net *other = &g->nets[i];
        if (other->column == column && other->top <= n->bottom && n->top <= other->bottom)
            return true;
    }
    return false;
}

/* False: the rows ask for a circle of strokes each left of the next. */
static bool place_nets(struct gap *g)
{
    g->columns = 1;
    for (size_t placed = 0; placed < g->net_count;) {
        size_t before = placed;
        for (size_t i = 0; i < g->net_count; i++) {
            size_t column;
            if (g->nets[i].column != SIZE_MAX || !is_free(g, i, &column))
                continue;
            while (is_taken(g, &g->nets[i], column))
                column++;
            g->nets[i].column = column;
            g->columns = column >= g->columns ? column + 1 : g->columns;
            placed++;
        }
        if (placed == before)
            return false;
    }
    for (size_t k = 0; k < g->behind->count; k++) {
        g->leftmost[k] = SIZE_MAX;
        for (size_t i = 0; i < g->net_count; i++)
            if (leads_to(g->d, &g->nets[i], item_at(g->d, g->behind, k)) &&
                g->nets[i].column < g->leftmost[k])
                g->leftmost[k] = g->nets[i].column;
    }
    return true;
}

static bool solve_gap(const struct dag *d, size_t layer, struct gap *g)
{
    *g = (struct gap){.d = d, .before = &d->layers[layer], .behind = &d->layers[layer + 1]};
    g->nets = ARENA_ARRAY(d->arena, struct net, g->before->count);
    g->net_of = ARENA_ARRAY(d->arena, size_t, g->before->count);
    g->leftmost = ARENA_ARRAY(d->arena, size_t, g->behind->count);
    find_nets(g);
    return place_nets(g);
}

/* ---- drawing ---- */

static void draw_across(struct dag_picture *p, size_t row, size_t from, size_t to)
{
    for (size_t c = from; c < to; c++)
        p->lines[row * p->columns + c] = DAG_LEFT | DAG_RIGHT;
}

static void draw_stroke(const struct gap *g, size_t net, struct dag_picture *p, size_t left)
{
    const struct net *n = &g->nets[net];
    for (size_t row = n->top; row <= n->bottom; row++)
        p->lines[row * p->columns + left + n->column] =
            (uint8_t)((row > n->top ? DAG_UP : 0) | (row < n->bottom ? DAG_DOWN : 0));
    for (size_t i = 0; i < g->before->count; i++)
        if (g->net_of[i] == net)
            p->lines[item_at(g->d, g->before, i)->row * p->columns + left + n->column] |= DAG_LEFT;
    for (size_t k = 0; k < g->behind->count; k++) {
        const struct dag_item *target = item_at(g->d, g->behind, k);
        if (leads_to(g->d, n, target))
            p->lines[target->row * p->columns + left + n->column] |= DAG_RIGHT;
    }
}

/* `left` is the column of the first stroke; the layer behind begins MARGIN behind the last. */
static void draw_gap(const struct gap *g, struct dag_picture *p, size_t left)
{
    size_t layer_end = left - MARGIN, right = left + g->columns;
    for (size_t i = 0; i < g->before->count; i++) {
        const struct dag_item *source = item_at(g->d, g->before, i);
        bool passes = source->node == DAG_NO_NODE;
        size_t label_end = layer_end - g->before->columns + source->columns;
        if (g->net_of[i] != SIZE_MAX)
            draw_across(p, source->row, passes ? label_end : label_end + 1,
                        left + g->nets[g->net_of[i]].column);
    }
    for (size_t k = 0; k < g->behind->count; k++) {
        const struct dag_item *target = item_at(g->d, g->behind, k);
        if (g->leftmost[k] != SIZE_MAX)
            draw_across(p, target->row, left + g->leftmost[k],
                        target->node == DAG_NO_NODE ? right + MARGIN : right + MARGIN - 1);
    }
    for (size_t i = 0; i < g->net_count; i++)
        draw_stroke(g, i, p, left);
}

bool dag_route(const struct dag *d, size_t rows, size_t columns_max, size_t node_count,
               struct dag_picture *ret_picture)
{
    struct gap *gaps = ARENA_ARRAY(d->arena, struct gap, d->layer_count);
    size_t *left = ARENA_ARRAY(d->arena, size_t, d->layer_count), columns = 0;
    for (size_t i = 0; i < d->layer_count; i++) {
        left[i] = columns;
        columns += d->layers[i].columns;
        if (i + 1 < d->layer_count) {
            if (!solve_gap(d, i, &gaps[i]))
                return false;
            columns += gaps[i].columns + 2 * (size_t)MARGIN;
        }
        if (columns > columns_max)
            return false;
    }
    struct dag_picture p = {.rows = rows, .columns = columns};
    p.places = ARENA_ARRAY(d->arena, struct dag_place, node_count);
    p.lines = ARENA_ARRAY(d->arena, uint8_t, rows * columns);
    for (size_t i = 0; i < d->layer_count; i++) {
        for (size_t k = 0; k < d->layers[i].count; k++) {
            const struct dag_item *item = item_at(d, &d->layers[i], k);
            if (item->node != DAG_NO_NODE)
                p.places[item->node] = (struct dag_place){item->row, left[i]};
        }
        if (i + 1 < d->layer_count)
            draw_gap(&gaps[i], &p, left[i] + d->layers[i].columns + MARGIN);
    }
    *ret_picture = p;
    return true;
}
