/* kernel/task_owner.h - who a task belongs to, and what its owner is told.
 *
 * The kernel knows queue, lease, token and time; what a claim or a lost lease means is the owner's
 * decision (jobs now; governed jobs and workflow steps share the same table of verbs). Each verb is a
 * decider: pure, through the unit. */
#ifndef WEIR_KERNEL_TASK_OWNER_H
#define WEIR_KERNEL_TASK_OWNER_H

#include "kernel/ended_leases.h"
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

/* A lease is over and its task is to be claimed again. */
struct task_return {
    const char *reason;
    struct str message; /* of the worker that gave it back; absent: none */
    int64_t delay_ms;   /* it can be claimed after so long */
};

/* How far a running task is, as its worker says. */
struct task_progress {
    double percent; /* 0 to 100 */
    struct str note;
};

/* A finish whose task is not alive. */
struct finish_again {
    int64_t id, token, client; /* client 0: any */
    uint64_t low;
    struct str queues; /* that the caller is limited to; absent: none */
    const struct task_outcome *outcome;
};

struct task_owner {
    /* Says what rows the verbs below need. May be NULL. */
    void (*load)(struct unit *u, struct task *t);
    void (*due)(struct unit *u, struct task *t);      /* its wall timer passed */
    void (*again)(struct unit *u, struct task *t);    /* its backoff is over; changes no row. May be NULL */
    void (*assigned)(struct unit *u, struct task *t); /* claimed: worker, token and lease are set */
    void (*started)(struct unit *u, struct task *t);
    void (*finished)(struct unit *u, struct task *t, const struct task_outcome *outcome);
    /* Before it started: its lease ended, or its worker gave it back. */
    void (*lease_expired)(struct unit *u, struct task *t, const struct task_return *r);
    /* Its worker gave it back after the start; places the task. NULL: not after the start. */
    void (*released)(struct unit *u, struct task *t, const struct task_return *r);
    void (*progressed)(struct unit *u, struct task *t, const struct task_progress *p); /* May be NULL. */
    void (*worker_lost)(struct unit *u, struct task *t); /* lease ended while running */
    void (*timed_out)(struct unit *u, struct task *t);   /* runtime limit passed */
    void (*expired)(struct unit *u,
                    struct task *t); /* nobody claimed it before its expire_ms, if it has one */
    /* Of a task that is gone: did this token finish it, with this outcome? The first says what rows the
     * second needs. NULL: no row tells (the kernel remembers finishes of such tasks). */
    void (*load_ended)(struct unit *u, int64_t id);
    bool (*was_finished)(struct unit *u, const struct finish_again *f);
};

/* Filled by each owner's library; index enum task_owner_kind. */
extern const struct task_owner job_task_owner, delivery_task_owner, step_task_owner;
const struct task_owner *task_owner_of(const struct task *t);

/* How long a started task may run: catalog jobs of the built-in queue run on the runner's time scale. */
int64_t task_runtime_limit_ms(const struct settings *s, const struct task *t);

/* The task's lease ends now, and its worker may still ask about it (kernel/ended_leases.h). */
void lease_remember_ended(struct unit *u, const struct task *t, enum lease_end how);

#endif
