/* api/job_traces.h - the spans of jobs: one for each attempt, and in it one for each state the job was in.
 *
 *   POST /v1/jobs                     the submit; its span is what jobs.traceparent names
 *     job attempt                     from CREATED (a retry: QUEUED) to the end
 *       job CREATED, QUEUED, ASSIGNED, RUNNING      each from one event to the next
 *       job report                    from the decision to the durable commit of outcome and report
 *
 * Ids of `job attempt` and `job RUNNING` follow from job and attempt, so a claim can hand a worker the
 * context of the run it is about to begin, and nothing has to be stored.
 *
 * Threads:  the commit thread tells of events, HTTP threads of jobs they have read; one lock.
 * Bounded:  JOB_TRACES_MAX unfinished jobs; the longest known is forgotten first and leaves no more spans.
 * Restart:  what is known of unfinished jobs is lost with the process; a job is learned again when it is
 *           claimed, canceled or retried, and its spans begin there. */
#ifndef WEIR_API_JOB_TRACES_H
#define WEIR_API_JOB_TRACES_H

#include "kernel/unit.h"
#include "store/rows.h"
#include "telemetry/tracer.h"

enum { JOB_TRACES_MAX = 65536 };

/* The purpose of a derived id: the same numbers give another id for another purpose. */
enum derived_span { DERIVED_ATTEMPT = 1, DERIVED_RUN = 2, DERIVED_DELIVERY = 3 };

struct job_traces;

struct job_traces *job_traces_new(struct tracer *tracer, size_t jobs_max);
struct job_traces *job_traces_free(struct job_traces *t); /* NULL is fine; always returns NULL */

/* A job that is read or inserted. Without a sampled context, or known already: nothing happens. */
void job_traces_learn(struct job_traces *t, const struct job_row *job, int64_t now_us);
/* After a durable commit: every event of it. */
void job_traces_committed(struct job_traces *t, const struct unit *u, int64_t now_us);

/* The context a worker gets for this attempt. False: the job is not traced. */
bool job_run_context(const struct job_row *job, int64_t attempt, struct trace_context *ret_context);

#endif
