/* weir run signal: flags to a SignalRequest. */
#include "base/must.h"
#include "base/random.h"
#include "base/uuid.h"
#include "cli/json_argument.h"
#include "cli/run_internal.h"
#include "cli/suggest.h"
#include "lifecycle/signals.h"

#include "base/banned.h"

/* "retry-step" and RETRY_STEP are the same. False: told, with the nearest. */
static bool read_type(const char *typed, enum signal_type *ret_type)
{
    const char *known[SIGNAL_TYPE_COUNT];
    char name[SUGGEST_WORD_MAX] = "", spoken[SIGNAL_TYPE_COUNT][SUGGEST_WORD_MAX];
    for (size_t i = 0; typed[i] && i + 1 < sizeof name; i++)
        name[i] =
            typed[i] == '-' ? '_' : (char)(typed[i] >= 'a' && typed[i] <= 'z' ? typed[i] - 32 : typed[i]);
    if (strlen(typed) < sizeof name && signal_type_of(str_of(name), ret_type))
        return true;
    for (int t = 0; t < SIGNAL_TYPE_COUNT; t++) {
        const char *text = signal_type_text((enum signal_type)t);
        snprintf(spoken[t], sizeof spoken[t], "%s", text);
        for (char *c = spoken[t]; *c; c++)
            *c = *c == '_' ? '-' : (char)(*c + 32);
        known[t] = *typed >= 'A' && *typed <= 'Z' ? text : spoken[t];
    }
    const char *near = suggest_nearest(str_of(typed), known, SIGNAL_TYPE_COUNT);
    if (near)
        cli_fault("unknown signal \"%.40s\"; did you mean %s?", typed, near);
    else
        cli_fault(
            "unknown signal \"%.40s\"; there are pause, resume, cancel, retry-step, retry-run, skip-step, "
            "update-params, inject-override, update-target and emergency-stop",
            typed);
    return false;
}

/* The members that the payload of a type may have, of those with a flag. */
struct shape {
    bool step, reason, force, params, override, target;
};

static struct shape shape_of(enum signal_type t)
{
    switch (t) {
    case SIGNAL_PAUSE:
    case SIGNAL_CANCEL:
        return (struct shape){.reason = true};
    case SIGNAL_RETRY_STEP:
        return (struct shape){.step = true, .force = true};
    case SIGNAL_RETRY_RUN:
        return (struct shape){.reason = true, .force = true};
    case SIGNAL_SKIP_STEP:
        return (struct shape){.step = true, .reason = true};
    case SIGNAL_UPDATE_PARAMS:
        return (struct shape){.params = true};
    case SIGNAL_INJECT_OVERRIDE:
        return (struct shape){.step = true, .override = true};
    case SIGNAL_UPDATE_TARGET:
        return (struct shape){.step = true, .target = true};
    case SIGNAL_EMERGENCY_STOP:
        return (struct shape){.reason = true, .force = true};
    case SIGNAL_RESUME:
    case SIGNAL_ESCALATE_ALERT:
    case SIGNAL_TYPE_COUNT:
        break;
    }
    return (struct shape){0};
}

/* A flag that the type needs and has not, or has and cannot use. False: told. */
static bool check_flags(const struct flags *f, enum signal_type type)
{
    struct shape s = shape_of(type);
    const struct {
        enum flag_id id;
        bool taken, needed;
    } rules[] = {{FLAG_STEP, s.step, true},
                 {FLAG_PARAMS, s.params, true},
                 {FLAG_OVERRIDE, s.override, true},
                 {FLAG_TARGET, s.target, true},
                 {FLAG_FORCE, s.force, false}};
    bool whole = flags_has(f, FLAG_PAYLOAD);
    for (size_t i = 0; i < LENGTH_OF(rules); i++) {
        const char *name = flag_table[rules[i].id].name, *value = flag_table[rules[i].id].value;
        bool given = flags_has(f, rules[i].id);
        if (given && whole) {
            cli_fault("--payload is the whole payload; leave --%s out, or that", name);
            return false;
        }
        if (given && !rules[i].taken) {
            cli_fault("%s takes no --%s", signal_type_text(type), name);
            return false;
        }
        if (!given && !whole && rules[i].taken && rules[i].needed) {
            cli_fault("%s needs --%s %s", signal_type_text(type), name, value);
            return false;
        }
    }
    return true;
}

static enum err_code write_payload(struct json_writer *w, const struct flags *f, enum signal_type type,
                                   struct err *err)
{
    struct shape s = shape_of(type);
    if (flags_has(f, FLAG_PAYLOAD))
        return json_argument_write(f, FLAG_PAYLOAD, "payload", w, err);
    jw_key(w, "payload");
    jw_object(w);
    if (s.step)
        encode_text(w, "stepId", f->value[FLAG_STEP]);
    if (s.reason && (flags_has(f, FLAG_REASON) || type == SIGNAL_EMERGENCY_STOP))
        encode_text(w, "reason", flags_has(f, FLAG_REASON) ? f->value[FLAG_REASON] : "");
    if (flags_has(f, FLAG_FORCE))
        encode_bool(w, type == SIGNAL_EMERGENCY_STOP ? "forceKill" : "force", true);
    if (json_argument_write(f, FLAG_PARAMS, "params", w, err) != ERR_OK ||
        json_argument_write(f, FLAG_OVERRIDE, "override", w, err) != ERR_OK ||
        json_argument_write(f, FLAG_TARGET, "newTarget", w, err) != ERR_OK)
        return err->code;
    jw_object_end(w);
    return ERR_OK;
}

static enum err_code write_signal(const struct flags *f, enum signal_type type, struct strbuf *out,
                                  struct err *err)
{
    char id[UUID_TEXT_LEN + 1];
    struct json_writer w;
    struct uuid made = uuid_v4();
    uuid_text(&made, id);
    jw_start(&w, out);
    jw_object(&w);
    encode_text(&w, "signalId", flags_has(f, FLAG_SIGNAL_ID) ? f->value[FLAG_SIGNAL_ID] : id);
    encode_text(&w, "signalType", signal_type_text(type));
    if (write_payload(&w, f, type, err) != ERR_OK)
        return err->code;
    if (flags_has(f, FLAG_REASON)) {
        jw_key(&w, "audit");
        jw_object(&w);
        encode_text(&w, "reason", f->value[FLAG_REASON]);
        jw_object_end(&w);
    }
    jw_object_end(&w);
    return ERR_OK;
}

void run_show_decided(const struct invocation *in, const struct server_answer *answer)
{
    static const char *const names[] = {"decision", "policyDecisionId", "signalDecisionId"};
    const struct json *result = json_get(answer->json, "engineResult");
    struct str policy = json_text(answer->json, "policyDecisionId");
    struct str new_run = json_text(result, "newRunId");
    if (in->json) {
        server_print_json(answer);
        return;
    }
    if (in->quiet) {
        printf("%.*s\n", STR_ARG(policy));
        return;
    }
    struct text_table *t = text_table_new(NULL, 2);
    for (size_t i = 0; i < LENGTH_OF(names); i++)
        text_table_pair(t, names[i], json_get(answer->json, names[i]));
    text_table_add_tone(t, STR("engineResult"), TONE_DIM);
    text_table_add(t, json_text(result, "status"));
    if (new_run.ptr)
        text_table_pair(t, "newRunId", json_get(result, "newRunId"));
    text_table_show_and_free(t);
    if (answer->http.status == 202)
        cli_note(in, "\nIt is held until another Admin decides: weir run approve %.*s", STR_ARG(policy));
    else if (new_run.ptr)
        cli_note(in, "\nNext: weir run watch %.*s", STR_ARG(new_run));
}

/* A refusal has a record, too: where to read it. */
static void tell_record(const struct invocation *in, const struct server_answer *answer)
{
    struct str policy = json_text(answer->json, "policyDecisionId");
    if (policy.ptr)
        cli_note(in, "      its record: weir run decision %.*s", STR_ARG(policy));
}

int command_run_signal(const struct invocation *in)
{
    struct run_access x CLEANUP(run_access_free) = {0};
    struct server_answer answer CLEANUP(server_answer_free) = {0};
    struct strbuf body CLEANUP(strbuf_free) = {0};
    enum signal_type type;
    struct err err;
    if (!read_type(in->args[1], &type) || !check_flags(in->flags, type))
        return CLI_USAGE;
    if (write_signal(in->flags, type, &body, &err) != ERR_OK)
        return cli_err(&err);
    int code = run_access_open(in, &x);
    if (code != CLI_OK)
        return code;
    struct arena *a = arena_new(512);
    code = run_call(&x, "POST", run_path(a, in->args[0], "/signals"), strbuf_str(&body), &answer);
    arena_free(a);
    if (code == CLI_OK)
        run_show_decided(in, &answer);
    else
        tell_record(in, &answer);
    return code;
}
