/* weir run events: the records of a run, those that are there or as they come. */
#include <inttypes.h>

#include "base/must.h"
#include "base/time_text.h"
#include "cli/job_internal.h"
#include "cli/run_internal.h"
#include "lifecycle/run_lifecycle.h"

#include "base/banned.h"

enum { PAGE_MAX = 1000 };

struct text_table *run_event_table(bool headings)
{
    static const char *const names[] = {">SEQ", "!TIME", ">SINCE LAST", "EVENT", "STEP", ">TRY", "NOTE"};
    /* Rows may come one by one, so the columns are wide enough from the start. */
    static const size_t widths[RUN_EVENT_COLUMNS] = {3, 24, 11, 13, 8, 3, 0};
    _Static_assert(LENGTH_OF(names) == RUN_EVENT_COLUMNS, "one name a column");
    return text_table_new_wide(names, widths, RUN_EVENT_COLUMNS, headings);
}

static enum tone tone_of_event(struct str name)
{
    switch (run_event_of(name)) {
    case RUN_EVENT_RunCompleted:
    case RUN_EVENT_StepCompleted:
        return TONE_GOOD;
    case RUN_EVENT_RunFailed:
    case RUN_EVENT_RunCancelled:
    case RUN_EVENT_StepFailed:
        return TONE_BAD;
    case RUN_EVENT_RunStarted:
    case RUN_EVENT_RunResumed:
    case RUN_EVENT_StepStarted:
        return TONE_BUSY;
    case RUN_EVENT_RunPaused:
        return TONE_WARN;
    case RUN_EVENT_RunQueued:
    case RUN_EVENT_StepSkipped:
    case RUN_EVENT_UNKNOWN:
        break;
    }
    return TONE_PLAIN;
}

void run_event_row(struct text_table *t, const struct json *event, int64_t *previous_us)
{
    char delta[48] = "";
    int64_t at_us;
    struct str time = json_text(event, "persistedAt"), name = json_text(event, "eventType");
    struct str step = json_text(event, "stepId");
    struct arena *a = arena_new(512);
    struct str note = run_failure_text(a, json_get(event, "payload"));
    if (time_parse_us(time, &at_us)) {
        if (*previous_us)
            job_delta_text(at_us - *previous_us, delta, sizeof delta);
        *previous_us = at_us;
    }
    text_table_add_json(t, json_get(event, "runSeq"));
    text_table_add(t, time);
    text_table_add(t, str_of(delta));
    text_table_add_tone(t, name, tone_of_event(name));
    text_table_add(t, step.ptr ? step : STR(""));
    if (step.ptr)
        text_table_add_json(t, json_get(event, "logicalAttemptId"));
    else
        text_table_add(t, STR(""));
    text_table_add(t, note.ptr ? note : STR(""));
    arena_free(a);
}

struct str run_event_end(const struct json *event)
{
    switch (run_event_of(json_text(event, "eventType"))) {
    case RUN_EVENT_RunCompleted:
        return str_of(run_status_text(RUN_COMPLETED));
    case RUN_EVENT_RunFailed:
        return str_of(run_status_text(RUN_FAILED));
    case RUN_EVENT_RunCancelled:
        return str_of(run_status_text(RUN_CANCELLED));
    case RUN_EVENT_RunQueued:
    case RUN_EVENT_RunStarted:
    case RUN_EVENT_StepStarted:
    case RUN_EVENT_StepCompleted:
    case RUN_EVENT_StepFailed:
    case RUN_EVENT_StepSkipped:
    case RUN_EVENT_RunPaused:
    case RUN_EVENT_RunResumed:
    case RUN_EVENT_UNKNOWN:
        break;
    }
    return STR_ABSENT;
}

/* One page; gives the record it ended with in *after, and whether there are more. */
static int print_page(struct run_access *x, struct text_table *t, int64_t limit, int64_t *after,
                      int64_t *previous_us, int64_t *ret_count)
{
    struct server_answer page CLEANUP(server_answer_free) = {0};
    char query[80];
    snprintf(query, sizeof query, "/events?after=%" PRId64 "&limit=%" PRId64, *after, limit);
    int code = run_read(x, query, &page);
    const struct json *items = code == CLI_OK ? json_get(page.json, "items") : NULL;
    *ret_count = 0;
    for (const struct json *e = items ? items->child : NULL; e; e = e->next, ++*ret_count) {
        if (x->in->json)
            printf("%.*s\n", STR_ARG(e->source));
        else
            run_event_row(t, e, previous_us);
        if (!json_to_int(json_get(e, "runSeq"), after))
            return CLI_FAILED;
    }
    if (!x->in->json && *ret_count)
        text_table_show(t, stdout);
    return code;
}

static int print_events(struct run_access *x, int64_t after, int64_t left)
{
    struct text_table *t = run_event_table(!x->in->quiet);
    int64_t previous_us = 0, got = 0, asked;
    bool any = false;
    int code;
    do {
        asked = left < PAGE_MAX ? left : PAGE_MAX;
        code = print_page(x, t, asked, &after, &previous_us, &got);
        any = any || got;
        left -= got;
    } while (code == CLI_OK && got == asked && left > 0);
    text_table_free(t);
    if (code == CLI_OK && !any)
        cli_note(x->in, "No record behind that one.");
    return code;
}

int command_run_events(const struct invocation *in)
{
    struct run_access x CLEANUP(run_access_free) = {0};
    int64_t after = 0, limit = INT64_MAX;
    struct err err;
    if (flags_int(in->flags, FLAG_AFTER, 0, INT64_MAX, &after, &err) != ERR_OK ||
        flags_int(in->flags, FLAG_LIMIT, 1, PAGE_MAX, &limit, &err) != ERR_OK)
        return cli_err(&err);
    if (flags_has(in->flags, FLAG_FOLLOW) && flags_has(in->flags, FLAG_LIMIT)) {
        cli_fault("--follow or --limit, not both");
        return CLI_USAGE;
    }
    int code = run_access_open(in, &x);
    if (code != CLI_OK)
        return code;
    return flags_has(in->flags, FLAG_FOLLOW) ? run_follow_events(&x, in->args[0], after)
                                             : print_events(&x, after, limit);
}
