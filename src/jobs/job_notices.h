/* jobs/job_notices.h - what jobs, deliveries, webhooks and keys tell those who watch (kernel/notice.h). */
#ifndef WEIR_JOBS_JOB_NOTICES_H
#define WEIR_JOBS_JOB_NOTICES_H

#include "kernel/unit.h"

/* An event of a job. */
struct job_notice {
    struct event event;
    uint64_t low;
    int64_t client;
    int64_t waited_ms; /* on job.assigned: since it could be claimed; on job.running: since assigned */
    int64_t ran_ms;    /* on a final event after a start; else -1 */
    struct str worker;
    struct str queue; /* on the end of an attempt or a job; else absent */
    bool is_release;  /* a worker gave a started job back: the lifecycle calls it FAILED, nothing failed */
};
extern const struct notice_kind job_notices;

static inline bool job_notice_is_failed_attempt(const struct job_notice *n)
{
    return n->event.next == JOB_FAILED && n->event.prev != JOB_FAILED && !n->is_release;
}

static inline bool job_notice_is_success(const struct job_notice *n)
{
    return n->event.event == JOB_EVENT_SUCCEEDED;
}

/* The next notice, from number *at on, of an attempt that succeeded or failed; NULL: there is none. */
static inline const struct job_notice *job_notices_next_end(const struct notices *all, size_t *at)
{
    while (*at < all->count) {
        const struct job_notice *n = notice_row(&all->list[(*at)++], &job_notices);
        if (n && (job_notice_is_success(n) || job_notice_is_failed_attempt(n)))
            return n;
    }
    return NULL;
}

/* A worker told how far its job is. */
struct progress_notice {
    int64_t job;
};
extern const struct notice_kind progress_notices;

/* An attempt to deliver that is over. Costly: the job's row is read for it. */
struct attempt_notice {
    const struct delivery_row *delivery;
    const struct job_row *job;
    const struct webhook_row *webhook;   /* NULL: the job's callback, or the webhook is gone */
    int64_t stream_low, token;           /* of the lease: no two attempts have the same */
    int64_t attempt, started_ms, status; /* status 0: there was no answer */
    struct str error;                    /* absent: delivered */
};
extern const struct notice_kind attempt_notices;

/* A delivery was made, or given up. */
struct delivery_end_notice {
    bool delivered;
};
extern const struct notice_kind delivery_end_notices;
/* A webhook was disabled. Rows: struct webhook_row. */
extern const struct notice_kind disabled_webhook_notices;
/* API keys, or the states of clients, were written: caches are read anew before answers go out. No row. */
extern const struct notice_kind key_change_notices;

#endif
