/* weir run list, run alerts. */
#include "base/must.h"
#include "cli/run_internal.h"

#include "base/banned.h"

static int get_page(void *access, struct str path, struct server_answer *ret_page)
{
    return run_call(access, "GET", path, STR_ABSENT, ret_page);
}

int run_show_list(struct run_access *x, struct pages *list)
{
    list->cursor = "nextCursor";
    list->get = get_page;
    list->self = x;
    return pages_show(x->in, list);
}

static void add_run(struct text_table *t, const struct json *run)
{
    struct str status = run_text(run, "status");
    struct str started = run_text(run, "startedAt");
    char took[48];
    run_took_text(started, run_text(run, "endedAt"), took, sizeof took);
    text_table_add_json(t, json_get(run, "runId"));
    text_table_add_tone(t, status, tone_of_state(status));
    text_table_addf(t, "%.*s %.*s", STR_ARG(run_text(run, "planId")), STR_ARG(run_text(run, "planVersion")));
    text_table_add_json(t, json_get(run, "projectId"));
    text_table_add_json(t, json_get(run, "createdAt"));
    text_table_add(t, str_of(took));
}

int command_run_list(const struct invocation *in)
{
    static const char *const headings[] = {"!RUN ID", "!STATUS", "PLAN", "PROJECT", "CREATED", ">TOOK"};
    static const struct {
        enum flag_id flag;
        const char *name;
    } filters[] = {{FLAG_STATE, "status"}, {FLAG_PLAN, "planId"}, {FLAG_PROJECT, "projectId"}};
    struct run_access x CLEANUP(run_access_free) = {0};
    struct strbuf path CLEANUP(strbuf_free) = {0};
    int code = run_access_open(in, &x);
    if (code != CLI_OK)
        return code;
    strbuf_add_text(&path, "/engine/v1/runs");
    for (size_t i = 0, n = 0; i < LENGTH_OF(filters); i++) {
        const char *value = in->flags->value[filters[i].flag];
        if (!value)
            continue;
        strbuf_addf(&path, "%c%s=", n++ ? '&' : '?', filters[i].name);
        http_escape(&path, str_of(value));
    }
    struct pages list = {.path = strbuf_str(&path),
                         .id = "runId",
                         .nothing = "No run matches.",
                         .headings = headings,
                         .columns = LENGTH_OF(headings),
                         .add_row = add_run};
    return run_show_list(&x, &list);
}

static void add_alert(struct text_table *t, const struct json *alert)
{
    struct str severity = run_text(alert, "severity");
    bool loud = str_is(severity, "P1") || str_is(severity, "CRITICAL");
    struct strbuf what CLEANUP(strbuf_free) = {0};
    struct str prior = run_text(alert, "priorState"), note = run_text(alert, "note");
    struct str actor = run_text(alert, "actorId");
    strbuf_add_str(&what, run_text(alert, "eventType"));
    if (prior.ptr)
        strbuf_addf(&what, ": %.*s to %.*s", STR_ARG(prior), STR_ARG(run_text(alert, "attemptedState")));
    if (actor.ptr)
        strbuf_addf(&what, " by %.*s", STR_ARG(actor));
    if (note.ptr)
        strbuf_addf(&what, ": %.*s", STR_ARG(note));
    text_table_add_json(t, json_get(alert, "createdAt"));
    text_table_add_tone(t, severity, loud ? TONE_BAD : TONE_PLAIN);
    text_table_add_json(t, json_get(alert, "code"));
    text_table_add_json(t, json_get(alert, "runId"));
    text_table_add(t, strbuf_str(&what));
}

int command_run_alerts(const struct invocation *in)
{
    static const char *const headings[] = {"CREATED", "!SEVERITY", "CODE", "!RUN ID", "WHAT"};
    struct run_access x CLEANUP(run_access_free) = {0};
    struct strbuf path CLEANUP(strbuf_free) = {0};
    int code = run_access_open(in, &x);
    if (code != CLI_OK)
        return code;
    strbuf_add_text(&path, "/engine/v1/alerts");
    if (in->arg_count) {
        strbuf_add_text(&path, "?runId=");
        http_escape(&path, str_of(in->args[0]));
    }
    struct pages list = {.path = strbuf_str(&path),
                         .id = "alertId",
                         .nothing = "No alerts.",
                         .headings = headings,
                         .columns = LENGTH_OF(headings),
                         .add_row = add_alert};
    return run_show_list(&x, &list);
}
