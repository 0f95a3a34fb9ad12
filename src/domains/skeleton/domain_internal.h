/* domains/skeleton/domain_internal.h - the skeleton's memory, and the functions that its files share.
 *
 * ASSIGNED, RUNNING, ENDED and BACK tasks stand in the list of their phase; the others are in a batch that is
 * in flight. The list of RUNNING begins with the oldest last sign of life. */
#ifndef WEIR_DOMAINS_DOMAIN_INTERNAL_H
#define WEIR_DOMAINS_DOMAIN_INTERNAL_H

#include "base/clock.h"
#include "domains/skeleton/domain.h"
#include "runtime/link_watch.h"

TAILQ_HEAD(domain_task_list, domain_task);

/* One kind of call: at most one in flight. */
struct domain_batch {
    struct worker_call *call; /* NULL: none in flight */
    size_t count;
    struct domain_task *tasks[WORKER_BATCH_MAX];
};

struct domain {
    const struct process_start *process;
    const struct domain_ops *ops;
    void *self; /* of its verbs */
    struct worker_client *client;
    int watched_fd; /* -1: none */

    TAILQ_HEAD(, domain_room) rooms;
    TAILQ_HEAD(, domain_claim) claims; /* that may call: their room had a place */
    uint32_t claim_count, claims_in_flight;
    int64_t claim_after_ms;

    struct domain_task_list phases[TASK_PHASE_COUNT];
    uint32_t task_count; /* all that are not gone */
    struct domain_batch start, heartbeat, finish, release;
    size_t finish_bytes_max;
    uint32_t beat_round;
    int64_t beat_at_ms;

    bool refused;    /* core's last answer; one line for each change */
    int64_t busy_ms; /* the last time with a task */
    bool draining;
    int64_t drain_until_ms;
    int exit_code;

    /* the link to core, and the reports to core (domain_report.c) */
    struct link_watch link;
    struct link_return returned; /* core has not heard yet; attempts 0: nothing to tell */
    const char *component;       /* of its rooms in reports; NULL: reports have no rooms */
    struct worker_call *report;
    bool report_tells_return; /* the one in flight */
    int64_t report_at_ms;
};

static inline int64_t domain_now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

/* domain_task.c - a task's way from list to list. None of these calls core. */
void domain_task_put(struct domain *d, struct domain_task *t, enum domain_phase phase);
void domain_task_new(struct domain *d, struct domain_room *room, const struct worker_task *claimed);
void domain_task_started(struct domain *d, struct domain_task *t, int64_t now_ms);
/* The task is to be started, or in a drain to be given back. */
void domain_task_unstarted(struct domain *d, struct domain_task *t);
/* The task leaves its place; t may be freed. */
void domain_task_gone(struct domain *d, struct domain_task *t);
/* No heartbeat names the task any more; t may be freed. */
void domain_task_unbeat(struct domain *d, struct domain_task *t);
/* The end: core did not hear of these tasks in time, and their leases end. */
void domain_tasks_forget(struct domain *d);

/* domain_claims.c */
void domain_claims_pump(struct domain *d, int64_t now_ms);
void domain_claims_abandon(struct domain *d);
void domain_room_has_place(struct domain *d, struct domain_room *room); /* its claims may call */

/* domain_calls.c - sends waiting calls, takes the answers. */
void domain_calls_pump(struct domain *d, int64_t now_ms);
void domain_note_answer(struct domain *d, const struct worker_answer *answer);

/* domain_report.c */
worker_link_fn domain_link;
void domain_report(struct domain *d, int64_t now_ms);

#endif
