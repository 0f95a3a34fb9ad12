/* cli/dag_internal.h - what dag_layout.c hands to dag_route.c: rows are given, columns are sought. */
#ifndef WEIR_CLI_DAG_INTERNAL_H
#define WEIR_CLI_DAG_INTERNAL_H

#include "cli/dag_layout.h"

enum { DAG_NO_NODE = -1 };

/* An item with a row in a layer: a node, or a line that passes. */
struct dag_item {
    int32_t node; /* DAG_NO_NODE: a line */
    size_t columns, row;
    double weight; /* where it would like to stand in its layer */
    uint32_t *from, *to;
    size_t from_count, to_count; /* items of the layer before and behind */
};

struct dag_layer {
    uint32_t *items; /* from top to bottom */
    size_t count, columns;
};

struct dag {
    struct arena *arena;
    struct dag_item *items;
    size_t item_count;
    struct dag_layer *layers;
    size_t layer_count;
};

/* Columns for everything, and the picture. False: lines of different nodes would run together with these
 * rows, or it gets wider than columns_max. */
bool dag_route(const struct dag *d, size_t rows, size_t columns_max, size_t node_count,
               struct dag_picture *ret_picture);

#endif
