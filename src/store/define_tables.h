/* store/define_tables.h - the description of every table of a program, from the lists of its modules.
 *
 * Included once in a program, by the file that says which tables there are: it defines ALL_TABLES(T) as the
 * lists one after the other, STORE_TABLES first, and includes whatever the columns name (states, listings).
 * store/rows.c does so for the tables of the store alone. A program with more has a file of its own: it is
 * linked instead, for an archive gives only what is not there yet. */
#include "store/rows.h"

#include <stddef.h>

#include "base/must.h"

#define TYPE_INT          .type = COLUMN_INT
#define TYPE_TEXT         .type = COLUMN_TEXT
#define TYPE_BLOB         .type = COLUMN_BLOB
#define TYPE_TEXT_OR_NULL .type = COLUMN_TEXT, .may_be_null = true
#define TYPE_BLOB_OR_NULL .type = COLUMN_BLOB, .may_be_null = true

#define COLUMN(row_name, its_role, its_type, its_name, ...)                                                  \
    {.name = #its_name,                                                                                      \
     .rule = #its_name " holds a value that it may hold",                                                    \
     .role = COLUMN_##its_role,                                                                              \
     .offset = offsetof(struct row_name, its_name),                                                          \
     TYPE_##its_type,                                                                                        \
     __VA_ARGS__},
#define IS_KEY(row, role, ...)   +(COLUMN_##role == COLUMN_KEY)
#define IS_FIXED(row, role, ...) +(COLUMN_##role != COLUMN_CHANGING)
#define IS_COLUMN(row, ...)      +1
#define NUMBER(row, ...)         NUMBER_OF_##row,
#define POINTER(row, ...)        &table_##row,

enum { ALL_TABLES(NUMBER) COUNT_OF_TABLES };
_Static_assert(COUNT_OF_TABLES <= (unsigned)TABLES_MAX, "raise TABLES_MAX in store/table.h");

#define DEFINE_TABLE(row, sql_name, columns_of, ...)                                                         \
    static const struct column columns_##row[] = {columns_of(COLUMN, row)};                                  \
    _Static_assert((0 columns_of(IS_COLUMN, row)) <= TABLE_COLUMNS_MAX, "columns of " sql_name);             \
    _Static_assert(sizeof(struct row) <= TABLE_ROW_BYTES_MAX, "the size of a row of " sql_name);             \
    const struct table table_##row = {.name = sql_name,                                                      \
                                      .columns = columns_##row,                                              \
                                      .column_count = LENGTH_OF(columns_##row),                              \
                                      .key_count = 0 columns_of(IS_KEY, row),                                \
                                      .fixed_count = 0 columns_of(IS_FIXED, row),                            \
                                      .row_size = sizeof(struct row),                                        \
                                      .number = NUMBER_OF_##row,                                             \
                                      __VA_ARGS__};
ALL_TABLES(DEFINE_TABLE)

const struct table *const tables[] = {ALL_TABLES(POINTER)};
const unsigned table_count = COUNT_OF_TABLES;
