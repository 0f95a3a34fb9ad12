/* api/jobs/encode.h - jobs as JSON, by their field lists. Events: store/event_json.h. */
#ifndef WEIR_API_JOBS_ENCODE_H
#define WEIR_API_JOBS_ENCODE_H

#include "api/page.h"
#include "fields/job_fields.h"
#include "store/event_json.h"
#include "store/job_view.h"

/* null when it is missing; of the caller's own work it is the kind alone. */
void put_definition(struct json_writer *w, const struct job_row *job);
static inline void encode_definition(struct json_writer *w, const struct job_row *job)
{
    jw_key(w, "definition");
    put_definition(w, job);
}
void encode_job(struct json_writer *w, const struct job_view *v); /* as listings have it */
void encode_job_members(struct json_writer *w, const struct job_view *v);

/* The caller's job of the path, and the reader in whose snapshot it was read. False: answered. */
bool call_read_job(struct call *c, struct reader **ret_reader, struct job_view *ret_view);

#endif
