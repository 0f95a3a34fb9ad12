/* cli/job_internal.h - what the files of `weir job` share. */
#ifndef WEIR_CLI_JOB_INTERNAL_H
#define WEIR_CLI_JOB_INTERNAL_H

#include "cli/server_call.h"
#include "cli/table.h"

/* "/v1/jobs/ID" and what follows, the id escaped. */
struct str job_path(struct arena *a, struct str job_id, const char *rest);
/* One call about the job of the command's first argument. */
int job_call(const struct invocation *in, const char *method, const char *rest,
             struct server_answer *ret_answer);
/* The members of these names that are there, as "name  value" lines. An error and progress are put as people
 * say them; those, and a result, have no line when they are null. */
void job_show_pairs(const struct json *object, const char *const *names, size_t count);

/* Flags that are filters of jobs, and their names in the API. */
struct job_filter {
    enum flag_id flag;
    const char *name;
};
extern const struct job_filter job_filters[];
extern const size_t job_filter_count;
bool job_has_filter(const struct flags *f);

/* An action on all jobs that match the filters, by calls of at most ten thousand. Asks first how many there
 * are, unless --yes says not to. */
struct job_bulk {
    const char *path;          /* of the call */
    const char *verb, *done;   /* "Cancel", "canceled" */
    const char *others;        /* the text about jobs that matched and did not change */
    const char *const *states; /* jobs in these can change; ended by NULL */
};
int job_bulk(const struct invocation *in, const struct job_bulk *b);

/* A note when --kind names simulated work of the catalog, which --work-kind asks for. */
void job_hint_at_catalog(const struct invocation *in);

void job_put_progress(const struct json *progress, struct strbuf *out); /* "40 %, page 4 of 10" */

/* Event by event. `*previous_us` is the time of the one before, 0 at the first. */
extern const char *const job_event_headings[];
enum { JOB_EVENT_COLUMNS = 6 };
void job_event_row(struct text_table *t, const struct json *event, int64_t *previous_us);
void job_progress_row(struct text_table *t, const struct json *progress, int64_t *previous_us);
/* "+1.003 s", "+250 ms", "+2 min 5 s" */
void job_delta_text(int64_t us, char *out, size_t size);

/* Follows until final; prints. Gives the exit code: CLI_OK only for SUCCEEDED. */
int job_follow(const struct invocation *in, struct str job_id);

#endif
