/* lifecycle/work_kinds.h - the work catalog: every kind of simulated job, in one list.
 *
 * A job whose work is the caller's own has no kind of this list (WORK_KIND_NONE); its `kind` is a free name.
 * A kind alone decides what a job does: how long it runs, whether it fails, how large its payload
 * is. Submitting turns a kind into a definition that is stored with the job; the runner acts on the
 * stored definition, so a later change of this list leaves accepted jobs as they were.
 * Pure: no clock, no randomness of its own. The same seed always draws the same kind.
 * To add a kind: one line in WORK_KINDS, and a row in its test. */
#ifndef WEIR_LIFECYCLE_WORK_KINDS_H
#define WEIR_LIFECYCLE_WORK_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum {
    WORK_DRAWN_DURATION_MS_MIN = 500,
    WORK_DRAWN_DURATION_MS_MAX = 120000,
    WORK_PAYLOAD_BYTES_MAX = 256 * 1024,
    WORK_OVER_LIMIT_MS = 1000, /* how far RUNS_OVER_TIMEOUT outlasts its runtime limit */
};

/* The runner's activity while the duration passes, and the failure of kinds that fail. */
enum work_behaviour {
    BEHAVE_WAIT,           /* lets the duration pass; a failure is for good */
    BEHAVE_BURN_CPU,       /* bounded slices of CPU on a thread beside the event loop */
    BEHAVE_TOUCH_MEMORY,   /* holds a bounded block, every page touched */
    BEHAVE_WRITE_FILE,     /* writes, reads back and removes a temporary file */
    BEHAVE_MANY_OUTPUTS,   /* the result lists many small outputs */
    BEHAVE_LARGE_OUTPUT,   /* the result fills the payload size */
    BEHAVE_OUTLAST_LIMIT,  /* runs longer than its runtime limit allows */
    BEHAVE_FAIL_RETRYABLE, /* fails on every attempt, and says that a retry may help */
    BEHAVE_FAIL_ONCE,      /* fails retryable on the first attempt, succeeds later */
    BEHAVE_REJECT,         /* refused when submitted, never run */
};

/* The random draw picks FAIL or not by probability, then a kind: SLOW counts as succeeding. */
enum work_family { WORK_FAMILY_SUCCESS, WORK_FAMILY_SLOW, WORK_FAMILY_FAIL };

/* X(name, duration_ms, should_fail, payload_kb, expected outcome, family, drawn, behaviour)
 * The first word of the expected outcome is the final state of the first attempt. Kinds that need
 * something from outside (a cancel, a receiver, a restart) are never drawn, and neither are the two
 * whose numbers leave the range of drawn definitions: PAYLOAD_INVALID and RUNS_OVER_TIMEOUT. */
#define WORK_KINDS(X)                                                                                        \
    X(SUCCESS_FAST, 1000, false, 4, "SUCCEEDED", SUCCESS, true, WAIT)                                        \
    X(SUCCESS_NORMAL, 10000, false, 16, "SUCCEEDED", SUCCESS, true, WAIT)                                    \
    X(SUCCESS_SLOW, 90000, false, 32, "SUCCEEDED", SLOW, true, WAIT)                                         \
    X(FAIL_IMMEDIATE, 500, true, 1, "FAILED", FAIL, true, WAIT)                                              \
    X(FAIL_AFTER_PROGRESS, 20000, true, 8, "FAILED", FAIL, true, WAIT)                                       \
    X(FAIL_AFTER_RETRYABLE, 5000, true, 8, "FAILED (retryable)", FAIL, true, FAIL_RETRYABLE)                 \
    X(RUNS_LONG, 110000, false, 32, "SUCCEEDED", SLOW, true, WAIT)                                           \
    X(RUNS_OVER_TIMEOUT, WORK_OVER_LIMIT_MS, true, 8, "FAILED (timeout)", FAIL, false, OUTLAST_LIMIT)        \
    X(CPU_BURST, 8000, false, 4, "SUCCEEDED", SUCCESS, true, BURN_CPU)                                       \
    X(MEMORY_SPIKE, 12000, false, 64, "SUCCEEDED", SUCCESS, true, TOUCH_MEMORY)                              \
    X(IO_HEAVY, 15000, false, 32, "SUCCEEDED", SUCCESS, true, WRITE_FILE)                                    \
    X(MANY_SMALL_OUTPUTS, 9000, false, 16, "SUCCEEDED", SUCCESS, true, MANY_OUTPUTS)                         \
    X(LARGE_OUTPUT, 9000, false, 256, "SUCCEEDED", SUCCESS, true, LARGE_OUTPUT)                              \
    X(CANCEL_BEFORE_START, 5000, false, 4, "CANCELED (when cancel issued in QUEUED)", SUCCESS, false, WAIT)  \
    X(CANCEL_DURING_RUN, 10000, false, 4, "CANCELED (when cancel issued in RUNNING)", SUCCESS, false, WAIT)  \
    X(RETRY_ON_FAIL, 3000, true, 4, "FAILED then SUCCEEDED on retry", FAIL, true, FAIL_ONCE)                 \
    X(RETRY_LIMIT_REACHED, 3000, true, 4, "FAILED after max retries", FAIL, true, FAIL_RETRYABLE)            \
    X(DUPLICATE_SUBMIT_SAME_KEY, 2000, false, 4, "SUCCEEDED (same job id)", SUCCESS, false, WAIT)            \
    X(DUPLICATE_SUBMIT_DIFFERENT_KEY, 2000, false, 4, "SUCCEEDED (distinct jobs)", SUCCESS, false, WAIT)     \
    X(WEBHOOK_SUCCESS, 2000, false, 4, "SUCCEEDED (webhook delivered)", SUCCESS, false, WAIT)                \
    X(WEBHOOK_TIMEOUT, 2000, false, 4, "SUCCEEDED (webhook retries)", SUCCESS, false, WAIT)                  \
    X(WEBHOOK_5XX, 2000, false, 4, "SUCCEEDED (webhook retries)", SUCCESS, false, WAIT)                      \
    X(WEBHOOK_RETRIES_EXHAUSTED, 2000, false, 4, "SUCCEEDED (delivery failed)", SUCCESS, false, WAIT)        \
    X(WEBHOOK_SLOW_RECEIVER, 2000, false, 4, "SUCCEEDED (delivery delayed)", SUCCESS, false, WAIT)           \
    X(SCHEDULED_ON_TIME, 2000, false, 4, "SUCCEEDED", SUCCESS, false, WAIT)                                  \
    X(SCHEDULED_LATE_RECOVERY, 2000, false, 4, "SUCCEEDED (enqueued after restart)", SUCCESS, false, WAIT)   \
    X(SCHEDULED_FAR_FUTURE, 2000, false, 4, "SUCCEEDED", SUCCESS, false, WAIT)                               \
    X(PAYLOAD_SMALL, 2000, false, 1, "SUCCEEDED", SUCCESS, true, WAIT)                                       \
    X(PAYLOAD_MEDIUM, 2000, false, 16, "SUCCEEDED", SUCCESS, true, WAIT)                                     \
    X(PAYLOAD_LARGE, 2000, false, 256, "SUCCEEDED", SUCCESS, true, WAIT)                                     \
    X(PAYLOAD_INVALID, 0, false, 0, "REJECTED (validation error)", SUCCESS, false, REJECT)

#define X(name, duration, fail, kb, outcome, family, drawn, behaviour) WORK_##name,
enum work_kind {
    WORK_KINDS(X) WORK_KIND_COUNT,
    WORK_KIND_NONE = 255 /* work of the caller's own; stored, so it stays behind a catalog that grows */
};
#undef X

/* The definition stored with a job; payload_size in bytes, nothing scaled. */
struct work_definition {
    enum work_kind kind;
    int64_t duration_ms;
    bool should_fail;
    int64_t payload_size;
};

bool work_kind_parse(struct str text, enum work_kind *ret_kind); /* exact, upper case */
const char *work_kind_text(enum work_kind kind);                 /* NULL: none of the catalog */

/* May this number stand in a stored job? */
static inline bool work_kind_is_known(int64_t kind)
{
    return kind == WORK_KIND_NONE || (kind >= 0 && kind < WORK_KIND_COUNT);
}

/* All 0 for WORK_KIND_NONE. */
void work_define(enum work_kind kind, int64_t max_runtime_ms, struct work_definition *ret);

/* The kind for a job that names none. Probability 0 never draws a failing kind, 1 always does. */
enum work_kind work_draw(int64_t seed_ms, double failure_probability);

const char *work_expected_outcome(enum work_kind kind);
enum work_family work_kind_family(enum work_kind kind);
enum work_behaviour work_kind_behaviour(enum work_kind kind);
bool work_fails_on_attempt(const struct work_definition *d, int64_t attempt); /* attempts count from 1 */
bool work_failure_is_retryable(enum work_kind kind); /* the flag on the failure, not a permission */

#endif
