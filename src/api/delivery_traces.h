/* api/delivery_traces.h - the spans of deliveries: one for each attempt, in the trace of the job.
 *
 *   POST /v1/jobs                     what jobs.traceparent names
 *     POST callback, POST webhook     from the start of the attempt to the durable commit of its result
 *
 * A span's id follows from the lease. Core knows stream and token when it hands a delivery out and when it
 * records what came of it, so nothing is kept in between, and the id a receiver was told is the span's
 * whichever processes were killed meanwhile. A sender that is lost ends its span too (`sender_lost`).
 *
 * Attributes are those of OpenTelemetry's HTTP client spans except url.full: the path of a webhook's URL is
 * often the secret that opens it. Tests of a webhook are about no job and have no span. */
#ifndef WEIR_API_DELIVERY_TRACES_H
#define WEIR_API_DELIVERY_TRACES_H

#include "kernel/unit.h"
#include "telemetry/tracer.h"

/* The context of the attempt that this lease is. False: the job is not traced. */
bool delivery_context(struct str of_job, uint64_t stream_low, int64_t token,
                      struct trace_context *ret_context);

/* After a durable commit: every attempt that ended with it. Any thread. */
void delivery_traces_committed(struct tracer *t, const struct unit *u, int64_t now_us);

#endif
