/* domains/skeleton/domain.h - the common part of all processes that do core's work.
 *
 * Process:   each that leases tasks from core: runner, gateway, replay. It adds its verbs (domain_ops): its
 *            work on a task, the number of its places, the queues it claims from.
 * Owner of:  the connection to core (DATA/core.sock) and the tries to have it again; claims, starts,
 *            heartbeats, results, returns; the drain; the reports to core about the load and a lost link; the
 *            beat for root.
 * Truth:     none is here. A process may die at any instant: leases end, and core hands its tasks out again.
 * Task:
 *
 *   ASSIGNED ─► STARTING ─► RUNNING ─► ENDED ─► REPORTING ─► (gone)
 *     │  ▲─────────┘         │  │        ▲─────────┘ no answer
 *     ▼                      │  └─► (gone): core wants it no more
 *   BACK ◄───────────────────┘
 *     │ ▲─────────┐ no answer
 *     └─► RELEASING ─► (gone)
 *
 *            A task of a domain that starts with its claim is RUNNING at once. A call that core did not
 *            answer is made again under the same token. A task that is gone lives on, in phase GONE, while
 *            a heartbeat that names it is in flight.
 * Calls:     of each verb but claim one is in flight; later items gather for the next one, so that a
 *            busy core sees fewer and larger calls.
 * Bounded:   a room never holds more tasks than it has places, those that a claim may bring included. A
 *            place is free again only after core has answered the result.
 * Drain:     once a stop is wanted: no more claims, unstarted tasks go back, running ones may go on for
 *            runtime.drain_ms, then time_over() ends them. DOMAIN_LAST_MS later it is over, whatever is left.
 * Threads:   one; every verb is called on it, none may wait. */
#ifndef WEIR_DOMAINS_DOMAIN_H
#define WEIR_DOMAINS_DOMAIN_H

#include <sys/queue.h>

#include "base/arena.h"
#include "runtime/pressure.h"
#include "runtime/process_signals.h"
#include "worker_client/worker_client.h"

enum {
    DOMAIN_WORKER_ID_MAX = 64,
    DOMAIN_LAST_MS = 1500,  /* after the drain, for the last results */
    DOMAIN_IDLE_MS = 10000, /* without a task: then a process on demand ends */
};

enum domain_phase {
    TASK_ASSIGNED,
    TASK_STARTING,
    TASK_RUNNING,
    TASK_ENDED,
    TASK_REPORTING,
    TASK_BACK,
    TASK_RELEASING,
    TASK_GONE,
    TASK_PHASE_COUNT,
};

struct domain;

/* Inside the process's own struct for a task. */
struct domain_task {
    /* Set by `take`; the texts live as long as the task. */
    struct worker_task_ref ref;
    struct str name; /* of the job or delivery, for log lines */
    /* Owned by the skeleton. */
    TAILQ_ENTRY(domain_task) link; /* in the list of its phase, if that has one */
    struct domain_room *room;
    enum domain_phase phase;
    bool beating;        /* the heartbeat in flight names it */
    uint32_t beat_round; /* the last round of heartbeats that named it, or the round of its beginning */
    int64_t beaten_ms;   /* the time of that */
};

/* Long polls that fill a room, one call at a time. Inside the process's own struct. */
struct domain_claim {
    struct domain *domain;
    struct domain_room *room;
    struct domain_claim *next_of_room;
    char worker_id[DOMAIN_WORKER_ID_MAX];
    const struct str *queues;
    size_t queue_count;
    uint32_t max;             /* tasks in one call */
    uint32_t asked;           /* by the call in flight */
    struct worker_call *call; /* NULL: none in flight */
    int64_t called_ms;
    bool waits; /* it stands in the list of claims that may call */
    TAILQ_ENTRY(domain_claim) link;
};

/* Places for tasks. Inside the process's own struct. */
struct domain_room {
    uint32_t places;
    uint32_t taken; /* by tasks, and by calls in flight for the tasks that they may bring */
    uint32_t asked; /* of that: by calls in flight */
    bool closed;    /* no claim calls for it */
    enum pressure_level level;
    struct domain_claim *claims;
    TAILQ_ENTRY(domain_room) link;
};

/* The verbs. Each gets the `self` that was handed to domain_main(). */
struct domain_ops {
    const char *tasks;      /* their name in the log: "tasks", "deliveries" */
    const char *task_key;   /* the key of one task in a log line: "job_id" */
    uint32_t claims_max;    /* long polls in flight */
    uint32_t calls_max;     /* other calls of the process (domain_client) in flight */
    bool starts_with_claim; /* claimed tasks count as started */
    bool beats_late;        /* most tasks are short: a task gets its first heartbeat at the age of one */

    /* Makes rooms, claims and the other things of the process. */
    void (*open)(void *self, struct domain *d);
    /* Makes the process's struct for a claimed task; never NULL. The JSON of `claimed` dies with the call. */
    struct domain_task *(*take)(void *self, struct domain_room *room, const struct worker_task *claimed);
    /* Begins the work on a started task, which ends by domain_task_ended() or domain_task_back(), inside this
     * call or later. */
    void (*begin)(void *self, struct domain_task *t, int64_t now_ms);
    /* Stops a running task that core no longer wants; it has no report. NULL: the task goes on, and its
     * report changes nothing. */
    void (*abandon)(void *self, struct domain_task *t);
    /* Writes the report of an ended task; texts go to the arena. False: the result has more than `bytes`. The
     * task then begins the next call, with room for any result. */
    bool (*report)(void *self, struct domain_task *t, size_t bytes, struct arena *a,
                   struct worker_finish *ret);
    /* Makes a report smaller that core found too large. False: that is impossible. NULL: always so. */
    bool (*shrink)(void *self, struct domain_task *t);
    void (*drop)(void *self, struct domain_task *t); /* frees it */

    /* Does the other work of the process in every round of the loop. NULL, and the next too: none. */
    void (*work)(void *self, int64_t now_ms);
    int64_t (*next_at_ms)(void *self, int64_t now_ms); /* the latest time for the next round */
    /* Ends all running tasks: the time of the drain is over. Called in every round from then on. NULL: no
     * task outlives `begin`. */
    void (*time_over)(void *self, int64_t now_ms);
    /* In a drain without tasks: is the other work done, too? It has until end_ms. NULL: there is none. */
    bool (*is_over)(void *self, int64_t now_ms, int64_t end_ms);
    /* Gives up what is left, after the last round. NULL: `abandon` and `drop` of each task are enough. */
    void (*stop)(void *self);
};

/* Runs until a stop is wanted and the drain is over. Returns the process's exit status. */
int domain_main(const struct process_start *start, const struct domain_ops *ops, void *self);

/* ---- for verbs ---- */

struct worker_client *domain_client(const struct domain *d);
uint32_t domain_task_count(const struct domain *d);
void domain_watch_fd(struct domain *d, int fd); /* the one descriptor that wakes the loop beside core's */
/* Ends the process with this status, after a drain that gives running tasks no time. */
void domain_end(struct domain *d, int exit_code);

/* Rooms get their numbers in the order of these calls. A new room is open. */
void domain_room_add(struct domain *d, struct domain_room *room, uint32_t places);
void domain_room_close(struct domain_room *room);
void domain_room_open(struct domain *d, struct domain_room *room);
/* From now on core hears how full each room is, as a partition of this component (runtime/pressure.h). */
void domain_report_rooms(struct domain *d, const char *component);
/* The queues stay the process's, and stay where they are. */
void domain_claim_add(struct domain *d, struct domain_claim *c, struct domain_room *room,
                      const struct str *queues, size_t queue_count, uint32_t max);

void domain_task_ended(struct domain *d, struct domain_task *t); /* `report` has its result */
void domain_task_back(struct domain *d, struct domain_task *t);  /* core hands it out again, at once */

#endif
