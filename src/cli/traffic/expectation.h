/* cli/traffic/expectation.h - what each work kind needs from outside and how it must end: one table.
 *
 * The catalog's numbers stand here a second time on purpose, as the seed gives them: the generator is a
 * witness, and a witness that copied lifecycle/work_kinds.h would agree with every mistake in it. */
#ifndef WEIR_TRAFFIC_EXPECTATION_H
#define WEIR_TRAFFIC_EXPECTATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "lifecycle/job_lifecycle.h"
#include "lifecycle/work_kinds.h"

/* The help that a kind needs from outside. X(name, in words) */
#define TRAFFIC_HELPS(X)                                                                                     \
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
enum traffic_help { TRAFFIC_HELPS(X) TRAFFIC_HELP_COUNT };
#undef X

enum traffic_attempts { ATTEMPTS_NONE, ATTEMPTS_ONE, ATTEMPTS_TWO, ATTEMPTS_ALL /* max_retries + 1 */ };

/* How long each run must take; scaled like the server's. */
enum traffic_clock {
    CLOCK_FULL,  /* its duration */
    CLOCK_LIMIT, /* its runtime limit; its duration is the limit and duration_ms on top */
    CLOCK_CUT,   /* no longer than its duration: it was cancelled */
    CLOCK_NEVER, /* it never ran */
};

struct traffic_expectation {
    const char *name;
    int64_t duration_ms;
    bool fails;
    int64_t payload_kb;
    int weight; /* in the mix `all`: long kinds are rare, or a mix would take hours */
    enum traffic_help help;
    enum job_state ends; /* JOB_NO_STATE: refused, there is no job */
    enum traffic_attempts attempts;
    const char *events; /* names without "job."; the part in ( ) comes once for each attempt */
    enum traffic_clock clock;
    const char *reason; /* of the last failure, NULL when there is none */
    bool retryable;
};

extern const struct traffic_expectation traffic_expectations[WORK_KIND_COUNT];

const char *traffic_help_text(enum traffic_help help);
bool traffic_help_is_receiver(enum traffic_help help);
const char *traffic_end_text(const struct traffic_expectation *e); /* "SUCCEEDED", "REJECTED" */

/* `KIND=STATE,...` beats the table: for experiments, and to prove that a surprise is seen. `ret` starts
 * as a copy of the table. CONFIG_INVALID says which word is wrong. */
MUST_CHECK enum err_code
traffic_expect_override(const char *text, struct traffic_expectation ret[WORK_KIND_COUNT], struct err *err);

#endif
