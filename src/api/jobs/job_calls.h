/* api/jobs/job_calls.h - what handlers of the Jobs API share. */
#ifndef WEIR_API_JOBS_JOB_CALLS_H
#define WEIR_API_JOBS_JOB_CALLS_H

#include "api/api.h"

/* Of the handlers that make something, or change what belongs to a client; false: answered. */
bool call_create_once(struct call *c, struct create_once *ret_once);
void call_mark_replay(struct call *c, bool replayed);
bool call_needs_caller(struct call *c);
/* The {queue} of the path, which the caller's key may touch. False: answered. */
bool call_queue_param(struct call *c, struct str *ret_queue);

#endif
