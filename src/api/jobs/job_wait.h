/* api/jobs/job_wait.h - a GET of a job that waits until the job is final (wait_ms).
 *
 * The call follows the job as an event stream does (api/followers.h): it reads nothing until there is news of
 * the job, from this node or another one. It ends early when the caller's key or token does
 * (api/credential.h), and when the server drains. It holds nothing but its connection. Belongs to the thread
 * of its loop. */
#ifndef WEIR_API_JOBS_JOB_WAIT_H
#define WEIR_API_JOBS_JOB_WAIT_H

#include "api/api.h"
#include "store/job_view.h"

enum { JOB_WAIT_MS_MAX = 30000 };

/* Answers with `send` when the job is final or the time is over; or with a problem. */
void job_wait_start(struct call *c, int64_t job, int64_t wait_ms,
                    void (*send)(struct call *c, const struct job_view *v));

#endif
