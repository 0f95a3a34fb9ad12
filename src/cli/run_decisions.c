/* weir run signals, decision, approve, reject: the records of decisions about signals. */
#include "base/must.h"
#include "cli/run_internal.h"

#include "base/banned.h"

enum { TO_THE_SECOND = sizeof "2026-11-16T21:59:20" - 1 };

static void add_time(struct text_table *t, const struct json *record)
{
    struct str time = json_text(json_get(record, "audit"), MEMBER(decision_audit, timestamp));
    if (time.len > TO_THE_SECOND) /* the line is long as it is; the record has it exactly */
        time.len = TO_THE_SECOND;
    text_table_add(t, time);
}

static void add_actor(struct text_table *t, const struct json *record)
{
    const struct json *audit = json_get(record, "audit");
    text_table_addf(t, "%.*s (%.*s)", STR_ARG(json_text(audit, "actorId")),
                    STR_ARG(json_text(audit, "actorRole")));
}

static void add_engine(struct text_table *t, const struct json *record)
{
    const struct json *result = json_get(record, "engineResult");
    struct str outcome = json_text(result, "status"), fault = json_text(result, "errorCode");
    if (fault.ptr)
        text_table_addf(t, "%.*s: %.*s", STR_ARG(outcome), STR_ARG(fault));
    else
        text_table_add(t, outcome);
}

static void add_reason(struct text_table *t, const struct json *record)
{
    struct str why = json_text(record, "reason"), said = json_text(json_get(record, "audit"), "reason");
    text_table_add(t, why.ptr ? why : said.ptr ? said : STR(""));
}

static const struct list_column columns[] = {
    {"!TIME", .cell = add_time},    {"!SIGNAL", MEMBER(decision, signalType)},
    {"BY", .cell = add_actor},      {"!DECISION", MEMBER(decision, decision)},
    {"ENGINE", .cell = add_engine}, {"!POLICY DECISION ID", MEMBER(decision, policyDecisionId)},
    {"REASON", .cell = add_reason},
};

static void show_record(const struct json *record)
{
    static const char *const names[] = {
        "signalType", "decision",         "reason",           "runId",
        "signalId",   "policyDecisionId", "signalDecisionId", "signalPayload"};
    static const char *const audit[] = {"actorId",   "actorRole", "tenantId",
                                        "timestamp", "reason",    "sourceIp"};
    static const char *const later[] = {"approvalRequired", "approvedBy", "approvalTimestamp",
                                        "engineProcessedAt", "engineResult"};
    const struct {
        const struct json *object;
        const char *prefix;
        const char *const *names;
        size_t count;
    } parts[] = {{record, "", names, LENGTH_OF(names)},
                 {json_get(record, "audit"), "audit.", audit, LENGTH_OF(audit)},
                 {record, "", later, LENGTH_OF(later)}};
    struct text_table *t = text_table_new(NULL, 2);
    for (size_t p = 0; p < LENGTH_OF(parts); p++)
        for (size_t i = 0; i < parts[p].count; i++) {
            const struct json *value = json_get(parts[p].object, parts[p].names[i]);
            char name[64];
            snprintf(name, sizeof name, "%s%s", parts[p].prefix, parts[p].names[i]);
            if (value && value->type != JSON_NULL)
                text_table_pair(t, name, value);
        }
    text_table_show_and_free(t);
}

static int list_signals(struct run_access *x)
{
    bool pending = flags_has(x->in->flags, FLAG_PENDING);
    struct arena *a = arena_new(512);
    struct pages list = {.path = run_path(a, x->in->args[0], pending ? "/signals?pending=true" : "/signals"),
                         .id = MEMBER(decision, policyDecisionId),
                         .nothing = pending ? "Nothing is pending." : "No signal was sent to this run.",
                         .columns = columns,
                         .count = LENGTH_OF(columns)};
    int code = run_show_list(x, &list);
    arena_free(a);
    return code;
}

static int show_one(struct run_access *x, struct str path)
{
    struct server_answer record CLEANUP(server_answer_free) = {0};
    int code = run_call(x, "GET", path, STR_ABSENT, &record);
    return code == CLI_OK ? server_show(x->in, &record, show_record) : code;
}

int command_run_signals(const struct invocation *in)
{
    struct run_access x CLEANUP(run_access_free) = {0};
    struct strbuf path CLEANUP(strbuf_free) = {0};
    int code = run_access_open(in, &x);
    if (code != CLI_OK)
        return code;
    if (in->arg_count == 1)
        return list_signals(&x);
    strbuf_add_text(&path, "/engine/v1/runs/");
    http_escape(&path, str_of(in->args[0]));
    strbuf_add_text(&path, "/signals/");
    http_escape(&path, str_of(in->args[1]));
    return show_one(&x, strbuf_str(&path));
}

static void decision_path(const struct invocation *in, const char *verb, struct strbuf *out)
{
    strbuf_add_text(out, "/engine/v1/signal-decisions/");
    http_escape(out, str_of(in->args[0]));
    strbuf_add_text(out, verb);
}

int command_run_decision(const struct invocation *in)
{
    struct run_access x CLEANUP(run_access_free) = {0};
    struct strbuf path CLEANUP(strbuf_free) = {0};
    int code = run_access_open(in, &x);
    decision_path(in, "", &path);
    return code == CLI_OK ? show_one(&x, strbuf_str(&path)) : code;
}

static int settle(const struct invocation *in, const char *verb)
{
    struct run_access x CLEANUP(run_access_free) = {0};
    struct server_answer answer CLEANUP(server_answer_free) = {0};
    struct strbuf path CLEANUP(strbuf_free) = {0}, body CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    int code = run_access_open(in, &x);
    if (code != CLI_OK)
        return code;
    jw_start(&w, &body);
    jw_object(&w);
    encode_text_if(&w, "reason", in->flags->value[FLAG_REASON]);
    jw_object_end(&w);
    decision_path(in, verb, &path);
    code = run_call(&x, "POST", strbuf_str(&path), strbuf_str(&body), &answer);
    if (code == CLI_OK)
        run_show_decided(in, &answer);
    return code;
}

int command_run_approve(const struct invocation *in)
{
    return settle(in, ":approve");
}

int command_run_reject(const struct invocation *in)
{
    return settle(in, ":reject");
}
