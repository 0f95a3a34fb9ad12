/* weir job get, cancel, retry, explain: one call, one answer. */
#include "base/must.h"
#include "cli/job_internal.h"
#include "lifecycle/work_kinds.h"

#include "base/banned.h"

struct str job_path(struct arena *a, struct str job_id, const char *rest)
{
    struct strbuf id CLEANUP(strbuf_free) = {0};
    http_escape(&id, job_id);
    return arena_printf(a, "/v1/jobs/%.*s%s", STR_ARG(strbuf_str(&id)), rest);
}

int job_call(const struct invocation *in, const char *method, const char *rest,
             struct server_answer *ret_answer)
{
    struct arena *a = arena_new(512);
    struct server_call call = {
        .method = method, .path = job_path(a, str_of(in->args[0]), rest), .bearer = server_key(in)};
    int code = server_call(in, &call, ret_answer);
    arena_free(a);
    return code;
}

/* "code: message (retryable)" */
static void put_error(const struct json *error, struct strbuf *out)
{
    const struct json *retryable = json_get(error, "retryable");
    strbuf_addf(out, "%.*s: %.*s%s", STR_ARG(json_text(error, "code")), STR_ARG(json_text(error, "message")),
                retryable && retryable->type == JSON_TRUE ? " (retryable)" : "");
}

void job_put_progress(const struct json *progress, struct strbuf *out)
{
    const struct json *percent = json_get(progress, "percent");
    struct str note = json_text(progress, "note");
    strbuf_addf(out, "%.*s %%%s%.*s", STR_ARG(percent ? percent->text : STR("?")), note.len ? ", " : "",
                STR_ARG(note));
}

static void add_pair(struct text_table *t, const char *name, const struct json *value)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    bool is_error = str_is(str_of(name), "error"), is_progress = str_is(str_of(name), "progress");
    bool is_of_end = is_error || is_progress || str_is(str_of(name), "result");
    if (!value || (is_of_end && value->type == JSON_NULL))
        return;
    if (is_error)
        put_error(value, &text);
    if (is_progress)
        job_put_progress(value, &text);
    struct json shown = {.type = JSON_STRING, .text = strbuf_str(&text)};
    text_table_pair(t, name, text.len ? &shown : value);
}

void job_show_pairs(const struct json *object, const char *const *names, size_t count)
{
    struct text_table *t = text_table_new(NULL, 2);
    for (size_t i = 0; i < count; i++)
        add_pair(t, names[i], json_get(object, names[i]));
    text_table_show_and_free(t);
}

void job_hint_at_catalog(const struct invocation *in)
{
    const char *kind = in->flags->value[FLAG_KIND];
    enum work_kind simulated;
    if (kind && !flags_has(in->flags, FLAG_WORK_KIND) && work_kind_parse(str_of(kind), &simulated))
        cli_note(in, "--kind is a name of your own; the simulated work is --work-kind %s", kind);
}

/* One call whose answer is shown as it is, or these members of it. */
static int call_and_show(const struct invocation *in, const char *method, const char *rest,
                         const char *const *names, size_t count, struct server_answer *ret_answer)
{
    int code = job_call(in, method, rest, ret_answer);
    if (code != CLI_OK)
        return code;
    if (in->json)
        server_print_json(ret_answer);
    else
        job_show_pairs(ret_answer->json, names, count);
    return CLI_OK;
}

int command_job_get(const struct invocation *in)
{
    static const char *const names[] = {
        "job_id",    "type",       "state",          "outcome",     "attempt",      "kind",
        "work_kind", "queue",      "priority",       "created_at",  "execution_at", "updated_at",
        "callback",  "definition", "max_runtime_ms", "max_retries", "retry",        "queue_ttl_seconds",
        "payload",   "progress",   "result",         "error",
    };
    struct server_answer job CLEANUP(server_answer_free) = {0};
    return call_and_show(in, "GET", "", names, LENGTH_OF(names), &job);
}

static bool state_is(const struct server_answer *answer, const char *state)
{
    const struct json *j = json_get(answer->json, "state");
    return j && str_is(j->text, state);
}

/* With a JOB_ID it is about that one, without about all that match the filters. False: told. */
static bool names_one(const struct invocation *in, bool *ret_one)
{
    *ret_one = in->arg_count == 1;
    if (!*ret_one || !job_has_filter(in->flags))
        return true;
    cli_fault("give a JOB_ID or filters, not both");
    return false;
}

int command_job_cancel(const struct invocation *in)
{
    static const char *const unfinished[] = {"CREATED", "QUEUED", "ASSIGNED", "RUNNING", NULL};
    static const struct job_bulk bulk = {"/v1/jobs:cancel", "Cancel", "canceled", "ended meanwhile",
                                         unfinished};
    bool one;
    if (!names_one(in, &one))
        return CLI_USAGE;
    if (!one)
        return job_bulk(in, &bulk);
    static const char *const names[] = {"job_id", "state", "updated_at"};
    struct server_answer job CLEANUP(server_answer_free) = {0};
    int code = call_and_show(in, "POST", "/cancel", names, LENGTH_OF(names), &job);
    if (code == CLI_OK && !state_is(&job, "CANCELED"))
        cli_note(in, "The job was final before; nothing has changed.");
    return code;
}

int command_job_retry(const struct invocation *in)
{
    static const char *const failed[] = {"FAILED", NULL};
    static const struct job_bulk bulk = {"/v1/jobs:retry", "Retry", "queued again",
                                         "have no retry left, or were retried meanwhile", failed};
    bool one;
    if (!names_one(in, &one))
        return CLI_USAGE;
    if (!one)
        return job_bulk(in, &bulk);
    static const char *const names[] = {"job_id", "state", "attempt", "updated_at"};
    struct server_answer job CLEANUP(server_answer_free) = {0};
    int code = call_and_show(in, "POST", "/retry", names, LENGTH_OF(names), &job);
    if (code == CLI_OK && !state_is(&job, "QUEUED"))
        cli_note(in, "Only a FAILED job is retried; nothing has changed.");
    return code;
}

int command_job_explain(const struct invocation *in)
{
    static const char *const names[] = {"job_id", "state", "waiting_on", "position", "since", "detail"};
    struct server_answer answer CLEANUP(server_answer_free) = {0};
    return call_and_show(in, "GET", "/explain", names, LENGTH_OF(names), &answer);
}
