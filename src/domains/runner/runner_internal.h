/* domains/runner/runner_internal.h - the runner's memory: workers, tasks, and the calls in flight.
 *
 * A task moves through its phases in one direction, with one step back: a start that core did not
 * answer is asked again.
 *
 *   ASSIGNED ─► STARTING ─► RUNNING ─► ENDED ─► REPORTING ─► (gone)
 *      │ ▲──────────┘          │          ▲────────┘ no answer
 *      └─► RELEASING ─► (gone) └─► (gone): cancelled, lease lost
 *
 * ASSIGNED, RUNNING and ENDED tasks stand in the list of their phase; the others are in a batch
 * that is in flight. RUNNING tasks also have a timer. A task that is gone lives on, in phase GONE,
 * while a heartbeat that names it is still in flight. */
#ifndef WEIR_RUNNER_INTERNAL_H
#define WEIR_RUNNER_INTERNAL_H

#include <sys/queue.h>

#include "base/heap.h"
#include "domains/runner/exercise.h"
#include "domains/runner/runner.h"
#include "domains/runner/simulated_work.h"
#include "runtime/link_watch.h"
#include "worker_client/worker_client.h"

enum {
    RUNNER_CLAIMS_MAX = 16,           /* long polls in flight, whatever the number of workers */
    RUNNER_CLAIM_WAIT_MS = 20000,     /* of a long poll */
    RUNNER_CALL_TIMEOUT_MS = 10000,   /* of any call, beside its wait */
    RUNNER_EMPTY_PAUSE_MS = 100,      /* after a claim that came back empty before its time */
    RUNNER_REPORT_MS = 1500,          /* after the drain, for the last reports */
    RUNNER_FINISH_BYTES = 512 * 1024, /* of results in one call: half of core's body limit */
    RUNNER_ARRIVED_READS_MAX = 1000,  /* before the long polls are given up */
    RUNNER_WORKER_ID_BYTES = 64,
};

enum task_phase {
    TASK_ASSIGNED,
    TASK_STARTING,
    TASK_RUNNING,
    TASK_ENDED,
    TASK_REPORTING,
    TASK_RELEASING,
    TASK_GONE,
    TASK_PHASE_COUNT,
};

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
    struct runner *runner;
    char id[RUNNER_WORKER_ID_BYTES];
    int64_t slots_free;
    struct worker_call *claim; /* NULL: none in flight */
    int64_t claimed_at_ms;
    bool wanting; /* stands in runner.wanting */
    TAILQ_ENTRY(runner_worker) link;
};

struct runner_task {
    struct heap_node timer;        /* while running: the end of its time or its limit, whichever is first */
    TAILQ_ENTRY(runner_task) link; /* in the list of its phase */
    struct runner_worker *worker;
    enum task_phase phase;
    enum task_end end;
    bool defined;        /* the definition was usable */
    bool beating;        /* named by the heartbeat in flight */
    uint32_t beat_round; /* the last heartbeat round that named it */
    struct work_definition definition;
    int64_t attempt, max_runtime_ms;
    int64_t limit_at_ms; /* INT64_MAX: none */
    struct exercise *exercise;
    struct worker_task_ref ref; /* texts stand behind this struct */
    struct str job_id;
    char texts[];
};

TAILQ_HEAD(runner_task_list, runner_task);

/* One kind of call: at most one in flight, everything that waits goes into the next. */
struct runner_batch {
    struct worker_call *call; /* NULL: none in flight */
    size_t count;
    struct runner_task *tasks[WORKER_BATCH_MAX];
};

struct runner {
    const struct runner_config *config;
    const struct clock *clock;
    struct worker_client *client;
    struct exerciser *exerciser;
    struct str queue;

    struct runner_worker *workers;
    TAILQ_HEAD(, runner_worker) wanting; /* free slots and no claim in flight */
    int claims_in_flight;
    int64_t claim_after_ms;

    struct runner_task_list phases[TASK_PHASE_COUNT]; /* only ASSIGNED, RUNNING, ENDED are used */
    struct heap timers;
    size_t task_count; /* all that are not gone */
    struct runner_batch start, heartbeat, finish, release;
    size_t finish_bytes_max;
    uint32_t beat_round;
    int64_t beat_at_ms;

    bool refused; /* core's last answer; one line for each change */
    /* the link to core, and what core is told of it (runner_report.c) */
    char name[24]; /* "runner 1" */
    struct link_watch link;
    struct link_return returned; /* core has not heard yet; attempts 0: nothing to tell */
    struct worker_call *report;
    bool wants_report, report_tells_return; /* the one in flight */
    bool draining;
    int64_t drain_until_ms;
};

/* runner_task.c - one task from claim to end. None of these calls core. */
struct runner_task *runner_task_new(struct runner *r, struct runner_worker *w,
                                    const struct worker_task *claimed);
void runner_task_started(struct runner *r, struct runner_task *t, int64_t now_ms);
void runner_task_due(struct runner *r, struct runner_task *t, int64_t now_ms); /* its timer has come */
void runner_task_ended(struct runner *r, struct runner_task *t, enum task_end end);
void runner_task_gone(struct runner *r, struct runner_task *t); /* frees its slot; t may be freed */
void runner_task_put(struct runner *r, struct runner_task *t, enum task_phase phase);
struct worker_finish runner_task_report(const struct runner_task *t, struct str result);
void runner_task_unbeat(struct runner_task *t); /* no heartbeat names it any more */

/* runner_calls.c - sends whatever waits, takes the answers. */
void runner_pump(struct runner *r, int64_t now_ms);
void runner_abandon_claims(struct runner *r);
int64_t runner_calls_next_at_ms(const struct runner *r, int64_t now_ms); /* INT64_MAX: only answers matter */

/* runner_report.c - what is told when core could not be reached, and when it is back. */
worker_link_fn runner_link;
void runner_report(struct runner *r);

void runner_want_work(struct runner *r, struct runner_worker *w);

#endif
