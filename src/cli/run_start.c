/* weir run start. */
#include "base/must.h"
#include "cli/json_argument.h"
#include "cli/run_internal.h"

#include "base/banned.h"

/* Everything but the version; the object stays open. */
static enum err_code begin_start(const struct invocation *in, struct json_writer *w, struct err *err)
{
    const char *const *value = in->flags->value;
    jw_object(w);
    encode_text_if(w, "planId", in->args[0]);
    encode_text_if(w, "projectId", value[FLAG_PROJECT] ? value[FLAG_PROJECT] : "default");
    encode_text_if(w, "environmentId", value[FLAG_ENVIRONMENT] ? value[FLAG_ENVIRONMENT] : "dev");
    encode_text_if(w, "runId", value[FLAG_RUN_ID]);
    return json_argument_write(in->flags, FLAG_PARAMS, "params", w, err);
}

/* The one that was given, or the newest. */
static int end_start(struct run_access *x, struct json_writer *w)
{
    const struct invocation *in = x->in;
    struct strbuf newest CLEANUP(strbuf_free) = {0};
    int code = in->arg_count > 1 ? CLI_OK : run_newest_version(x, in->args[0], &newest);
    if (code != CLI_OK)
        return code;
    struct str version = in->arg_count > 1 ? str_of(in->args[1]) : strbuf_str(&newest);
    if (in->arg_count == 1 && !in->json)
        cli_note(in, "The newest version of %s is %.*s.", in->args[0], STR_ARG(version));
    encode_str(w, "planVersion", version);
    jw_object_end(w);
    return CLI_OK;
}

/* False: told. */
static bool check_waiting(const struct flags *f)
{
    bool wait = flags_has(f, FLAG_WAIT), watch = flags_has(f, FLAG_WATCH);
    int64_t ignored;
    if (wait && watch)
        cli_fault("--wait or --watch, not both");
    else if (flags_has(f, FLAG_TIMEOUT) &&
             ((!wait && !watch) || !duration_parse(str_of(f->value[FLAG_TIMEOUT]), &ignored)))
        cli_fault("--timeout needs --wait or --watch, and a time such as 30s");
    else
        return true;
    return false;
}

static int show_started(struct run_access *x, const struct server_answer *run)
{
    static const char *const names[] = {"runId", "status"};
    const struct invocation *in = x->in;
    struct str id = json_text(run->json, "runId");
    bool wait = flags_has(in->flags, FLAG_WAIT), watch = flags_has(in->flags, FLAG_WATCH);
    if (in->json)
        server_print_json(run);
    else if (in->quiet)
        printf("%.*s\n", STR_ARG(id));
    else if (!wait)
        run_show_pairs(run->json, names, LENGTH_OF(names));
    fflush(stdout);
    struct strbuf text CLEANUP(strbuf_free) = {0};
    strbuf_add_str(&text, id);
    if (wait && !in->json)
        cli_note(in, "Run %s has started; waiting for its end.", text.ptr);
    if (wait)
        return run_watch(x, text.ptr, FOLLOW_SILENT);
    if (watch)
        return run_watch(x, text.ptr, terminal_is(stdout) && !in->json ? FOLLOW_PICTURE : FOLLOW_LINES);
    if (!in->json)
        cli_note(in, "\nNext: weir run watch %s", text.ptr);
    return CLI_OK;
}

int command_run_start(const struct invocation *in)
{
    struct run_access x CLEANUP(run_access_free) = {0};
    struct server_answer run CLEANUP(server_answer_free) = {0};
    struct strbuf body CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    struct err err;
    if (!check_waiting(in->flags))
        return CLI_USAGE;
    jw_start(&w, &body);
    if (begin_start(in, &w, &err) != ERR_OK)
        return cli_err(&err);
    int code = run_access_open(in, &x);
    if (code == CLI_OK)
        code = end_start(&x, &w);
    if (code == CLI_OK)
        code = run_call(&x, "POST", STR("/engine/v1/runs"), strbuf_str(&body), &run);
    return code == CLI_OK ? show_started(&x, &run) : code;
}
