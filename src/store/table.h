/* store/table.h - how a table is described, once, so that a backend can handle rows it knows nothing about.
 *
 * A table is two macros that stand together in the header of its module (store/client_tables.h has some):
 *
 *     #define THING_COLUMNS(X, row)                                              what a row consists of
 *         X(row, KEY, INT, id, IS_ID)
 *         X(row, FIXED, TEXT_OR_NULL, note, PERSONAL)
 *         X(row, CHANGING, INT, state, STATES(THING_NEW, THING_DONE))
 *     #define THING_TABLE(T)                                                     and what else is true of it
 *         T(thing_row, "things", THING_COLUMNS, RETENTION("for good"), INDEXES({"note", "note", IN_BOTH}))
 *
 * and a line in the module's list. From them come the struct (DECLARE_TABLE), the description below
 * (store/define_tables.h), CREATE TABLE, CHECK and indexes of both databases (store/table_sql.h), the largest
 * id a store has given, all statements of the backends, the copy, the general rules of a row
 * (store/row_rules.h) and docs/schema.md.
 *
 * Columns stand in this order: key columns, then those that never change, then those that an UPDATE writes.
 * A column that is added later stands last, for a database can add it nowhere else; where others change, it
 * counts as one that does. Numbers are int64, texts and blobs are borrowed strs (absent = NULL). */
#ifndef WEIR_STORE_TABLE_H
#define WEIR_STORE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum column_role { COLUMN_KEY, COLUMN_FIXED, COLUMN_CHANGING };
enum column_type { COLUMN_INT, COLUMN_TEXT, COLUMN_BLOB };

/* Bounds of a program's tables, checked when it is compiled. */
enum { TABLES_MAX = 128, TABLE_COLUMNS_MAX = 32, TABLE_ROW_BYTES_MAX = 512 };

struct column {
    const char *name;
    const char *rule; /* what a sound value is, in words */
    enum column_role role;
    enum column_type type;
    uint16_t offset;
    bool may_be_null, has_range, is_state, is_personal, has_log_positions;
    int64_t least, most;           /* with has_range */
    bool is_id;                    /* numbers of unit_id() */
    const char *ids_as, *ids_only; /* SQL: how such a number is had from the column, and from which rows */
};

/* What a column may be besides its type:
 * RANGE              no other number is sound.
 * STATES             the same, and the database refuses another one (CHECK).
 * IS_ID, IDS         numbers of unit_id(), of which none is given twice: a store that is opened goes on
 *                    above the largest of them. IDS says how the number is had from the column.
 * PERSONAL           may be about a person: a name, an address, or content that a caller wrote.
 * LOG_POSITIONS      where a job's events are in the log: a copy that renumbers chunks changes it. */
#define RANGE(first, last)  .has_range = true, .least = (first), .most = (last)
#define STATES(first, last) .is_state = true, RANGE(first, last)
#define IS_ID               .is_id = true
#define IDS(number, rows)   IS_ID, .ids_as = (number), .ids_only = (rows)
#define PERSONAL            .is_personal = true
#define LOG_POSITIONS       .has_log_positions = true

enum table_stores { IN_SQLITE = 1, IN_POSTGRES = 2, IN_BOTH = IN_SQLITE | IN_POSTGRES };

struct table_index {
    const char *name; /* behind the table's name and `_` */
    const char *columns;
    enum table_stores stores; /* what SQLite has in memory, or never asks, needs no index there */
    bool is_unique;
    const char *only; /* rows; NULL: all */
};

/* Entries of listings (struct list_entry) that lead to rows of the table. */
struct table_listing {
    uint8_t first, last; /* buckets */
    const char *what;
};

struct table {
    const char *name;
    const struct column *columns;
    uint8_t column_count, key_count, fixed_count; /* fixed_count: leading columns no UPDATE touches */
    uint16_t row_size;
    uint8_t number;        /* index into tables[] */
    const char *retention; /* when its rows are deleted */
    bool grows;            /* many rows are added, few change */
    uint8_t fill_percent;  /* rows change all the time: the rest of a page is for new versions; 0: no */
    const char *postgres_columns;         /* SQL: that it has besides, for its indexes there; NULL: none */
    const struct table_index *indexes;    /* up to one without a name; NULL: none */
    const struct table_listing *listings; /* up to one without words; NULL: none */
};

#define RETENTION(words)      .retention = (words)
#define GROWS                 .grows = true
#define HOT(percent)          .fill_percent = (percent)
#define POSTGRES_COLUMNS(sql) .postgres_columns = (sql)
#define INDEXES(...)                                                                                         \
    .indexes = (const struct table_index[])                                                                  \
    {                                                                                                        \
        __VA_ARGS__,                                                                                         \
        {                                                                                                    \
            .name = NULL                                                                                     \
        }                                                                                                    \
    }
#define LISTINGS(...)                                                                                        \
    .listings = (const struct table_listing[])                                                               \
    {                                                                                                        \
        __VA_ARGS__,                                                                                         \
        {                                                                                                    \
            .what = NULL                                                                                     \
        }                                                                                                    \
    }

/* DECLARE_TABLE as the T of a module's list: the structs of its rows and the names of their tables. */
#define FIELD_INT                         int64_t
#define FIELD_TEXT                        struct str
#define FIELD_BLOB                        struct str
#define FIELD_TEXT_OR_NULL                struct str
#define FIELD_BLOB_OR_NULL                struct str
#define FIELD(row, role, type, name, ...) FIELD_##type name;
#define DECLARE_TABLE(row, sql, columns, ...)                                                                \
    struct row {                                                                                             \
        columns(FIELD, row)                                                                                  \
    };                                                                                                       \
    extern const struct table table_##row;

static inline int64_t row_int(const void *row, const struct column *c)
{
    return *(const int64_t *)(const void *)((const char *)row + c->offset);
}
static inline struct str row_str(const void *row, const struct column *c)
{
    return *(const struct str *)(const void *)((const char *)row + c->offset);
}

#endif
