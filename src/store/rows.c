/* The tables and the rules of the store alone, for a program whose contracts bring none of their own. */
#include "lifecycle/client_lifecycle.h"
#include "lifecycle/delivery_lifecycle.h"
#include "lifecycle/run_lifecycle.h"
#include "lifecycle/signals.h"
#include "store/change_set.h"
#include "store/live.h"
#include "store/verify_rules.h"

#define ALL_TABLES(T) STORE_TABLES(T)
#include "store/define_tables.h"

#include "base/banned.h"

/* The id of a task is one of unit_id(), and a bit says that it is no job's; only those of streams are
 * hashes. */
_Static_assert(TASK_ID_OF_OTHERS - 1 == 576460752303423487, "as TASK_COLUMNS has it");

const struct verify_rules *const verify_rules[] = {&verify_jobs, &verify_runs, NULL};
