/* The processes of the program: those of weir, and the one of the sample contract. This file is found before
 * the one of src, which it includes. */
#ifndef WEIR_SAMPLE_PROCESS_LIST_H
#define WEIR_SAMPLE_PROCESS_LIST_H

#define PROCESS_LIST(X)                                                                                      \
    WEIR_PROCESSES(X)                                                                                        \
    X(REMINDER, "reminder", "shows notes", AGENTS, 1, SANDBOX_RUNNER, false, NONE, reminder_main)

#include "../../../src/runtime/process_list.h"

#endif
