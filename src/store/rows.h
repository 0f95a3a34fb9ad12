/* store/rows.h - the rows of every table of the store, and the list of the tables.
 *
 * Owner of: which tables this library itself has. How a table is described: store/table.h. To add or change
 * one: CONTRIBUTING.md, "A table". A module outside of src/store has its own list in the same form and
 * declares its rows with it; the program that has the module defines the tables of both
 * (store/define_tables.h). */
#ifndef WEIR_STORE_ROWS_H
#define WEIR_STORE_ROWS_H

#include "store/client_tables.h"
#include "store/job_tables.h"
#include "store/run_tables.h"
#include "store/timer_tables.h"

#define STORE_TABLES(T)                                                                                      \
    CLIENT_TABLES(T)                                                                                         \
    JOB_TABLES(T)                                                                                            \
    RUN_TABLES(T)                                                                                            \
    TIMER_TABLES(T)

STORE_TABLES(DECLARE_TABLE)

/* Clients have smaller numbers. */
enum { TENANT_NUMBER_FIRST = 1 << 30 };

/* Every table of the program, at the place that its number says: those above first, in their order. */
extern const struct table *const tables[];
extern const unsigned table_count;

#define T(row, ...) TABLE_NUMBER_##row,
enum store_table_number { STORE_TABLES(T) STORE_TABLE_COUNT };
#undef T

#endif
