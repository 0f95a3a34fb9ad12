/* domains/runner/runner.h - executes jobs of the built-in work catalog, and nothing else.
 *
 * Process:   `weir: runner`. Holds no truth: it leases tasks through worker_client/, lets their
 *            simulated time pass and reports. It may die at any instant; leases bring its jobs back.
 * Threads:   one event loop drives any number of jobs by a heap of timers. Kinds that use the
 *            machine (CPU, memory, files) do so, bounded, on one thread beside it (exercise.h).
 * Invariant: a worker never holds more tasks than its concurrency, a slot is free again only after
 *            core answered the report. No shell, no user code, no outside payload is ever looked at.
 * Time:      durations and runtime limits of the stored definition times `time_scale`; heartbeats,
 *            leases and drain are never scaled. */
#ifndef WEIR_DOMAINS_RUNNER_H
#define WEIR_DOMAINS_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct runner_config {
    int64_t workers;         /* each claims under its own worker_id */
    int64_t concurrency;     /* tasks at once per worker */
    double time_scale;       /* 0.01 = a hundred times faster */
    int64_t heartbeat_ms;    /* between two heartbeats of a running task */
    int64_t drain_ms;        /* after a stop, what runs may go on this long */
    const char *socket_path; /* core's Unix socket */
    const char *queue;       /* NULL: "default" */
    int scratch_fd;          /* the file that IO_HEAVY writes; -1: none */
    int64_t instance;        /* number of this process, part of its worker ids */
    bool (*stop_requested)(void);
    int stop_fd;               /* readable once a stop is wanted; -1: none */
    const struct clock *clock; /* NULL: the system's */
};

/* Runs until a stop is wanted, then drains: claims no more, lets running tasks go on for drain_ms,
 * releases what has not started, reports the rest as failed with code `shutdown`, retryable.
 * Returns the process's exit status: 0. */
int runner_main(const struct runner_config *config);

#endif
