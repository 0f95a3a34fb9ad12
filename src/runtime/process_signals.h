/* runtime/process_signals.h - what a child process is given, and how it hears that it must stop.
 *
 * The supervisor calls process_signals_install before the child's main function; the child then:
 *   process_ready(start)            once, when it serves;
 *   process_stop_requested()        in its loop, or process_stop_fd() in its poll set;
 *   and returns its exit code. It never installs handlers of its own for SIGTERM and SIGINT.
 * SIGPIPE is ignored, and SIGHUP by all but the owner of the store. When root dies the kernel kills the
 * child; the owner of the store gets SIGTERM, and is ended by SIGALRM if it has not left runtime.drain_ms
 * and a grace later. */
#ifndef WEIR_RUNTIME_PROCESS_SIGNALS_H
#define WEIR_RUNTIME_PROCESS_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/process_table.h"

/* Exit codes with a meaning for root; any other, and any signal, means: start it again. */
enum {
    PROCESS_EXIT_CONFIG =
        78, /* EX_CONFIG: a restart cannot help; root stops everything, unless it was_ready */
    PROCESS_EXIT_ADAPTER =
        69, /* EX_UNAVAILABLE: a resource it needs did not open; restarts within the limit */
};

struct process_start {
    const struct settings *settings;
    const struct process_kind *kind;
    int instance;     /* from 1 */
    const char *name; /* "core", "runner 1" */
    const char *data_dir;
    const char *socket_path;   /* DATA/core.sock: the worker API for built-in processes */
    const char *topology_path; /* DATA/topology.json, written by root */
    pid_t root_pid;
    bool was_ready;   /* the one before it, under this root: so the configuration is good */
    bool accept_loss; /* of the owner of the store: go on with one that has lost commits */
    int ready_fd;
    int lock_fd;    /* of the data directory (runtime/data_lock.h); -1 in all but the owner of the store */
    int secrets_fd; /* the source of settings_take_secrets, for the owner of the store; else -1 */
    int scratch_fd; /* of a runner: a file without a name, since it may open none; -1: there is none */
};

/* The main functions of the rows, defined in the folders of the processes. Nothing here calls them: the
 * program hands them to root (cli/serve.c). */
typedef int process_main_fn(const struct process_start *start);
#define X(id, name, does, domain, instances, sandbox, store, asked, main) process_main_fn main;
PROCESS_LIST(X)
#undef X

void process_signals_install(const struct process_start *start);
void process_ready(const struct process_start *start); /* more than once does no harm */

bool process_stop_requested(void);
bool process_reload_requested(void);     /* SIGHUP came since the last call; the owner of the store only */
int process_stop_fd(void);               /* readable from the first request on; never read it empty */
bool process_wait_stop(int64_t wait_ms); /* true once stop is requested; < 0 waits without end */
bool process_orphaned(void);             /* root is gone: there is nothing left to drain for */

#endif
