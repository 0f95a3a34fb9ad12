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

static void add_started(struct text_table *t, const struct json *step)
{
    struct str started = json_text(step, "startedAt");
    text_table_add(t, started.ptr ? started : STR(""));
}

static void add_note(struct text_table *t, const struct json *step)
{
    struct arena *a = arena_new(512);
    struct str note = run_failure_text(a, json_get(step, "failure"));
    text_table_add(t, note.ptr ? note : STR(""));
    arena_free(a);
}

static const struct list_column step_columns[] = {
    {"!STEP", MEMBER(step, stepId)},          {"!STATUS", MEMBER(step, status)},
    {">TRY", MEMBER(step, logicalAttemptId)}, {"STARTED", .cell = add_started},
    {">TOOK", .cell = run_add_took},          {"NOTE", .cell = add_note},
};

void run_show(const struct json *run)
{
    static const char *const names[] = {"runId",     "status",        "planId",    "planVersion",
                                        "projectId", "environmentId", "createdAt", "startedAt",
                                        "endedAt",   "lastRunSeq",    "params"};
    static const char *const marks[] = {"originalRunId"};
    const struct json *metadata = json_get(run, "metadata");
    const struct json *steps = json_get(run, "steps");
    run_show_pairs(run, names, LENGTH_OF(names));
    run_show_pairs(metadata, marks, LENGTH_OF(marks));
    if (json_is_true(metadata, "inconsistent"))
        puts("inconsistent: an event was no valid transition; see `weir run alerts RUN_ID`");
    if (json_is_true(run, "ending"))
        puts("It is being stopped; steps that run have time to end.");
    if (json_is_true(run, "external"))
        puts("An engine elsewhere executes it.");
    if (!steps || !steps->count)
        return;
    putchar('\n');
    columns_show(step_columns, LENGTH_OF(step_columns), steps);
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
    return code == CLI_OK ? server_show(in, &run, run_show) : code;
}
