/* The tables of a program that has the sample contract. */
#include "lifecycle/client_lifecycle.h"
#include "lifecycle/delivery_lifecycle.h"
#include "lifecycle/run_lifecycle.h"
#include "lifecycle/signals.h"
#include "sample_contract/note_tables.h"
#include "store/change_set.h"
#include "store/live.h"
#include "store/verify_rules.h"

#define ALL_TABLES(T) STORE_TABLES(T) NOTE_TABLES(T)
#include "store/define_tables.h"

#include "base/banned.h"

const struct verify_rules *const verify_rules[] = {&verify_jobs, &verify_runs, NULL};
