/* cli/columns.h - tables of things an API lists: the columns are data. */
#ifndef WEIR_CLI_COLUMNS_H
#define WEIR_CLI_COLUMNS_H

#include "cli/table.h"
#include "fields/fields.h"

struct list_column {
    const char *heading; /* as text_table_new() takes it */
    const char *member;  /* MEMBER(...): it stands in the column, a state in its colour */
    /* Instead of a member: adds the cell. */
    void (*cell)(struct text_table *t, const struct json *item);
};

struct text_table *columns_table(const struct list_column *columns, size_t count);
void columns_row(struct text_table *t, const struct list_column *columns, size_t count,
                 const struct json *item);
/* The whole array, which may be NULL, on stdout. */
void columns_show(const struct list_column *columns, size_t count, const struct json *items);

#endif
