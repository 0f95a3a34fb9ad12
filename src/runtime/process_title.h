/* runtime/process_title.h - what ps and top show for a process: "weir: runner 1".
 *
 * Sets the thread name (15 bytes, `ps -o comm`) and writes over the memory of argv and the
 * environment (`ps -o args`); the environment is moved elsewhere first. */
#ifndef WEIR_RUNTIME_PROCESS_TITLE_H
#define WEIR_RUNTIME_PROCESS_TITLE_H

/* Once, in the first process, while it has one thread. Without argv only names are set. */
void process_title_prepare(int argc, char **argv);
void process_title_set(const char *title);

#endif
