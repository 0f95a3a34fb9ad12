/* jobs/submit_values.h - the value rules of a submit: pure checks from what was asked to what is stored. */
#ifndef WEIR_JOBS_SUBMIT_VALUES_H
#define WEIR_JOBS_SUBMIT_VALUES_H

#include "jobs/job_commands.h"

struct submit_values {
    enum job_type type;
    enum work_kind kind;  /* WORK_KIND_NONE: the caller's own work */
    struct str kind_name; /* absent: not given */
    enum job_retry retry;
    int64_t priority, max_runtime_ms, max_retries;
    int64_t queue_ttl_ms; /* 0: not given */
    int64_t execution_ms; /* 0: instant; rounded up, never early */
    struct str queue;
    struct work_definition definition;
};

/* The values that a queue gives to a job without its own. */
struct submit_defaults {
    enum job_retry retry;
    int64_t max_retries;  /* at most jobs.retry_max */
    int64_t queue_ttl_ms; /* 0: as jobs.queue_ttl_seconds says when the job is QUEUED */
};

/* Of a queue without settings. */
struct submit_defaults submit_defaults(const struct settings *s, struct str queue);

/* ERR_JOB_VALIDATION_FAILED with the field named in detail. `seed_ms` draws the work kind when none is given
 * and the built-in runner will do the work. */
MUST_CHECK enum err_code submit_check_values(const struct settings *s, const struct submit_defaults *d,
                                             const struct submit_item *item, int64_t now_us, int64_t seed_ms,
                                             struct submit_values *ret, struct err *err);
struct str submit_queue(const struct submit_item *item); /* as asked for, or `default` */
bool queue_name_is_valid(struct str name);
bool kind_name_is_valid(struct str name); /* of a caller's own kind */

#endif
