/* runs/plan.h - a plan: steps and what each waits for, read from JSON and checked. Pure.
 *
 * {"planId","planVersion","onFailure":"fail"|"wait","steps":[{"stepId","dependsOn":[],"queue","config":{},
 * "maxAttempts":1,"timeoutMs","delayMs"}]}. Refused (PLAN_INVALID, the step named in the detail): an unknown
 * member, a step twice, a dependency that is no step or is named twice, a cycle (its path is in the detail,
 * "a -> b -> a": a depends on b), a '|' in an id, more than the bounds. */
#ifndef WEIR_RUNS_PLAN_H
#define WEIR_RUNS_PLAN_H

#include "base/json.h"

enum {
    PLAN_STEPS_MAX = 10000,
    PLAN_ATTEMPTS_MAX = 100,
    PLAN_CONFIG_BYTES_MAX = 65536,
    PLAN_TEXT_MAX = 256, /* ids */
    PLAN_TIMEOUT_MS_MAX = 86400000,
};
#define PLAN_DELAY_MS_MAX INT64_C(31536000000) /* 365 days */

#define PLAN_ON_FAILURES(X) X(FAIL, "fail") X(WAIT, "wait")
#define X(id, name)         PLAN_##id,
enum plan_on_failure { PLAN_ON_FAILURES(X) PLAN_ON_FAILURE_COUNT };
#undef X
const char *plan_on_failure_text(enum plan_on_failure f);

struct plan_step {
    struct str id, queue;
    struct str config; /* JSON text of an object; absent: none */
    int64_t max_attempts;
    int64_t timeout_ms;                  /* of one attempt; 0: engine.step_timeout_ms */
    int64_t delay_ms;                    /* from the end of its last dependency until a worker may claim it */
    uint32_t *dependencies, *dependents; /* numbers of steps: those it depends on, those that depend on it */
    uint32_t dependency_count, dependent_count;
    uint32_t named_by; /* while reading: the step that named it last, counted from 1 */
};

struct plan {
    struct str id, version;
    enum plan_on_failure on_failure;
    struct plan_step *steps;
    uint32_t step_count;
};

/* Texts are the document's, arrays in `a`. */
MUST_CHECK enum err_code plan_decode(const struct json *j, struct arena *a, struct plan *ret_plan,
                                     struct err *err);
/* [a-z0-9][a-z0-9_.-]{0,63} */
bool plan_queue_is_good(struct str name);

#endif
