/* weir run plan put, plan get, plan list. */
#include "base/must.h"
#include "cli/run_internal.h"

#include "base/banned.h"

/* The contract counts steps, people name them: "/steps/1/queue ..." is step 2, and that has an id. */
static void name_step(const struct invocation *in, struct str body, const struct json *problem)
{
    static const char before[] = "/steps/";
    struct arena *a = arena_new(65536);
    struct str rest = json_text(problem, "detail");
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
    struct str id = text_harmless(a, json_text(step, "stepId"));
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
        cli_note(in, "\nNext: weir run start %.*s", STR_ARG(json_text(plan.json, "planId")));
    return CLI_OK;
}

/* Nothing for none. */
static void add_ms(struct text_table *t, const struct json *ms)
{
    text_table_add(t, ms && !str_is(ms->text, "0") ? ms->text : STR(""));
}

static void add_dependencies(struct text_table *t, const struct json *step)
{
    struct strbuf names CLEANUP(strbuf_free) = {0};
    const struct json *list = json_get(step, "dependsOn");
    for (const struct json *n = list ? list->child : NULL; n; n = n->next)
        strbuf_addf(&names, "%s%.*s", names.len ? ", " : "", STR_ARG(n->text));
    text_table_add(t, names.len ? strbuf_str(&names) : STR(""));
}

static void add_timeout(struct text_table *t, const struct json *step)
{
    add_ms(t, json_get(step, "timeoutMs"));
}

static void add_delay(struct text_table *t, const struct json *step)
{
    add_ms(t, json_get(step, "delayMs"));
}

static void add_config(struct text_table *t, const struct json *step)
{
    const struct json *config = json_get(step, "config");
    text_table_add(t, config ? config->source : STR(""));
}

static const struct list_column step_columns[] = {
    {"!STEP", MEMBER(plan_step, stepId)}, {"AFTER", .cell = add_dependencies},
    {"QUEUE", MEMBER(plan_step, queue)},  {">TRIES", MEMBER(plan_step, maxAttempts)},
    {">TIMEOUT MS", .cell = add_timeout}, {">DELAY MS", .cell = add_delay},
    {"CONFIG", .cell = add_config},
};

static void show_plan(const struct json *plan)
{
    static const char *const names[] = {"planId", "planVersion", "onFailure", "createdAt"};
    run_show_pairs(plan, names, LENGTH_OF(names));
    putchar('\n');
    columns_show(step_columns, LENGTH_OF(step_columns), json_get(plan, "steps"));
}

/* "/engine/v1/plans?planId=ID" */
static void write_list_path(const char *plan, struct strbuf *out)
{
    strbuf_add_text(out, "/engine/v1/plans");
    query_add(out, "planId", plan);
}

/* A page may be empty and still not the last. */
int run_newest_version(struct run_access *x, const char *plan, struct strbuf *ret_version)
{
    struct strbuf cursor CLEANUP(strbuf_free) = {0};
    do {
        struct server_answer page CLEANUP(server_answer_free) = {0};
        struct strbuf path CLEANUP(strbuf_free) = {0};
        write_list_path(plan, &path);
        query_add(&path, "limit", "1");
        query_add(&path, "cursor", cursor.len ? cursor.ptr : NULL);
        int code = run_call(x, "GET", strbuf_str(&path), STR_ABSENT, &page);
        if (code != CLI_OK)
            return code;
        const struct json *items = json_get(page.json, "items");
        strbuf_add_str(ret_version, json_text(items ? items->child : NULL, "planVersion"));
        strbuf_clear(&cursor);
        strbuf_add_str(&cursor, json_text(page.json, "nextCursor"));
    } while (!ret_version->len && cursor.len);
    if (ret_version->len)
        return CLI_OK;
    cli_fault("Plan not found: your tenant has no plan %s\n      put it first (weir run plan put FILE); "
              "`weir run plan "
              "list` shows those there are",
              plan);
    return CLI_NOT_FOUND;
}

static int read_plan(const struct invocation *in, struct run_access *x, struct server_answer *ret_plan)
{
    struct strbuf path CLEANUP(strbuf_free) = {0}, newest CLEANUP(strbuf_free) = {0};
    int code = in->arg_count > 1 ? CLI_OK : run_newest_version(x, in->args[0], &newest);
    if (code != CLI_OK)
        return code;
    strbuf_add_text(&path, "/engine/v1/plans/");
    http_escape(&path, str_of(in->args[0]));
    strbuf_add_text(&path, "/versions/");
    http_escape(&path, in->arg_count > 1 ? str_of(in->args[1]) : strbuf_str(&newest));
    return run_call(x, "GET", strbuf_str(&path), STR_ABSENT, ret_plan);
}

int command_run_plan_get(const struct invocation *in)
{
    struct run_access x CLEANUP(run_access_free) = {0};
    struct server_answer plan CLEANUP(server_answer_free) = {0};
    int code = run_access_open(in, &x);
    if (code == CLI_OK)
        code = read_plan(in, &x, &plan);
    return code == CLI_OK ? server_show(in, &plan, show_plan) : code;
}

static const struct list_column plan_columns[] = {
    {"!PLAN", MEMBER(plan_version, planId)},
    {"!VERSION", MEMBER(plan_version, planVersion)},
    {">STEPS", MEMBER(plan_version, steps)},
    {"CREATED", MEMBER(plan_version, createdAt)},
};

int command_run_plan_list(const struct invocation *in)
{
    struct run_access x CLEANUP(run_access_free) = {0};
    struct strbuf path CLEANUP(strbuf_free) = {0};
    int code = run_access_open(in, &x);
    if (code != CLI_OK)
        return code;
    write_list_path(in->arg_count ? in->args[0] : NULL, &path);
    return run_show_list(&x, &(struct pages){.path = strbuf_str(&path),
                                             .id = MEMBER(plan_version, planId),
                                             .nothing = "No plan matches.",
                                             .columns = plan_columns,
                                             .count = LENGTH_OF(plan_columns)});
}
