/* unit/engine/run_model.h - what a run must be, written from the contract alone (seed 002 sections 3 and 5,
 * AR-01..AR-10): no table of the lifecycle, no row of the store, nothing kept that can be looked up again.
 *
 * Every attempt of every step has a state of its own, and everything is searched from the front: slow and
 * plain, so that it can be read beside the contract. One rule of it can be made wrong on purpose (`flaw`): a
 * comparison with such a model has to find it. Texts are the caller's and stay. */
#ifndef WEIR_TESTS_RUN_MODEL_H
#define WEIR_TESTS_RUN_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "base/uuid.h"

enum { MODEL_STEPS_MAX = 24, MODEL_ATTEMPTS_MAX = 64, MODEL_RECORDS_MAX = 1200, MODEL_REFUSALS_MAX = 1200 };

/* X(name): wrong rules */
#define MODEL_FLAWS(X)                                                                                       \
    X(COMPLETES_WHILE_PAUSED)                                                                                \
    X(STARTS_STEPS_WHILE_PAUSED)                                                                             \
    X(CLOSES_STEPS_BEFORE_THE_START)                                                                         \
    X(FAILED_ATTEMPT_GOES_ON)                                                                                \
    X(ATTEMPTS_MAY_BE_SKIPPED)                                                                               \
    X(FINAL_IS_NOT_FINAL)                                                                                    \
    X(QUEUED_LATE_IS_INVALID)                                                                                \
    X(UNKNOWN_TYPES_ARE_INVALID)                                                                             \
    X(VERSION_IS_NOT_IN_THE_KEY)                                                                             \
    X(DUPLICATE_GETS_ITS_OWN_ID)                                                                             \
    X(INVALID_FREEZES_THE_RUN)
#define X(name) FLAW_##name,
enum model_flaw { FLAW_NONE, MODEL_FLAWS(X) FLAW_COUNT };
#undef X

enum model_answer {
    MODEL_WRITTEN,
    MODEL_DUPLICATE,
    MODEL_ID_IS_ANOTHERS,
    MODEL_REFUSED, /* layer 2 */
    MODEL_WRONG_ENVELOPE,
};

struct model_event {
    struct str type, step; /* step absent: about the run */
    int64_t attempt;
    struct str plan, version, tenant, project, environment;
    struct uuid id;
};

struct model_record {
    struct model_event event;
    int64_t persisted_ms;
    const char *prior, *attempted; /* of an invalid one; else NULL */
    int alerts;                    /* for the caller to count */
};

struct model_step {
    struct str name;
    const char *of_attempt[MODEL_ATTEMPTS_MAX + 1]; /* from 1 on; NULL: nothing has happened to it */
};

struct model_refusal {
    struct model_event event;
    const char *prior, *attempted;
};

struct run_model {
    enum model_flaw flaw;
    bool validates; /* layer 2 is on */
    bool exists;
    struct str id, tenant, project, environment;
    const char *status;
    bool inconsistent;
    int64_t queued_ms, started_ms, ended_ms;
    struct model_step steps[MODEL_STEPS_MAX];
    size_t step_count;
    struct model_record records[MODEL_RECORDS_MAX]; /* runSeq is the place, from 1 on */
    size_t record_count;
    struct model_refusal refusals[MODEL_REFUSALS_MAX];
    size_t refusal_count;
};

void run_model_start(struct run_model *m, struct str id);
/* An event arrives from a caller of its own tenant; *ret_seq: where it stands, if it does. A refusal's words
 * are in *ret_refusal. */
enum model_answer run_model_append(struct run_model *m, const struct model_event *e, int64_t now_ms,
                                   int64_t *ret_seq, const struct model_refusal **ret_refusal);
/* Reduces a record, whoever accepted it, as projectors do. */
void run_model_reduce(struct run_model *m, const struct model_event *e, int64_t persisted_ms);
/* Would it be a valid transition, or none at all? */
bool run_model_allows(const struct run_model *m, const struct model_event *e);
/* Its highest attempt; 0: none. NULL: no such step has been heard of. */
const char *run_model_step(const struct run_model *m, struct str name, int64_t *ret_attempt);
/* The state of one attempt of a step; NULL: there is none, nor can it come now. */
const char *run_model_attempt(const struct run_model *m, struct str step, int64_t attempt);
bool run_model_is_over(const struct run_model *m);

#endif
