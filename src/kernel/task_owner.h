/* kernel/task_owner.h - who a task belongs to, and what its owner is told.
 *
 * The kernel knows queue, lease, token and time; what a claim or a lost lease means is the owner's
 * decision (jobs now; governed jobs and workflow steps share the same table of verbs). Each verb is a
 * decider: pure, through the unit. */
#ifndef WEIR_KERNEL_TASK_OWNER_H
#define WEIR_KERNEL_TASK_OWNER_H

#include "kernel/unit.h"

struct task_outcome {
    bool success;
    struct str result; /* JSON object text or absent */
    struct str error_code, error_message;
    bool retryable;
    /* Of a delivery. */
    int64_t status, duration_ms; /* what the receiver answered, 0: nothing; how long it took */
    int64_t retry_after_ms;      /* as it asked for; 0: it did not */
};

struct task_owner {
    /* Says what rows the verbs below need. May be NULL. */
    void (*load)(struct unit *u, struct task *t);
    void (*due)(struct unit *u, struct task *t);      /* its wall timer passed */
    void (*again)(struct unit *u, struct task *t);    /* its backoff is over; changes no row. May be NULL */
    void (*assigned)(struct unit *u, struct task *t); /* claimed: worker, token and lease are set */
    void (*started)(struct unit *u, struct task *t);
    void (*finished)(struct unit *u, struct task *t, const struct task_outcome *outcome);
    void (*lease_expired)(struct unit *u, struct task *t, const char *reason); /* before it started */
    void (*worker_lost)(struct unit *u, struct task *t);                       /* lease ended while running */
    void (*timed_out)(struct unit *u, struct task *t);                         /* runtime limit passed */
    void (*expired)(struct unit *u,
                    struct task *t); /* nobody claimed it before its expire_ms, if it has one */
};

/* Filled by each owner's library; index enum task_owner_kind. */
extern const struct task_owner job_task_owner, delivery_task_owner, step_task_owner;
const struct task_owner *task_owner_of(const struct task *t);

/* How long a started task may run: catalog jobs of the built-in queue run on the runner's time scale. */
int64_t task_runtime_limit_ms(const struct settings *s, const struct task *t);

/* A leased task ends under its worker: the next heartbeat of that lease hears `cancel`. */
void task_leave_ghost(struct unit *u, const struct task *t);

#endif
