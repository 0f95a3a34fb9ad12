/* store/timer_tables.h - the table of timers; a part of store/rows.h. A timer is told of in
 * kernel/timer_kind.h. */
#ifndef WEIR_STORE_TIMER_TABLES_H
#define WEIR_STORE_TIMER_TABLES_H

#include "store/table.h"

/* What a timer may be of; stored, so new ones go to the end. */
enum timer_owner { TIMER_OF_RUN = 1 };

/* Numbers of timer kinds are below it, and those of what they may be of. */
enum { TIMER_KINDS_MAX = 32, TIMER_OWNERS_MAX = 32 };

/* One row a timer: it is inserted when the timer is set, and deleted when it fires or is cancelled. */
#define TIMER_COLUMNS(X, row)                                                                                \
    X(row, KEY, INT, owner)                                                   /* its number */               \
    X(row, KEY, INT, kind, RANGE(0, TIMER_KINDS_MAX - 1))                     /* struct timer_kind */        \
    X(row, FIXED, INT, owner_kind, RANGE(TIMER_OF_RUN, TIMER_OWNERS_MAX - 1)) /* enum timer_owner */         \
    X(row, CHANGING, INT, due_ms)                                             /* wall time */
#define TIMER_TABLE(T)                                                                                       \
    T(timer_row, "timers", TIMER_COLUMNS, RETENTION("until it fires or is cancelled"),                       \
      INDEXES({"due", "due_ms", IN_POSTGRES}))

#define TIMER_TABLES(T) TIMER_TABLE(T)

#endif
