/* store/table.h - how a table is described, so that a backend can handle rows it knows nothing about. */
#ifndef WEIR_STORE_TABLE_H
#define WEIR_STORE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum column_type { COLUMN_INT, COLUMN_TEXT, COLUMN_BLOB };

struct column {
    const char *name;
    enum column_type type;
    uint16_t offset;
};

struct table {
    const char *name;
    const struct column *columns;
    uint8_t column_count, key_count, fixed_count; /* fixed_count: leading columns no UPDATE touches */
    uint16_t row_size;
    uint8_t number; /* index into tables[] */
};

static inline int64_t row_int(const void *row, const struct column *c)
{
    return *(const int64_t *)(const void *)((const char *)row + c->offset);
}
static inline struct str row_str(const void *row, const struct column *c)
{
    return *(const struct str *)(const void *)((const char *)row + c->offset);
}

#endif
