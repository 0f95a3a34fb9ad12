/* runtime/supervisor.h - root: starts the processes, restarts what dies, stops them in order.
 *
 * Process:   root only, one thread. It holds no store, reads no JSON, takes no request.
 * Start:     lock of the data directory, then core; when core says ready, the rest and on_ready().
 *            A later restart of core leaves the others alone: they reconnect by themselves.
 * Restart:   runtime/restart_window.h, one window per domain. One restart too many ends the
 *            domain: what is left of it is stopped, root counts one restart, and the domain
 *            starts afresh. One too many for root ends the program.
 * Stop:      SIGTERM or SIGINT: all but core get SIGTERM and runtime.drain_ms, then core does.
 *            Stragglers are killed. A second signal kills at once.
 * Reload:    SIGHUP goes on to core, which reads its TLS files and the keys of outside issuers again.
 * Returns:   the exit code: 0 stopped as asked, 1 could not start or gave up, 78 a child ended
 *            with PROCESS_EXIT_CONFIG. Every failure has been told on stderr by then.
 * Writes:    DATA/topology.json on every change, for core and `weir doctor`. */
#ifndef WEIR_RUNTIME_SUPERVISOR_H
#define WEIR_RUNTIME_SUPERVISOR_H

#include "runtime/process_signals.h"

enum {
    SUPERVISOR_DRAIN_GRACE_MS = 2000, /* beyond runtime.drain_ms, before a straggler is killed */
    SUPERVISOR_CORE_STOP_MS = 5000,   /* core closes its connections and its store within this */
    SUPERVISOR_FATAL_STOP_MS = 500,   /* time to leave when the program gives up */
    SUPERVISOR_READY_WARN_MS = 10000, /* a child that is not ready by then is reported */
};

struct supervisor_config {
    const struct settings *settings;
    int secrets_fd;               /* for the owner of the store (process_start); -1: none */
    process_main_fn *run;         /* what every child does, in its sandbox: the main function of its kind */
    int argc;                     /* of main(), so that process titles can be set ... */
    char **argv;                  /* ... or NULL */
    void (*on_ready)(void *self); /* once, when core serves for the first time; may be NULL */
    void *on_ready_self;
    bool accept_loss; /* process_start */
};

int supervisor_run(const struct supervisor_config *config);

#endif
