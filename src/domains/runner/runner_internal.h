/* domains/runner/runner_internal.h - executes jobs of the built-in work catalog, and nothing else.
 *
 * Process:   `weir: runner`, on the skeleton of domains/skeleton/domain.h: it lets the simulated time of each
 *            task pass and reports. Each of its workers claims under an id of its own.
 * Threads:   one event loop drives any number of jobs by a heap of timers. Kinds that use the
 *            machine (CPU, memory, files) do so, bounded, on one thread beside it (exercise.h).
 * Invariant: a worker never holds more tasks than its concurrency. No shell, no user code, no outside payload
 *            is ever looked at.
 * Time:      durations and runtime limits of the stored definition times `time_scale`; heartbeats,
 *            leases and drain are never scaled. */
#ifndef WEIR_RUNNER_INTERNAL_H
#define WEIR_RUNNER_INTERNAL_H

#include "base/heap.h"
#include "domains/runner/exercise.h"
#include "domains/runner/simulated_work.h"
#include "domains/skeleton/domain.h"

/* How a run ended. X(name, error code, message, retryable); a failure of the work itself is
 * retryable when its kind says so. */
#define TASK_ENDS(X)                                                                                         \
    X(SUCCESS, "", "", false)                                                                                \
    X(WORK_FAILED, "work_failed", "the scenario fails by design", false)                                     \
    X(TIMEOUT, "timeout", "stopped at its runtime limit", true)                                              \
    X(FILE_FAILED, "io_failed", "its temporary file could not be written and read back", true)               \
    X(NO_DEFINITION, "definition_missing",                                                                   \
      "no work of the catalog; own work needs a worker of yours, and on queue default runner.processes 0",   \
      false)                                                                                                 \
    X(RESULT_TOO_LARGE, "result_too_large", "core refused a result of this size", false)                     \
    X(SHUTDOWN, "shutdown", "the runner was stopped before the job ended", true)

#define X(name, code, message, retryable) END_##name,
enum task_end { TASK_ENDS(X) TASK_END_COUNT };
#undef X

struct runner_worker {
    struct domain_room room;
    struct domain_claim claim;
};

struct runner_task {
    struct domain_task task;
    struct heap_node timer; /* while running: the end of its time or its limit, whichever is first */
    enum task_end end;
    bool defined; /* the definition was usable */
    struct work_definition definition;
    int64_t attempt, max_runtime_ms;
    int64_t limit_at_ms; /* INT64_MAX: none */
    struct exercise *exercise;
    char texts[]; /* of task.ref and task.name */
};

struct runner {
    const struct settings *settings;
    struct domain *domain;
    struct exerciser *exerciser;
    struct runner_worker *workers;
    struct heap timers;
};

/* runner_task.c - one task from claim to end */
struct domain_task *runner_task_new(const struct worker_task *claimed);
void runner_task_begin(struct runner *r, struct runner_task *t, int64_t now_ms);
void runner_task_due(struct runner *r, struct runner_task *t, int64_t now_ms); /* its timer has come */
void runner_task_end(struct runner *r, struct runner_task *t, enum task_end end);
/* Gives back what only a running task has. False when its exercise failed. */
bool runner_task_stop(struct runner *r, struct runner_task *t);
struct worker_finish runner_task_report(const struct runner_task *t, struct str result);

#endif
