/* runtime/sandbox.h - what each process may ask of the kernel, and nothing else.
 *
 * Two walls, entered once, before the process starts its first thread, and never left:
 *   seccomp    which system calls, and with which flags (sandbox_syscalls.h is the list);
 *   Landlock   which files may be opened, which TCP ports reached (sandbox_paths.c is the list).
 * Both stack: a child keeps root's walls and adds its own, so root's are the union of all, and
 * what root alone may do (fork, signals to others) is taken from each child by its own.
 *
 * A refused call fails with EPERM, a file with EACCES; a call that only an intruder makes (execve, ptrace,
 * mount, ...) ends the process by SIGSYS, and root says so in `process_ended`. Calls that are newer
 * than libseccomp fail with ENOSYS, so that libraries fall back on what they did before.
 *
 * runtime.sandbox: enforce, or log (seccomp tells the kernel's log and lets pass; no Landlock, which
 * cannot do that), or off. Landlock is used as far as the kernel has it; without seccomp `enforce` does
 * not start.
 * A sanitizer's run-time needs more than we do: those builds allow that too (SANDBOX_SANITIZED). */
#ifndef WEIR_RUNTIME_SANDBOX_H
#define WEIR_RUNTIME_SANDBOX_H

#include <stdio.h>

#include "base/err.h"
#include "runtime/process_table.h"

/* X(id, name). A row of runtime/process_list.h names one of them; several processes may have the same.
 * CORE is core on its own file; on PostgreSQL it has to connect. GATEWAY connects out and reads no data of
 * ours, RUNNER reaches core alone and has a file without a name. */
#define SANDBOX_LIST(X)                                                                                      \
    X(ROOT, "root")                                                                                          \
    X(CORE, "core")                                                                                          \
    X(CORE_SHARED, "core on PostgreSQL")                                                                     \
    X(GATEWAY, "gateway")                                                                                    \
    X(RUNNER, "runner")

#define X(id, name) SANDBOX_##id,
enum sandbox_id { SANDBOX_LIST(X) SANDBOX_COUNT };
#undef X

enum sandbox_mode { SANDBOX_OFF, SANDBOX_LOG, SANDBOX_ENFORCE };

enum sandbox_mode sandbox_mode(const struct settings *s);
enum sandbox_id sandbox_of(enum process_id process, const struct settings *s);

/* Both walls, no new privileges and, unless runtime.core_dumps is on, no core dump and no reading of
 * our memory by other processes of the same user. For a process with one thread. */
MUST_CHECK enum err_code sandbox_enter(enum sandbox_id id, const struct settings *s, struct err *err);

/* Core on its own file, once it listens: no socket is made, bound or connected any more, by any thread.
 * Nothing to do on PostgreSQL or without a sandbox. */
MUST_CHECK enum err_code sandbox_close_network(const struct settings *s, struct err *err);

/* The features of this kernel, whatever the settings say. */
bool sandbox_has_seccomp(void);
int sandbox_landlock_abi(void); /* 0: no Landlock */

/* One line of log, by root at the start: the sandbox in force. */
void sandbox_log(const struct settings *s);

/* The tables of docs/operations/sandbox.md. */
void sandbox_markdown(FILE *out);

#endif
