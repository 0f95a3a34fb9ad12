/* weir job watch: follows a job's event stream until the job is final. */
#include "base/must.h"
#include "cli/job_internal.h"
#include "cli/stream_follow.h"
#include "lifecycle/job_lifecycle.h"

#include "base/banned.h"

struct watch {
    const struct invocation *in;
    struct text_table *table;
    int64_t previous_us;
    enum job_state state;
};

static bool is_final(void *self)
{
    const struct watch *w = self;
    return w->state != JOB_NO_STATE && job_state_is_final(w->state);
}

static void take_event(void *self, const struct json *event, struct str source)
{
    struct watch *w = self;
    const struct json *next = json_get(event, "next_state");
    if (next && !job_state_parse(next->text, &w->state))
        w->state = JOB_NO_STATE;
    if (w->in->json) {
        printf("%.*s\n", STR_ARG(source));
    } else {
        bool is_progress = json_get(event, "percent") != NULL;
        (is_progress ? job_progress_row : job_event_row)(w->table, event, &w->previous_us);
        text_table_show(w->table, stdout);
    }
    fflush(stdout);
}

static const char *bearer(void *self)
{
    const struct watch *w = self;
    return server_key(w->in);
}

/* Rows come one by one, so the columns have to be wide enough from the start. */
static struct text_table *new_event_table(const struct invocation *in)
{
    static const size_t widths[JOB_EVENT_COLUMNS] = {3, 27, 11, 21, 9, 0};
    return text_table_new_wide(job_event_headings, widths, JOB_EVENT_COLUMNS, !in->quiet);
}

int job_follow(const struct invocation *in, struct str job_id)
{
    struct arena *a = arena_new(512);
    struct watch w = {.in = in, .state = JOB_NO_STATE, .table = new_event_table(in)};
    struct stream_follower f = {
        .in = in,
        .subject = "job",
        .path = job_path(a, job_id, "/events"),
        .timeout = in->flags->value[FLAG_TIMEOUT],
        .advice = server_key(in) ? server_advice_key : server_advice_no_key,
        .bearer = bearer,
        .on_event = take_event,
        .has_ended = is_final,
        .self = &w,
    };
    int code = stream_follow(&f);
    text_table_free(w.table);
    arena_free(a);
    if (code == CLI_OK)
        return w.state == JOB_SUCCEEDED ? CLI_OK : CLI_FAILED;
    return code;
}

int command_job_watch(const struct invocation *in)
{
    return job_follow(in, str_of(in->args[0]));
}
