/* weir job list: which jobs, and how one is shown. */
#include "base/must.h"
#include "cli/job_internal.h"
#include "cli/pages.h"

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

/* "/v1/jobs?state=QUEUED"; the server decides what no flag says. */
static void write_path(const struct flags *f, struct strbuf *out)
{
    size_t n = 0;
    strbuf_add_text(out, "/v1/jobs");
    for (size_t i = 0; i < job_filter_count; i++) {
        if (!flags_has(f, job_filters[i].flag))
            continue;
        strbuf_addf(out, "%c%s=", n++ ? '&' : '?', job_filters[i].name);
        http_escape(out, str_of(f->value[job_filters[i].flag]));
    }
}

static struct str text_of(const struct json *object, const char *name)
{
    const struct json *j = json_get(object, name);
    return j && j->type == JSON_STRING ? j->text : STR_ABSENT;
}

static void add_row(struct text_table *t, const struct json *job)
{
    struct str kind = text_of(job, "kind");
    struct str state = text_of(job, "state");
    text_table_add_json(t, json_get(job, "job_id"));
    text_table_add_tone(t, state, tone_of_state(state));
    text_table_add(t, kind.ptr ? kind : text_of(job, "work_kind"));
    text_table_add_json(t, json_get(job, "queue"));
    text_table_add_json(t, json_get(job, "attempt"));
    text_table_add_json(t, json_get(job, "created_at"));
}

static int get_page(void *invocation, struct str path, struct server_answer *ret_page)
{
    const struct invocation *in = invocation;
    struct server_call call = {.method = "GET", .path = path, .bearer = server_key(in)};
    return server_call(in, &call, ret_page);
}

int command_job_list(const struct invocation *in)
{
    /* The columns that tell jobs apart at a glance and fit a terminal; -o json has everything. */
    static const char *const headings[] = {"!JOB ID", "!STATE", "KIND", "QUEUE", ">TRY", "CREATED"};
    struct strbuf path CLEANUP(strbuf_free) = {0};
    write_path(in->flags, &path);
    job_hint_at_catalog(in);
    return pages_show(in, &(struct pages){.path = strbuf_str(&path),
                                          .id = "job_id",
                                          .cursor = "next_cursor",
                                          .nothing = "No job matches.",
                                          .headings = headings,
                                          .columns = LENGTH_OF(headings),
                                          .add_row = add_row,
                                          .get = get_page,
                                          .self = (void *)(uintptr_t)in});
}
