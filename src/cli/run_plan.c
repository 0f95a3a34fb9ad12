/* weir run plan put, plan get. */
#include "base/must.h"
#include "cli/run_internal.h"

#include "base/banned.h"

/* The contract counts steps, people name them: "/steps/1/queue ..." is step 2, and that has an id. */
static void name_step(const struct invocation *in, struct str body, const struct json *problem)
{
    static const char before[] = "/steps/";
    struct arena *a = arena_new(65536);
    struct str rest = run_text(problem, "detail");
    const struct json *plan, *step = NULL;
    struct err ignored;
    int64_t number;
    if (str_starts(rest, before)) {
        rest = (struct str){rest.ptr + strlen(before), rest.len - strlen(before)};
        struct str digits = {rest.ptr, 0};
        while (digits.len < rest.len && rest.ptr[digits.len] >= '0' && rest.ptr[digits.len] <= '9')
            digits.len++;
        if (str_to_int(digits, 0, INT32_MAX, &number) && json_parse(a, body, &plan, &ignored) == ERR_OK) {
            const struct json *steps = json_get(plan, "steps");
            step = steps ? steps->child : NULL;
            for (int64_t i = 0; step && i < number; i++)
                step = step->next;
        }
    }
    struct str id = text_harmless(a, run_text(step, "stepId"));
    if (step && id.len)
        cli_note(in, "      step %lld is %.*s", (long long)number + 1, STR_ARG(id));
    arena_free(a);
}

int command_run_plan_put(const struct invocation *in)
{
    static const char *const names[] = {"planId", "planVersion", "steps", "createdAt"};
    struct run_access x CLEANUP(run_access_free) = {0};
    struct server_answer plan CLEANUP(server_answer_free) = {0};
    struct strbuf body CLEANUP(strbuf_free) = {0};
    struct err err;
    if (run_plan_file(in->args[0], &body, &err) != ERR_OK)
        return cli_err(&err);
    int code = run_access_open(in, &x);
    if (code == CLI_OK)
        code = run_call(&x, "POST", STR("/engine/v1/plans"), strbuf_str(&body), &plan);
    if (code != CLI_OK) {
        name_step(in, strbuf_str(&body), plan.json);
        return code;
    }
    if (in->json)
        server_print_json(&plan);
    else if (!in->quiet)
        run_show_pairs(plan.json, names, LENGTH_OF(names));
    if (in->json)
        return CLI_OK;
    if (plan.http.status == 200)
        cli_note(in, "This version was stored before, with the same content.");
    else
        cli_note(in, "\nNext: weir run start %.*s %.*s", STR_ARG(run_text(plan.json, "planId")),
                 STR_ARG(run_text(plan.json, "planVersion")));
    return CLI_OK;
}

static void add_step(struct text_table *t, const struct json *step)
{
    struct strbuf needs CLEANUP(strbuf_free) = {0};
    const struct json *list = json_get(step, "dependsOn");
    for (const struct json *n = list ? list->child : NULL; n; n = n->next)
        strbuf_addf(&needs, "%s%.*s", needs.len ? ", " : "", STR_ARG(n->text));
    text_table_add_json(t, json_get(step, "stepId"));
    text_table_add(t, needs.len ? strbuf_str(&needs) : STR(""));
    text_table_add_json(t, json_get(step, "queue"));
    text_table_add_json(t, json_get(step, "maxAttempts"));
    const struct json *config = json_get(step, "config");
    text_table_add(t, config ? config->source : STR(""));
}

static void show_plan(const struct json *plan)
{
    static const char *const names[] = {"planId", "planVersion", "onFailure", "createdAt"};
    static const char *const headings[] = {"!STEP", "AFTER", "QUEUE", ">TRIES", "CONFIG"};
    const struct json *steps = json_get(plan, "steps");
    run_show_pairs(plan, names, LENGTH_OF(names));
    putchar('\n');
    struct text_table *t = text_table_new(headings, LENGTH_OF(headings));
    for (const struct json *step = steps ? steps->child : NULL; step; step = step->next)
        add_step(t, step);
    text_table_show(t, stdout);
    text_table_free(t);
}

int command_run_plan_get(const struct invocation *in)
{
    struct run_access x CLEANUP(run_access_free) = {0};
    struct server_answer plan CLEANUP(server_answer_free) = {0};
    struct strbuf path CLEANUP(strbuf_free) = {0};
    strbuf_add_text(&path, "/engine/v1/plans/");
    http_escape(&path, str_of(in->args[0]));
    strbuf_add_text(&path, "/versions/");
    http_escape(&path, str_of(in->arg_count > 1 ? in->args[1] : "1"));
    int code = run_access_open(in, &x);
    if (code == CLI_OK)
        code = run_call(&x, "GET", strbuf_str(&path), STR_ABSENT, &plan);
    if (code != CLI_OK)
        return code;
    if (in->json)
        server_print_json(&plan);
    else
        show_plan(plan.json);
    return CLI_OK;
}
