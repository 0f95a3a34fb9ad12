/* cli/simulate/expectation.h - what each work kind needs from outside and how it must end: one table.
 *
 * The catalog's numbers stand here a second time on purpose, as the seed gives them: the simulator is a
 * witness, and a witness that copied lifecycle/work_kinds.h would agree with every mistake in it. */
#ifndef WEIR_SIMULATE_EXPECTATION_H
#define WEIR_SIMULATE_EXPECTATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "lifecycle/job_lifecycle.h"
#include "lifecycle/work_kinds.h"

/* What a kind needs. X(name, in words) */
#define SIM_HELPS(X)                                                                                         \
    X(NOTHING, "runs by itself")                                                                             \
    X(REFUSAL, "is refused when submitted")                                                                  \
    X(CANCEL_QUEUED, "waits on a queue nobody serves and is cancelled there")                                \
    X(CANCEL_RUNNING, "is cancelled when its event stream says that it runs")                                \
    X(RETRY_ONCE, "is retried after its failure")                                                            \
    X(RETRY_ALL, "is retried until that is refused")                                                         \
    X(SAME_KEY, "is submitted again with its key: equal body, then another one")                             \
    X(TWO_KEYS, "is submitted twice, with two keys")                                                         \
    X(RECEIVER_OK, "calls back a receiver that answers 200")                                                 \
    X(RECEIVER_HANGS, "calls back a receiver that never answers a first attempt")                            \
    X(RECEIVER_FAILS_ONCE, "calls back a receiver that answers a first attempt with 500")                    \
    X(RECEIVER_FAILS, "calls back a receiver that answers 500 until a message is given up")                  \
    X(RECEIVER_SLOW, "calls back a receiver that takes its time")                                            \
    X(DUE_SOON, "is due in one to three seconds")                                                            \
    X(DUE_FAR, "is due in a year: seen to wait, then cancelled")                                             \
    X(RESTART, "is due while the server is restarted")

#define X(name, words) HELP_##name,
enum sim_help { SIM_HELPS(X) SIM_HELP_COUNT };
#undef X

enum sim_attempts { ATTEMPTS_NONE, ATTEMPTS_ONE, ATTEMPTS_TWO, ATTEMPTS_ALL /* max_retries + 1 */ };

/* How long each run must take; scaled like the server's. */
enum sim_clock {
    CLOCK_FULL,  /* its duration */
    CLOCK_LIMIT, /* its runtime limit; its duration is the limit and duration_ms on top */
    CLOCK_CUT,   /* no longer than its duration: it was cancelled */
    CLOCK_NEVER, /* it never ran */
};

struct sim_expectation {
    const char *name;
    int64_t duration_ms;
    bool fails;
    int64_t payload_kb;
    int weight; /* in the mix `all`: long kinds are rare, or a mix would take hours */
    enum sim_help help;
    enum job_state ends; /* JOB_NO_STATE: refused, there is no job */
    enum sim_attempts attempts;
    const char *events; /* names without "job."; what stands in ( ) comes once for each attempt */
    enum sim_clock clock;
    const char *reason; /* of the last failure, NULL when there is none */
    bool retryable;
};

extern const struct sim_expectation sim_expectations[WORK_KIND_COUNT];

const char *sim_help_text(enum sim_help help);
bool sim_help_is_receiver(enum sim_help help);
const char *sim_end_text(const struct sim_expectation *e); /* "SUCCEEDED", "REJECTED" */

/* `KIND=STATE,...` beats the table: for experiments, and to prove that a surprise is seen. `ret` starts
 * as a copy of the table. CONFIG_INVALID says which word is wrong. */
MUST_CHECK enum err_code sim_expect_override(const char *text, struct sim_expectation ret[WORK_KIND_COUNT],
                                             struct err *err);

#endif
