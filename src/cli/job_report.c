/* weir job report, and how an event is shown. */
#include <inttypes.h>

#include "base/must.h"
#include "base/time_text.h"
#include "cli/job_internal.h"

#include "base/banned.h"

const char *const job_event_headings[] = {">SEQ", "TIME", ">SINCE LAST", "EVENT", "STATE", "NOTE"};
_Static_assert(LENGTH_OF(job_event_headings) == JOB_EVENT_COLUMNS, "one heading a column");

void job_delta_text(int64_t us, char *out, size_t size)
{
    if (us < 1000)
        snprintf(out, size, "+%" PRId64 " us", us < 0 ? 0 : us);
    else if (us < 1000000)
        snprintf(out, size, "+%" PRId64 ".%" PRId64 " ms", us / 1000, us % 1000 / 100);
    else if (us < 60000000)
        snprintf(out, size, "+%" PRId64 ".%03" PRId64 " s", us / 1000000, us % 1000000 / 1000);
    else if (us < INT64_C(3600000000))
        snprintf(out, size, "+%" PRId64 " min %" PRId64 " s", us / 60000000, us % 60000000 / 1000000);
    else
        snprintf(out, size, "+%" PRId64 " h %" PRId64 " min", us / INT64_C(3600000000),
                 us % INT64_C(3600000000) / 60000000);
}

/* "attempt 2, reason": only what says something. */
static void add_note(struct text_table *t, const struct json *payload)
{
    struct strbuf note CLEANUP(strbuf_free) = {0};
    struct str reason = json_text(payload, "reason");
    int64_t attempt;
    if (json_to_int(json_get(payload, "attempt"), &attempt) && attempt > 1)
        strbuf_addf(&note, "attempt %" PRId64, attempt);
    if (reason.len)
        strbuf_addf(&note, "%s%.*s", note.len ? ", " : "", STR_ARG(reason));
    text_table_add(t, note.len ? strbuf_str(&note) : STR(""));
}

/* When it was, and how long after the row before. */
static void add_times(struct text_table *t, struct str time, int64_t *previous_us)
{
    char delta[48] = "";
    int64_t at_us;
    if (time_parse_us(time, &at_us)) {
        if (*previous_us)
            job_delta_text(at_us - *previous_us, delta, sizeof delta);
        *previous_us = at_us;
    }
    text_table_add(t, time);
    text_table_add(t, str_of(delta));
}

void job_event_row(struct text_table *t, const struct json *event, int64_t *previous_us)
{
    struct str next = json_text(event, "next_state");
    text_table_add_json(t, json_get(event, "seq"));
    add_times(t, json_text(event, "timestamp"), previous_us);
    text_table_add_json(t, json_get(event, "event_name"));
    text_table_add_tone(t, next, tone_of_state(next));
    add_note(t, json_get(event, "payload"));
}

/* Not an event: it has no number. */
void job_progress_row(struct text_table *t, const struct json *progress, int64_t *previous_us)
{
    struct strbuf note CLEANUP(strbuf_free) = {0};
    job_put_progress(progress, &note);
    text_table_add(t, STR(""));
    add_times(t, json_text(progress, "at"), previous_us);
    text_table_add(t, STR("progress"));
    text_table_add_tone(t, STR("RUNNING"), tone_of_state(STR("RUNNING")));
    text_table_add(t, strbuf_str(&note));
}

static void show_report(const struct json *report)
{
    static const char *const names[] = {"job_id",      "outcome", "started_at", "finished_at",
                                        "duration_ms", "attempt", "result",     "error"};
    const struct json *events = json_get(report, "events");
    int64_t previous_us = 0;
    job_show_pairs(report, names, LENGTH_OF(names));
    putchar('\n');
    struct text_table *t = text_table_new(job_event_headings, JOB_EVENT_COLUMNS);
    for (const struct json *e = events ? events->child : NULL; e; e = e->next)
        job_event_row(t, e, &previous_us);
    text_table_show_and_free(t);
}

int command_job_report(const struct invocation *in)
{
    struct server_answer report CLEANUP(server_answer_free) = {0};
    int code = job_call(in, "GET", "/report", &report);
    return code == CLI_OK ? server_show(in, &report, show_report) : code;
}
