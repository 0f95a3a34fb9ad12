/* api/contract.h - what a contract brings to core: one descriptor, and nothing else names the contract.
 *
 * A contract is a subject with all that belongs to it: jobs with their clients, queues and deliveries; runs
 * with their signals. Its descriptor stands with its handlers (api/jobs/jobs_contract.c). The program's list
 * is core/contracts.c: core, the API and the kernel are put together from it.
 *
 * Two parts stand in lists of their own, for programs that have no API: the tables and the rules of
 * `weir verify` (store/rows.c), and the commands people type (cli/command_tables.c).
 *
 * Optional: every member but the name may be NULL. CONTRIBUTING.md, "A contract", has the way from nothing to
 * all of them; tests/sample_contract is the smallest that has each. */
#ifndef WEIR_API_CONTRACT_H
#define WEIR_API_CONTRACT_H

#include "kernel/task_owner.h"
#include "kernel/timer_kind.h"
#include "kernel/worker_commands.h"

struct api;
struct call;
struct http_exchange;
struct json_writer;
struct kernel_stats;
struct overload_queues;
struct verify_rules;

/* A kind of task: its owner (kernel/task_owner.h), and how a claimed one is told to its worker. */
struct contract_task {
    const struct task_owner *owner;
    /* Writes one task object; none for a task that is gone. False with err set when the store cannot be read.
     * NULL: the worker API itself writes these, read together (jobs). HTTP thread. */
    bool (*encode)(struct call *c, struct json_writer *w, struct reader *r, const struct claimed_task *t,
                   struct err *err);
};

struct contract {
    const char *name;
    /* Lists end with NULL, or with a task of no owner. */
    const struct table *const *tables;
    const struct verify_rules *verify;
    const struct contract_task *tasks;
    const struct timer_kind *const *timers;
    const char *const *openapi; /* the names of its files; their routes are its own */

    /* Its state in the API, which every function below gets as `self`; `open` also takes the settings that it
     * looks at once. Before the store is there; no thread but the first runs. */
    enum err_code (*open)(struct api *a, void **ret_self, struct err *err);
    void (*stop)(void *self);  /* requests that wait for something outside end now */
    void (*close)(void *self); /* after the HTTP threads; also when something opened later failed */

    /* The turn's thread (kernel/kernel.h), once for each durable batch, before its answers go out: it holds
     * up all of them. What happened stands in the unit's notices and inserted rows. */
    void (*committed)(void *self, const struct unit *u);
    void (*hinted)(void *self, unsigned hints); /* other nodes wrote (enum store_hint). Any thread */

    /* Housekeeping: about once a second, a bounded part of the work; true when there is more. Deciders, which
     * may read through u->reader. `housekeep` is a duty, which one node does for all; `save` is for what each
     * node counts by itself, and `saved` says how its batch went. */
    bool (*housekeep)(void *self, struct unit *u);
    bool (*save)(void *self, struct unit *u);
    void (*saved)(void *self, bool stored);

    bool (*serve_internal)(void *self, struct http_exchange *x); /* a call of another process; false: none */
    void (*measure)(void *self, struct overload_queues *q);      /* how full its queues are. Any thread */
    /* Its families of /metrics, behind what the answer of `c` has. HTTP thread. */
    void (*write_metrics)(void *self, struct call *c, const struct kernel_stats *k);
};

#endif
