/* cli/dag_layout.h - a graph of steps drawn as lines of text, from left to right. Pure.
 *
 *   extract ─┬─ clean ─┬─ publish
 *            └─ rank ──┘
 *
 * A node stands in the layer of its longest way from a root. A line that passes a layer has a row there of
 * its own, one for all it leads to. Between two layers, lines that lead to the same nodes share one upright
 * stroke. It is read like this: a line goes to the right, and up and down where the stroke has an arm to the
 * left; where it has none, as in ─│─ or ─├─, what comes from the left only passes.
 *
 * Callers: run_picture.c, which puts labels where the picture leaves room. All lives in the arena given. */
#ifndef WEIR_CLI_DAG_LAYOUT_H
#define WEIR_CLI_DAG_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum {
    DAG_NODES_MAX = 256, /* more is no picture for people */
    DAG_ITEMS_MAX = 2048 /* nodes, and lines that pass layers */
};

struct dag_node {
    size_t columns;               /* of its label, at least 1 */
    const uint32_t *dependencies; /* the nodes it waits for, by number */
    size_t dependency_count;
};

struct dag_place {
    size_t row, column;
};

/* Sides by which a line leaves a cell. */
enum { DAG_UP = 1, DAG_DOWN = 2, DAG_LEFT = 4, DAG_RIGHT = 8 };

struct dag_picture {
    size_t rows, columns;
    struct dag_place *places; /* of the labels, one a node */
    uint8_t *lines;           /* rows * columns cells, row by row: sides, 0 for nothing */
};

/* The layer of every node, 0 for roots. Gives how many layers there are; 0: a circle, or a dependency that is
 * no node. */
size_t dag_layers(struct arena *a, const struct dag_node *nodes, size_t count, uint32_t *ret_layers);

/* False when it does not fit into rows x columns, or is no graph without circles: show a list. */
bool dag_layout(struct arena *a, const struct dag_node *nodes, size_t count, size_t rows_max,
                size_t columns_max, struct dag_picture *ret_picture);

const char *dag_glyph(uint8_t sides); /* " " for 0 */

#endif
