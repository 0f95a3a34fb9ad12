/* api/contract_set.h - the contracts of one API with their states, and the calls that go to each of them. */
#ifndef WEIR_API_CONTRACT_SET_H
#define WEIR_API_CONTRACT_SET_H

#include "api/contract.h"

enum { CONTRACTS_MAX = 16, CONTRACT_TASKS_MAX = 32, CONTRACT_TIMERS_MAX = 32 };

struct contract_set {
    struct {
        const struct contract *contract;
        void *self;
    } list[CONTRACTS_MAX]; /* those that are open */
    size_t count;
    const struct task_owner *owners[CONTRACT_TASKS_MAX];   /* of all of them, for kernel_config */
    const struct contract_task *tasks[CONTRACT_TASKS_MAX]; /* of the owners, in the same order */
    size_t task_count;
    const struct timer_kind *timers[CONTRACT_TIMERS_MAX]; /* the same */
    size_t timer_count;
};

/* Opens each in order. After an error those before it are open still: contract_set_close(). */
MUST_CHECK enum err_code contract_set_open(struct contract_set *s, const struct contract *const *contracts,
                                           struct api *a, struct err *err);
void contract_set_close(struct contract_set *s); /* the last one first */
/* The state of a contract that MUST be in the set. */
void *contract_set_self(const struct contract_set *s, const struct contract *c);

const struct contract_task *contract_set_task(const struct contract_set *s, const struct task_owner *owner);

void contract_set_stop(const struct contract_set *s);
void contract_set_committed(const struct contract_set *s, const struct unit *u);
void contract_set_hinted(const struct contract_set *s, unsigned hints);
bool contract_set_housekeep(const struct contract_set *s, struct unit *u);
bool contract_set_save(const struct contract_set *s, struct unit *u);
void contract_set_saved(const struct contract_set *s, bool stored);
bool contract_set_serve_internal(const struct contract_set *s, struct http_exchange *x);
void contract_set_measure(const struct contract_set *s, struct overload_queues *q);
void contract_set_write_metrics(const struct contract_set *s, struct call *c, const struct kernel_stats *k);

#endif
