/* store/id_columns.h - columns with numbers of unit_new_id(), of which none is ever given twice: a store that
 * is opened goes on above the largest of them. One statement for both databases.
 *
 * A step's task has such a number, too, and a bit that says that it is no job's (TASK_ID_OF_STREAM, owner
 * TASK_OWNER_STEP: live.h); those of deliveries are hashes. */
#ifndef WEIR_STORE_ID_COLUMNS_H
#define WEIR_STORE_ID_COLUMNS_H

#include "store/live.h"

_Static_assert(TASK_OWNER_STEP == 2 && TASK_ID_OF_STREAM - 1 == 576460752303423487, "as the list has them");
#define STORE_ID_COLUMNS(X)                                                                                  \
    X("jobs", "id")                                                                                          \
    X("api_keys", "id")                                                                                      \
    X("webhooks", "id")                                                                                      \
    X("deliveries", "id")                                                                                    \
    X("plans", "num")                                                                                        \
    X("runs", "num")                                                                                         \
    X("alerts", "id")                                                                                        \
    X("signal_decisions", "id")                                                                              \
    X("tasks WHERE owner=2", "id & 576460752303423487")                                                      \
    X("operator_actions", "-back")
#define STORE_LARGEST_OF(table, column) " UNION ALL SELECT max(" column ") FROM " table
#define STORE_LAST_ID_SQL                                                                                    \
    "SELECT max(n) FROM (SELECT 0 AS n" STORE_ID_COLUMNS(STORE_LARGEST_OF) ") AS largest"

#endif
