/* tests/faults/kernel_load.h - the real kernel and the real deciders under a mixed load, step by
 * step.
 *
 * One step is one batch of the commit loop: submits (with idempotency keys, schedules, replays), a
 * claim, starts, finishes, releases, cancels, retries, keys and webhooks, while the clock's hands
 * move so that leases, runtime limits, backoffs and retention come in between.
 *
 * After a step that was acknowledged, every answer is compared with what a reader finds; after any
 * step, the live queue in memory is compared with the table. A difference ends the process
 * (base/must.h). */
#ifndef WEIR_TESTS_KERNEL_LOAD_H
#define WEIR_TESTS_KERNEL_LOAD_H

#include "kernel/kernel.h"

struct kernel_load;

/* The first step creates the client. Borrows the store. */
struct kernel_load *kernel_load_new(struct store *s, uint64_t seed);
/* `committed` is called after each durable commit, before its answers are heard (a step may make two, the
 * purge's and the commands'); `fatal` when the kernel says that the process must end. */
void kernel_load_watch(struct kernel_load *l, void (*committed)(void *arg), void (*fatal)(void *arg),
                       void *arg);
void kernel_load_free(struct kernel_load *l);

/* ERR_OK: acknowledged. Otherwise every command of the batch was refused with this error.
 * ERR_STORE_FSYNC: the process would have ended in this step; only kernel_load_free is left to call. */
enum err_code kernel_load_step(struct kernel_load *l, struct err *err);
/* The same with the commands alone: no reading back. For a disk whose reads may fail. */
enum err_code kernel_load_step_blind(struct kernel_load *l, struct err *err);
void kernel_load_compare(struct kernel_load *l); /* kernel_load_step does this after a refusal */

/* Counts by which a test proves that its load was a load. */
struct kernel_load_stats {
    uint64_t steps, accepted, replayed, claimed, started, finished, canceled, retried;
};
const struct kernel_load_stats *kernel_load_stats(const struct kernel_load *l);

/* store/verify on a fresh reader: the number of problems, the first one in `why`. */
uint64_t kernel_load_verify(struct store *s, char why[256]);

#endif
