/* weir job list: which jobs, and how one is shown. */
#include "base/must.h"
#include "cli/job_internal.h"
#include "cli/pages.h"
#include "fields/job_fields.h"

#include "base/banned.h"

const struct job_filter job_filters[] = {
    {FLAG_STATE, "state"},
    {FLAG_TYPE, "type"},
    {FLAG_KIND, "kind"},
    {FLAG_WORK_KIND, "work_kind"},
    {FLAG_QUEUE, "queue"},
    {FLAG_OUTCOME, "outcome"},
    {FLAG_CREATED_AFTER, "created_after"},
    {FLAG_CREATED_BEFORE, "created_before"},
};
const size_t job_filter_count = LENGTH_OF(job_filters);

static void add_kind(struct text_table *t, const struct json *job)
{
    struct str kind = json_text(job, "kind");
    text_table_add(t, kind.ptr ? kind : json_text(job, "work_kind"));
}

/* The columns that tell jobs apart at a glance and fit a terminal; -o json has everything. */
static const struct list_column columns[] = {
    {"!JOB ID", MEMBER(job, job_id)}, {"!STATE", MEMBER(job, state)}, {"KIND", .cell = add_kind},
    {"QUEUE", MEMBER(job, queue)},    {">TRY", MEMBER(job, attempt)}, {"CREATED", MEMBER(job, created_at)},
};

/* The server decides what no flag says. */
int command_job_list(const struct invocation *in)
{
    struct strbuf path CLEANUP(strbuf_free) = {0};
    strbuf_add_text(&path, "/v1/jobs");
    for (size_t i = 0; i < job_filter_count; i++)
        query_add(&path, job_filters[i].name, in->flags->value[job_filters[i].flag]);
    job_hint_at_catalog(in);
    return pages_show(in, &(struct pages){.path = strbuf_str(&path),
                                          .id = MEMBER(job, job_id),
                                          .nothing = "No job matches.",
                                          .columns = columns,
                                          .count = LENGTH_OF(columns),
                                          .bearer = server_key(in)});
}
