/* jobs/job_commands.h - what clients ask of jobs: submit (one or many), cancel, retry. Commands in, answers
 * out; the deciders are in decide_submit.c, decide_cancel.c and decide_retry.c and hold every rule. */
#ifndef WEIR_JOBS_JOB_COMMANDS_H
#define WEIR_JOBS_JOB_COMMANDS_H

#include "kernel/kernel.h"
#include "lifecycle/job_lifecycle.h"
#include "lifecycle/work_kinds.h"

enum {
    JOB_BATCH_MAX = 1000,
    JOB_PRIORITY_DEFAULT = 4,
    JOB_PRIORITY_MAX = 9,
    JOB_PRIORITY_LOW_MAX = 2, /* the class refused first under pressure */
    JOB_QUEUE_NAME_MAX = 64,
    JOB_KIND_NAME_MAX = 128,
    JOB_OWN_RUNTIME_MS_DEFAULT = 3600000, /* of a job outside the catalog that asks for none */
    JOB_FINGERPRINT_BYTES = 16,
    JOB_QUEUE_TTL_SECONDS_MAX = 31536000,
};

#define JOB_QUEUE_DEFAULT "default"

/* One job as asked for: decoded, its values not yet checked. Absent texts and -1 numbers: not given. */
struct submit_item {
    /* asked */
    struct str type, kind, work_kind, retry, execution_at, callback, queue;
    int64_t priority, max_runtime_ms, max_retries, queue_ttl_seconds;
    bool has_priority, has_max_runtime, has_max_retries, has_queue_ttl;
    struct str payload; /* JSON object text */
    struct str idem_key;
    uint8_t fingerprint[JOB_FINGERPRINT_BYTES]; /* of the canonical body */
    struct str traceparent;
    bool is_bad; /* it could not be read: refused already, by `err` */
    /* answer */
    struct err err; /* code ERR_OK: accepted or replayed */
    int64_t id, created_ms;
    uint64_t low;
    enum job_state state;
    bool replayed;
};

struct submit_command {
    struct command base;
    int64_t client;
    struct submit_item *items;
    size_t item_count;
};
extern const struct command_type submit_command_type;

/* cancel and retry */
struct job_command {
    struct command base;
    int64_t client;
    struct str queues; /* that the caller is limited to; absent: none (lifecycle/key_power.h) */
    int64_t id;
    uint64_t low;
    /* answer */
    enum job_state state;
    int64_t updated_us, attempt;
    bool changed;
};
extern const struct command_type cancel_command_type, retry_command_type;

/* Milliseconds a retry waits before attempt `attempt` (2, 3, ...): base * 2^(attempt-2), capped, spread by
 * the jitter; the spread comes from the job id, so it needs no randomness and replays the same. */
int64_t job_backoff_ms(const struct settings *s, int64_t job, int64_t attempt);

#endif
