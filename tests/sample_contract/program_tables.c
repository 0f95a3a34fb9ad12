/* The tables and the rules of the program: those of weir, and the sample. */
#include "lifecycle/client_lifecycle.h"
#include "lifecycle/delivery_lifecycle.h"
#include "lifecycle/run_lifecycle.h"
#include "lifecycle/signals.h"
#include "sample_contract/note_rules.h"
#include "sample_contract/note_tables.h"
#include "store/change_set.h"
#include "store/live.h"

#define ALL_TABLES(T) STORE_TABLES(T) NOTE_TABLES(T)
#include "store/define_tables.h"

#include "base/banned.h"

const struct verify_rules *const verify_rules[] = {&verify_jobs, &verify_runs, &verify_notes, NULL};
