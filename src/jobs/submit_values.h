/* jobs/submit_values.h - the value rules of a submit: pure checks from what was asked to what is stored. */
#ifndef WEIR_JOBS_SUBMIT_VALUES_H
#define WEIR_JOBS_SUBMIT_VALUES_H

#include "jobs/job_commands.h"

struct submit_values {
    enum job_type type;
    enum work_kind kind;
    int64_t priority, max_runtime_ms, max_retries;
    int64_t queue_ttl_ms; /* 0: not given */
    int64_t execution_ms; /* 0: instant; rounded up, never early */
    struct str queue;
    struct work_definition definition;
};

/* ERR_JOB_VALIDATION_FAILED with the field named in detail. `seed_ms` draws the kind when none is given. */
MUST_CHECK enum err_code submit_check_values(const struct settings *s, const struct submit_item *item,
                                             int64_t now_us, int64_t seed_ms, struct submit_values *ret,
                                             struct err *err);
bool queue_name_is_valid(struct str name);

#endif
