/* weir job submit: flags to a JSON body. Values are judged by the server; only what cannot even be
 * written as JSON is refused here. */
#include "base/clock.h"
#include "base/must.h"
#include "base/time_text.h"
#include "cli/job_internal.h"
#include "cli/json_argument.h"

#include "base/banned.h"

/* "+90s" counts from now; anything else goes to the server as it is. */
static enum err_code add_time(struct json_writer *w, const char *text, struct err *err)
{
    char at[TIME_TEXT_MAX];
    int64_t after_ms;
    struct str value = str_of(text);
    if (text[0] == '+') {
        if (!duration_parse(str_of(text + 1), &after_ms))
            return err_set(err, ERR_CONFIG_INVALID,
                           "--at %.40s: give a time such as 2030-01-01T06:00:00Z, or +90s, +2h30m, +1d",
                           text);
        value = time_text_ms(clock_wall_ms(&clock_system) + after_ms, at);
    }
    encode_str(w, "execution_at", value);
    return ERR_OK;
}

static enum err_code add_int(struct json_writer *w, const char *name, const struct flags *f, enum flag_id id,
                             struct err *err)
{
    int64_t number;
    if (!flags_has(f, id))
        return ERR_OK;
    if (flags_int(f, id, INT64_MIN, INT64_MAX, &number, err) != ERR_OK)
        return err_set(err, ERR_CONFIG_INVALID, "--%s must be an integer, not \"%.40s\"", flag_table[id].name,
                       f->value[id]);
    encode_int(w, name, number);
    return ERR_OK;
}

static enum err_code write_job(const struct flags *f, struct strbuf *out, struct err *err)
{
    struct json_writer w;
    const char *type = f->value[FLAG_TYPE];
    if (!type)
        type = flags_has(f, FLAG_AT) ? "DEFERRED" : "EXECUTE";
    jw_start(&w, out);
    jw_object(&w);
    encode_text_if(&w, "type", type);
    encode_text_if(&w, "kind", f->value[FLAG_KIND]);
    encode_text_if(&w, "work_kind", f->value[FLAG_WORK_KIND]);
    encode_text_if(&w, "retry", f->value[FLAG_RETRY]);
    encode_text_if(&w, "queue", f->value[FLAG_QUEUE]);
    encode_text_if(&w, "callback", f->value[FLAG_CALLBACK]);
    encode_text_if(&w, "idempotency_key", f->value[FLAG_IDEMPOTENCY_KEY]);
    if (add_int(&w, "priority", f, FLAG_PRIORITY, err) != ERR_OK ||
        add_int(&w, "max_runtime_ms", f, FLAG_MAX_RUNTIME_MS, err) != ERR_OK ||
        add_int(&w, "max_retries", f, FLAG_MAX_RETRIES, err) != ERR_OK ||
        add_int(&w, "queue_ttl_seconds", f, FLAG_QUEUE_TTL, err) != ERR_OK)
        return err->code;
    if (flags_has(f, FLAG_AT) && add_time(&w, f->value[FLAG_AT], err) != ERR_OK)
        return err->code;
    if (json_argument_write(f, FLAG_PAYLOAD, "payload", &w, err) != ERR_OK)
        return err->code;
    jw_object_end(&w);
    return ERR_OK;
}

static void show_submitted(const struct invocation *in, const struct server_answer *job)
{
    static const char *const names[] = {"job_id", "state", "created_at"};
    const struct json *id = json_get(job->json, "job_id");
    if (in->json)
        server_print_json(job);
    else if (in->quiet)
        printf("%.*s\n", STR_ARG(id ? id->text : STR_ABSENT));
    else
        job_show_pairs(job->json, names, LENGTH_OF(names));
    fflush(stdout);
}

int command_job_submit(const struct invocation *in)
{
    struct server_answer job CLEANUP(server_answer_free) = {0};
    struct strbuf body CLEANUP(strbuf_free) = {0};
    struct err err;
    int64_t ignored;
    if (flags_has(in->flags, FLAG_TIMEOUT) &&
        (!flags_has(in->flags, FLAG_WAIT) ||
         !duration_parse(str_of(in->flags->value[FLAG_TIMEOUT]), &ignored))) {
        cli_fault("--timeout needs --wait, and a time such as 30s");
        return CLI_USAGE;
    }
    if (write_job(in->flags, &body, &err) != ERR_OK)
        return cli_err(&err);
    struct server_call call = {
        .method = "POST", .path = STR("/v1/jobs"), .body = strbuf_str(&body), .bearer = server_key(in)};
    int code = server_call(in, &call, &job);
    if (code != CLI_OK)
        return code;
    show_submitted(in, &job);
    job_hint_at_catalog(in);
    const struct json *id = json_get(job.json, "job_id");
    if (flags_has(in->flags, FLAG_WAIT) && id)
        return job_follow(in, id->text);
    if (!in->json && id)
        cli_note(in, "\nNext: weir job watch %.*s", STR_ARG(id->text));
    return CLI_OK;
}
