/* tests/unit/egress/vectors.h - reads the tables of tests/egress line by line. */
#ifndef WEIR_TESTS_EGRESS_VECTORS_H
#define WEIR_TESTS_EGRESS_VECTORS_H

#include "base/str.h"

enum { VECTOR_COLUMNS_MAX = 3 };

typedef void vector_fn(const struct str columns[VECTOR_COLUMNS_MAX], void *self);
/* Calls fn for every line of $WEIR_EGRESS_VECTORS/name; \xHH are bytes. Returns how many there were. */
size_t vectors_each(const char *name, vector_fn *fn, void *self);

#endif
