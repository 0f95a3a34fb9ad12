/* api/jobs/encode.h - jobs as JSON: the one place their fields are written. Events: store/event_json.h. */
#ifndef WEIR_API_JOBS_ENCODE_H
#define WEIR_API_JOBS_ENCODE_H

#include "api/api.h"
#include "base/json_members.h"
#include "store/event_json.h"
#include "store/job_view.h"

/* null when it is missing; of the caller's own work it is the kind alone. */
void encode_definition(struct json_writer *w, const struct job_row *job);
void encode_job(struct json_writer *w, const struct job_view *v); /* as listings have it */
void encode_job_members(struct json_writer *w, const struct job_view *v);
/* The same with result and progress: a page of results would be large. */
void encode_whole_job(struct json_writer *w, const struct job_view *v);
int64_t job_ran_ms(const struct job_view *v); /* of a final job; 0 when it never ran */
/* job_id, outcome, started_at, finished_at, duration_ms; null what an unfinished job does not know yet. */
void encode_report_members(struct json_writer *w, const struct job_view *v);

/* The caller's job of the path, and the reader in whose snapshot it was read. False: answered. */
bool call_read_job(struct call *c, struct reader **ret_reader, struct job_view *ret_view);
/* The query's `limit`. False: answered. */
bool call_limit(struct call *c, int64_t fallback, int64_t max, int64_t *ret_limit);

#endif
