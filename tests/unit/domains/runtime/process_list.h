/* The list of a program that has a core and one process more. It is found before src/runtime/process_list.h:
 * a process is its row here and its folder, which is sample.c. */
#ifndef WEIR_RUNTIME_PROCESS_LIST_H
#define WEIR_RUNTIME_PROCESS_LIST_H

#define PROCESS_LIST(X)                                                                                      \
    X(CORE, "core", "hands out tasks", ROOT, 1, SANDBOX_CORE, true, NONE, core_of_the_test)                  \
    X(SAMPLE, "sample", "says of each task that it is done", OPERATIONS, s->runner_processes,                \
      SANDBOX_RUNNER, false, NONE, sample_main)

#endif
