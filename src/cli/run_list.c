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

/* ---- run list ---- */

static void add_plan(struct text_table *t, const struct json *run)
{
    text_table_addf(t, "%.*s %.*s", STR_ARG(json_text(run, "planId")),
                    STR_ARG(json_text(run, "planVersion")));
}

void run_add_took(struct text_table *t, const struct json *item)
{
    char took[48];
    run_took_text(json_text(item, "startedAt"), json_text(item, "endedAt"), took, sizeof took);
    text_table_add(t, str_of(took));
}

static const struct list_column run_columns[] = {
    {"!RUN ID", MEMBER(run, runId)},     {"!STATUS", MEMBER(run, status)},    {"PLAN", .cell = add_plan},
    {"PROJECT", MEMBER(run, projectId)}, {"CREATED", MEMBER(run, createdAt)}, {">TOOK", .cell = run_add_took},
};

int command_run_list(const struct invocation *in)
{
    struct run_access x CLEANUP(run_access_free) = {0};
    struct strbuf path CLEANUP(strbuf_free) = {0};
    int code = run_access_open(in, &x);
    if (code != CLI_OK)
        return code;
    strbuf_add_text(&path, "/engine/v1/runs");
    query_add(&path, "status", in->flags->value[FLAG_STATE]);
    query_add(&path, "planId", in->flags->value[FLAG_PLAN]);
    query_add(&path, "projectId", in->flags->value[FLAG_PROJECT]);
    return run_show_list(&x, &(struct pages){.path = strbuf_str(&path),
                                             .id = MEMBER(run, runId),
                                             .nothing = "No run matches.",
                                             .columns = run_columns,
                                             .count = LENGTH_OF(run_columns)});
}

/* ---- run alerts ---- */

static void add_severity(struct text_table *t, const struct json *alert)
{
    struct str severity = json_text(alert, "severity");
    bool loud = str_is(severity, "P1") || str_is(severity, "CRITICAL");
    text_table_add_tone(t, severity, loud ? TONE_BAD : TONE_PLAIN);
}

static void add_what(struct text_table *t, const struct json *alert)
{
    struct strbuf what CLEANUP(strbuf_free) = {0};
    struct str prior = json_text(alert, "priorState"), note = json_text(alert, "note");
    struct str actor = json_text(alert, "actorId");
    strbuf_add_str(&what, json_text(alert, "eventType"));
    if (prior.ptr)
        strbuf_addf(&what, ": %.*s to %.*s", STR_ARG(prior), STR_ARG(json_text(alert, "attemptedState")));
    if (actor.ptr)
        strbuf_addf(&what, " by %.*s", STR_ARG(actor));
    if (note.ptr)
        strbuf_addf(&what, ": %.*s", STR_ARG(note));
    text_table_add(t, strbuf_str(&what));
}

static const struct list_column alert_columns[] = {
    {"CREATED", MEMBER(alert, createdAt)}, {"!SEVERITY", .cell = add_severity}, {"CODE", MEMBER(alert, code)},
    {"!RUN ID", MEMBER(alert, runId)},     {"WHAT", .cell = add_what},
};

int command_run_alerts(const struct invocation *in)
{
    struct run_access x CLEANUP(run_access_free) = {0};
    struct strbuf path CLEANUP(strbuf_free) = {0};
    int code = run_access_open(in, &x);
    if (code != CLI_OK)
        return code;
    strbuf_add_text(&path, "/engine/v1/alerts");
    query_add(&path, "runId", in->arg_count ? in->args[0] : NULL);
    return run_show_list(&x, &(struct pages){.path = strbuf_str(&path),
                                             .id = MEMBER(alert, alertId),
                                             .nothing = "No alerts.",
                                             .columns = alert_columns,
                                             .count = LENGTH_OF(alert_columns)});
}
