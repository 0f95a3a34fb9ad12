/* kernel/task_owner.h - an owner of tasks (jobs, steps, streams of deliveries), and the calls it gets. The
 * kernel is given the owners when it is made, in any order (kernel.h).
 *
 * The kernel knows queue, lease, token and time. The owner decides what a claim or a lost lease means: it is
 * a table of verbs, and each verb is a decider: pure, through the unit.
 *
 * Moves:  the kernel moves the task when it is claimed, started or returned (lifecycle/task_lifecycle.h),
 *         and then tells its owner. The other moves the owner decides, with unit_task_move() and
 *         unit_task_end(). What a task is about may have a lifecycle of its own, which the kernel does not
 *         see: a job's states follow its task's. */
#ifndef WEIR_KERNEL_TASK_OWNER_H
#define WEIR_KERNEL_TASK_OWNER_H

#include "base/must.h"
#include "kernel/ended_leases.h"
#include "kernel/unit.h"

struct task_outcome {
    bool success;
    struct str result; /* JSON object text or absent */
    struct str error_code, error_message;
    bool retryable;
    /* Of a delivery. */
    int64_t status, duration_ms; /* the receiver's status, 0: no answer; how long it took */
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

/* A finish of a lease that is over. */
struct finish_again {
    int64_t id, token, client; /* client 0: any */
    uint64_t low;
    struct str queues; /* that the caller is limited to; absent: none */
    const struct task_outcome *outcome;
};

/* Why a task has no outcome. */
enum task_loss {
    TASK_UNCLAIMED,   /* no worker claimed it before its expire_ms */
    TASK_WORKER_LOST, /* its lease ended while it was running */
    TASK_TIMED_OUT,   /* its runtime limit passed */
};

struct task_owner {
    int64_t number; /* in tasks.owner; below TASK_OWNERS_MAX, for ever its own */
    const char *name;
    /* Says what rows the verbs below need; called until nothing new is wanted (unit.h). May be NULL. */
    void (*load)(struct unit *u, struct task *t);
    bool loads_claims; /* a claim changes those rows, too: they come with the tasks that may be claimed */
    bool can_wait;     /* under pressure a task whose backoff is over waits a little longer */
    /* No row tells of a finish: the kernel remembers it for as long as the lease would have lasted. */
    bool remembers_finishes;
    bool releases_started;                 /* a worker may give a started task back */
    int64_t (*head)(const struct task *t); /* what its worker has to do next, as claims tell it */

    void (*due)(struct unit *u,
                struct task *t); /* its wall timer passed: it moves, ends or waits on. NULL: its
                                                    * tasks never wait */
    void (*again)(struct unit *u, struct task *t); /* its backoff is over; changes no row. May be NULL */

    /* Claimed: worker, token and lease are set. Started: started_ms is, too. Both may be NULL. */
    void (*assigned)(struct unit *u, struct task *t);
    void (*started)(struct unit *u, struct task *t);
    void (*finished)(struct unit *u, struct task *t, const struct task_outcome *outcome);
    void (*lost)(struct unit *u, struct task *t, enum task_loss how);
    /* Its lease ended before it started, or its worker gave it back: it has moved to READY, and t->phase is
     * what it was. Token, lease and worker are still those of the lease. Sets due_ms. */
    void (*released)(struct unit *u, struct task *t, const struct task_return *r);
    void (*progressed)(struct unit *u, struct task *t, const struct task_progress *p); /* May be NULL. */

    /* Did this token finish its task, with this outcome? `t`: the task, which holds no such lease; NULL: it
     * is gone, and load_ended has said which rows tell. NULL: no row does. */
    void (*load_ended)(struct unit *u, int64_t id);
    bool (*was_finished)(struct unit *u, const struct task *t, const struct finish_again *f);
};

static inline const struct task_owner *unit_owner(const struct unit *u, const struct task *t)
{
    const struct task_owner *owner = u->owners[t->row.owner];
    MUST(owner); /* the rows of a store of this schema have owners that this program knows */
    return owner;
}

/* A lease ends and its task is to be claimed again. */
void unit_task_return(struct unit *u, struct task *t, const struct task_return *r);

/* How long a started task may run: catalog jobs of the built-in queue run on the runner's time scale. */
int64_t task_runtime_limit_ms(const struct settings *s, const struct task *t);

/* The task's lease ends now, and its worker may still ask about it (kernel/ended_leases.h). */
void lease_remember_ended(struct unit *u, const struct task *t, enum lease_end how);

#endif
