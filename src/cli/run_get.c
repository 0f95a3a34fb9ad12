/* weir run get: a run and each of its steps, now or as of an earlier record. */
#include "base/must.h"
#include "cli/run_internal.h"
#include "lifecycle/run_lifecycle.h"

#include "base/banned.h"

int run_exit_code(struct str status)
{
    enum run_status s;
    return run_status_of(status, &s) && s == RUN_COMPLETED ? CLI_OK : CLI_FAILED;
}

static void add_step(struct text_table *t, const struct json *step)
{
    struct str status = run_text(step, "status"), started = run_text(step, "startedAt");
    struct arena *a = arena_new(512);
    char took[48];
    run_took_text(started, run_text(step, "endedAt"), took, sizeof took);
    struct str note = run_failure_text(a, json_get(step, "failure"));
    text_table_add_json(t, json_get(step, "stepId"));
    text_table_add_tone(t, status, tone_of_state(status));
    text_table_add_json(t, json_get(step, "logicalAttemptId"));
    text_table_add(t, started.ptr ? started : STR(""));
    text_table_add(t, str_of(took));
    text_table_add(t, note.ptr ? note : STR(""));
    arena_free(a);
}

void run_show(const struct json *run)
{
    static const char *const names[] = {"runId",     "status",        "planId",    "planVersion",
                                        "projectId", "environmentId", "createdAt", "startedAt",
                                        "endedAt",   "lastRunSeq",    "params"};
    static const char *const marks[] = {"originalRunId"};
    static const char *const headings[] = {"!STEP", "!STATUS", ">TRY", "STARTED", ">TOOK", "NOTE"};
    const struct json *metadata = json_get(run, "metadata"), *mark = json_get(metadata, "inconsistent");
    const struct json *steps = json_get(run, "steps");
    run_show_pairs(run, names, LENGTH_OF(names));
    run_show_pairs(metadata, marks, LENGTH_OF(marks));
    if (mark && mark->type == JSON_TRUE)
        puts("inconsistent: an event was no valid transition; see `weir run alerts RUN_ID`");
    mark = json_get(run, "ending");
    if (mark && mark->type == JSON_TRUE)
        puts("It is being stopped; steps that run have time to end.");
    mark = json_get(run, "external");
    if (mark && mark->type == JSON_TRUE)
        puts("An engine elsewhere executes it.");
    if (!steps || !steps->count)
        return;
    putchar('\n');
    struct text_table *t = text_table_new(headings, LENGTH_OF(headings));
    for (const struct json *step = steps->child; step; step = step->next)
        add_step(t, step);
    text_table_show(t, stdout);
    text_table_free(t);
}

int command_run_get(const struct invocation *in)
{
    struct run_access x CLEANUP(run_access_free) = {0};
    struct server_answer run CLEANUP(server_answer_free) = {0};
    char at[48] = "";
    struct err err;
    int64_t seq;
    if (flags_int(in->flags, FLAG_AT, 0, INT64_MAX, &seq, &err) != ERR_OK)
        return cli_err(&err);
    if (flags_has(in->flags, FLAG_AT))
        snprintf(at, sizeof at, "?at=%lld", (long long)seq);
    int code = run_access_open(in, &x);
    if (code == CLI_OK)
        code = run_read(&x, at, &run);
    if (code != CLI_OK)
        return code;
    if (in->json)
        server_print_json(&run);
    else
        run_show(run.json);
    return CLI_OK;
}
