/* weir queue list|show|pause|resume|purge|set. */
#include "base/must.h"
#include "cli/confirm.h"
#include "cli/pages.h"
#include "fields/job_fields.h"

#include "base/banned.h"

enum { PURGE_TIMEOUT_MS = 60000 };

/* ---- queue list ---- */

static void add_age(struct text_table *t, const struct json *queue)
{
    int64_t seconds = json_int(queue, MEMBER(queue, oldest_age_seconds), 0);
    char age[32];
    text_age(seconds, age, sizeof age);
    text_table_add(t, seconds ? str_of(age) : STR_ABSENT);
}

static void add_state(struct text_table *t, const struct json *queue)
{
    bool paused = json_is_true(queue, MEMBER(queue, paused));
    text_table_add_tone(t, paused ? STR("paused") : STR("active"), paused ? TONE_WARN : TONE_GOOD);
}

static const struct list_column columns[] = {
    {"!QUEUE", MEMBER(queue, queue)},
    {"!STATE", .cell = add_state},
    {">DEPTH", MEMBER(queue, depth)},
    {">OLDEST", .cell = add_age},
    {">RUNNING", MEMBER(queue, running)},
    {">SCHEDULED", MEMBER(queue, scheduled)},
    {">DONE/MIN", MEMBER(queue, completed_per_minute)},
    {">FAILED/MIN", MEMBER(queue, failed_per_minute)},
};

/* With an operator's token: the queues of all clients. */
int command_queue_list(const struct invocation *in)
{
    bool operates = flags_has(in->flags, FLAG_OPERATOR_TOKEN);
    return pages_show(in, &(struct pages){.path = operates ? STR("/ops/v1/queues") : STR("/v1/queues"),
                                          .id = MEMBER(queue, queue),
                                          .nothing = "No queue has jobs, and for none something is set.",
                                          .columns = columns,
                                          .count = LENGTH_OF(columns),
                                          .bearer = operates ? server_operator(in) : server_key(in),
                                          .advice = operates ? server_advice_operator : NULL});
}

/* ---- one queue ---- */

static int queue_call(const struct invocation *in, const char *method, const char *verb, struct str body,
                      struct server_answer *ret_answer)
{
    struct strbuf path CLEANUP(strbuf_free) = {0};
    strbuf_add_text(&path, "/v1/queues/");
    http_escape(&path, str_of(in->args[0]));
    strbuf_add_text(&path, verb);
    struct server_call call = {.method = method,
                               .path = strbuf_str(&path),
                               .body = body,
                               .bearer = server_key(in),
                               .timeout_ms = PURGE_TIMEOUT_MS};
    return server_call(in, &call, ret_answer);
}

static void show(const struct invocation *in, const struct server_answer *answer)
{
    static const char *const names[] = {"queue",
                                        "paused",
                                        "depth",
                                        "oldest_age_seconds",
                                        "running",
                                        "scheduled",
                                        "completed_per_minute",
                                        "failed_per_minute"};
    static const char *const defaults[] = {"retry", "max_retries", "queue_ttl_seconds", "retention_seconds"};
    if (in->json) {
        server_print_json(answer);
        return;
    }
    struct text_table *t = text_table_new(NULL, 2);
    text_table_pairs(t, answer->json, names, LENGTH_OF(names));
    text_table_pairs(t, json_get(answer->json, "defaults"), defaults, LENGTH_OF(defaults));
    text_table_show_and_free(t);
}

static int call_and_show(const struct invocation *in, const char *method, const char *verb, struct str body)
{
    struct server_answer answer CLEANUP(server_answer_free) = {0};
    int code = queue_call(in, method, verb, body, &answer);
    if (code == CLI_OK)
        show(in, &answer);
    return code;
}

int command_queue_show(const struct invocation *in)
{
    return call_and_show(in, "GET", "", STR_ABSENT);
}

int command_queue_pause(const struct invocation *in)
{
    int code = call_and_show(in, "POST", ":pause", STR_ABSENT);
    if (code == CLI_OK)
        cli_note(in, "No worker gets a job of it until `weir queue resume %s`; submits go on.", in->args[0]);
    return code;
}

int command_queue_resume(const struct invocation *in)
{
    return call_and_show(in, "POST", ":resume", STR_ABSENT);
}

/* ---- queue purge ---- */

static int ask_first(const struct invocation *in)
{
    struct server_answer queue CLEANUP(server_answer_free) = {0};
    char question[160];
    int code = flags_has(in->flags, FLAG_YES) ? CLI_OK : queue_call(in, "GET", "", STR_ABSENT, &queue);
    if (code != CLI_OK)
        return code;
    int64_t depth = json_int(queue.json, "depth", 0);
    if (!depth)
        return CLI_OK;
    snprintf(question, sizeof question,
             depth == 1 ? "%lld job waits in the queue %.64s. Cancel it?"
                        : "%lld jobs wait in the queue %.64s. Cancel them?",
             (long long)depth, in->args[0]);
    return cli_confirm(in, question);
}

/* A call cancels so many at most: again until there are none. */
int command_queue_purge(const struct invocation *in)
{
    int64_t canceled = 0;
    int code = ask_first(in);
    for (bool more = code == CLI_OK; more;) {
        struct server_answer done CLEANUP(server_answer_free) = {0};
        code = queue_call(in, "POST", ":purge", STR_ABSENT, &done);
        if (code != CLI_OK)
            return code;
        canceled += json_int(done.json, "canceled", 0);
        more = json_is_true(done.json, "more");
    }
    if (code == CLI_OK && in->json)
        printf("{\"canceled\":%lld}\n", (long long)canceled);
    else if (code == CLI_OK)
        printf("%s: %lld jobs canceled\n", in->args[0], (long long)canceled);
    return code;
}

/* ---- queue set ---- */

/* "none" takes a default away; an absent flag leaves what is there. */
static void write_member(struct json_writer *w, const struct flags *f, enum flag_id id, const char *name,
                         const struct json *now)
{
    const char *given = f->value[id];
    const struct json *former = json_get(now, name);
    int64_t number;
    if (given ? strcmp(given, "none") == 0 : !former || former->type == JSON_NULL)
        return;
    jw_key(w, name);
    if (!given)
        jw_raw(w, former->source);
    else if (str_to_int(str_of(given), 0, INT64_MAX, &number))
        jw_int(w, number);
    else
        jw_text(w, given); /* the server says what it should be */
}

int command_queue_set(const struct invocation *in)
{
    struct server_answer queue CLEANUP(server_answer_free) = {0};
    struct strbuf body CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    int code = queue_call(in, "GET", "", STR_ABSENT, &queue);
    if (code != CLI_OK)
        return code;
    const struct json *now = json_get(queue.json, "defaults");
    jw_start(&w, &body);
    jw_object(&w);
    write_member(&w, in->flags, FLAG_RETRY, "retry", now);
    write_member(&w, in->flags, FLAG_MAX_RETRIES, "max_retries", now);
    write_member(&w, in->flags, FLAG_QUEUE_TTL, "queue_ttl_seconds", now);
    write_member(&w, in->flags, FLAG_RETENTION, "retention_seconds", now);
    jw_object_end(&w);
    return call_and_show(in, "POST", "", strbuf_str(&body));
}
