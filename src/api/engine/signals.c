/* POST .../signals: form, schema and rate are checked here; everything else is decided with the run in hand
 * (engine/signal_commands.h). Approval, and what engines outside report. */
#include "api/engine/engine_contract.h"
#include "api/handlers.h"
#include "api/engine/encode.h"
#include "api/engine/policy_point.h"
#include "api/engine/signal_limits.h"
#include "base/digest.h"
#include "base/must.h"
#include "base/random.h"
#include "engine/signal_commands.h"

#include "base/banned.h"

/* --- who --------------------------------------------------------------------------------------------- */

/* The Unix socket is the System itself, of whatever tenant the run is (AS-06). */
static const struct str system_roles[] = {{"System", 6}};

static enum err_code read_actor(struct call *c, struct policy_actor *ret, struct err *err)
{
    if (c->claims) {
        *ret = (struct policy_actor){.user_id = c->claims->subject,
                                     .tenant = c->claims->tenant_id,
                                     .roles = c->claims->roles,
                                     .role_count = c->claims->role_count,
                                     .scoped = !c->claims->every_project,
                                     .projects = c->claims->projects,
                                     .project_count = c->claims->project_count};
        return ERR_OK;
    }
    struct run_id_row id = {.id = route_param(&c->match, "run_id")};
    struct run_row run = {.num = 0};
    bool found = false;
    struct reader *r = api_read_begin(c->api, err);
    if (!r || r->ops->reader_row(r, &table_run_id_row, &id, c->x->arena, &found, err) != ERR_OK)
        return err->code;
    run.num = id.run;
    if (found && r->ops->reader_row(r, &table_run_row, &run, c->x->arena, &found, err) != ERR_OK)
        return err->code;
    *ret = (struct policy_actor){.user_id = STR("system"),
                                 .tenant = found ? run.tenant_name : STR_ABSENT,
                                 .roles = system_roles,
                                 .role_count = LENGTH_OF(system_roles)};
    return ERR_OK;
}

/* As records name the actor: by its id, or by a digest that cannot be turned back. */
static struct str shown(struct call *c, struct str user_id)
{
    const struct settings *s = c->api->config.settings;
    uint8_t digest[DIGEST_BYTES];
    struct strbuf b = {0};
    if (!settings_is_on(s->engine_pseudonymize))
        return user_id;
    digest_sha256_pair(str_of(s->operator_token), user_id, digest);
    strbuf_add_text(&b, "actor-");
    for (size_t i = 0; i < 16; i++)
        strbuf_addf(&b, "%02x", digest[i]);
    struct str text = arena_str(c->x->arena, strbuf_str(&b));
    strbuf_free(&b);
    return text;
}

/* --- what -------------------------------------------------------------------------------------------- */

static enum err_code invalid(struct err *err, const char *what)
{
    return err_set(err, ERR_SIGNAL_INVALID_PAYLOAD, "%s", what);
}

static bool is_v4(const struct uuid *id)
{
    return id->bytes[6] >> 4 == 4 && id->bytes[8] >> 6 == 2;
}

static void fingerprint(const struct signal_command *command, uint8_t out[DIGEST_BYTES])
{
    struct strbuf text = {0};
    strbuf_addf(&text, "%s\n", signal_type_text(command->type));
    json_canonical(command->payload, NULL, &text);
    digest_sha256(text.ptr, text.len, out);
    strbuf_free(&text);
}

static struct str reason_in(const struct json *object)
{
    const struct json *reason = object ? json_get(object, "reason") : NULL;
    return reason && reason->type == JSON_STRING ? policy_reason(reason->text) : STR_ABSENT;
}

/* The reason stands in audit, or in a payload that has one; a blank one is none (AS-01). */
static struct str audit_reason(const struct call *c, const struct json *payload)
{
    struct str said = reason_in(json_get(c->body, "audit"));
    return said.ptr ? said : reason_in(payload);
}

static enum err_code read_signal(struct call *c, struct signal_command *command, struct err *err)
{
    const struct json *id = json_get(c->body, "signalId"), *type = json_get(c->body, "signalType");
    char fault[SIGNAL_FAULT_MAX];
    command->payload = json_get(c->body, "payload");
    if (!id || id->type != JSON_STRING || !uuid_parse(id->text, &command->signal_id) ||
        !is_v4(&command->signal_id))
        return invalid(err, "signalId has to be a UUID of version 4");
    if (!type || type->type != JSON_STRING || !signal_type_of(type->text, &command->type))
        return invalid(err, "signalType is none of the catalog");
    if (!command->payload || command->payload->type != JSON_OBJECT)
        return invalid(err, "payload has to be an object");
    if (!signal_schema_fits(engine_api(c->api)->signal_schemas, command->type, command->payload, fault))
        return err_set(err, ERR_SIGNAL_INVALID_PAYLOAD, "payload: %s", fault);
    command->audit_reason = audit_reason(c, command->payload);
    fingerprint(command, command->fingerprint);
    return ERR_OK;
}

/* --- answers ----------------------------------------------------------------------------------------- */

static void encode_answer(struct json_writer *w, const struct signal_answer *a)
{
    jw_object(w);
    encode_uuid_bytes(w, "signalDecisionId", uuid_str(&a->decision_id));
    encode_text(w, "decision", signal_decision_text(a->decision));
    encode_uuid_bytes(w, "policyDecisionId", uuid_str(&a->policy_id));
    jw_key(w, "engineResult");
    if (a->processed) {
        jw_object(w);
        encode_text(w, "status", a->succeeded ? "success" : "failure");
        if (!a->succeeded && a->error_code[0])
            encode_text(w, "errorCode", a->error_code);
        if (a->new_run[0])
            encode_text(w, "newRunId", a->new_run);
        jw_object_end(w);
    } else {
        jw_null(w);
    }
    jw_object_end(w);
}

static void answer(struct call *c, const struct signal_answer *a)
{
    struct json_writer w;
    if (a->refusal.code != ERR_OK) {
        call_problem_of_policy(c, &a->refusal, &a->policy_id);
        return;
    }
    if (a->replayed)
        http_reply_header(c->x, "Idempotency-Replayed", STR("true"));
    call_json(c, a->decision == DECISION_REVISION_REQUIRED ? 202 : 200, &w);
    encode_answer(&w, a);
    call_send(c);
}

static struct signal_sender sender_of(const struct signal_command *command)
{
    struct signal_sender s = {.tenant = command->actor.tenant,
                              .actor = command->actor.user_id,
                              .run = command->run_id,
                              .type = command->type};
    (void)policy_effective_role(&command->actor, command->type, &s.expected);
    return s;
}

static void rate_limited(struct call *c, const struct err *err)
{
    metrics_signal_rate_limited(c->api->metrics);
    call_problem(c, err);
}

static void signal_decided(struct call *c)
{
    const struct signal_command *command = (const struct signal_command *)c->command;
    const struct signal_answer *a = &command->answer;
    const struct signal_sender sender = sender_of(command);
    bool too_many = a->refusal.code == ERR_REQUEST_RATE_LIMITED;
    signal_limits_settle(engine_api(c->api)->signal_limits, &sender, &command->room,
                         too_many || a->decision == DECISION_REJECTED);
    if (too_many)
        rate_limited(c, &a->refusal);
    else
        answer(c, a);
}

static struct str new_run_id(struct call *c)
{
    struct uuid id = uuid_v4();
    char text[UUID_TEXT_LEN + 1];
    uuid_text(&id, text);
    return arena_str(c->x->arena, (struct str){text, UUID_TEXT_LEN});
}

static void decide(struct call *c, struct signal_command *command)
{
    call_post(c, &command->base, &signal_command_type, 0, signal_decided);
}

void handle_send_signal(struct call *c)
{
    struct signal_command *command = ARENA_NEW(c->x->arena, struct signal_command);
    struct err err = {.code = ERR_OK};
    command->run_id = route_param(&c->match, "run_id");
    if (read_signal(c, command, &err) != ERR_OK || read_actor(c, &command->actor, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    const struct signal_sender sender = sender_of(command);
    if (signal_limits_take(engine_api(c->api)->signal_limits, &sender, c->x->received_us / 1000,
                           &command->room, &err) != ERR_OK) {
        rate_limited(c, &err);
        return;
    }
    command->actor_shown = shown(c, command->actor.user_id);
    if (settings_is_on(c->api->config.settings->engine_source_ip))
        command->source_ip = http_peer(c->x);
    command->decision_id = uuid_v4();
    command->policy_id = uuid_v4();
    command->new_run_id = new_run_id(c);
    policy_point_ask(c, command, decide);
}

/* --- approval ---------------------------------------------------------------------------------------- */

static void settled(struct call *c)
{
    answer(c, &((const struct settle_command *)c->command)->answer);
}

static void settle(struct call *c, bool approve)
{
    struct settle_command *command = ARENA_NEW(c->x->arena, struct settle_command);
    const struct json *reason = json_get(c->body, "reason");
    struct err err;
    if (!call_uuid_param(c, "policy_decision_id", &command->policy_id)) {
        call_fail(c, ERR_SIGNAL_NOT_FOUND, "no decision of your tenant has this policyDecisionId");
        return;
    }
    if (read_actor(c, &command->actor, &err) != ERR_OK) {
        call_problem(c, &err);
        return;
    }
    command->actor_shown = shown(c, command->actor.user_id);
    command->approve = approve;
    command->reason = reason ? policy_reason(reason->text) : STR_ABSENT;
    command->new_run_id = new_run_id(c);
    call_post(c, &command->base, &settle_command_type, 0, settled);
}

void handle_approve_signal(struct call *c)
{
    settle(c, true);
}

void handle_reject_signal(struct call *c)
{
    settle(c, false);
}

/* --- engines outside ---------------------------------------------------------------------------------- */

static void noted(struct call *c)
{
    const struct processed_command *command = (const struct processed_command *)c->command;
    if (command->refusal.code != ERR_OK)
        call_problem_of_policy(c, &command->refusal, &command->policy_id);
    else
        call_say(c, "processed");
}

void handle_signal_processed(struct call *c)
{
    struct processed_command *command = ARENA_NEW(c->x->arena, struct processed_command);
    const struct json *code = json_get(c->body, "errorCode"), *new_run = json_get(c->body, "newRunId");
    command->run_id = route_param(&c->match, "run_id");
    command->tenant = c->claims->tenant_id;
    command->succeeded = str_is(json_get(c->body, "status")->text, "success");
    command->error_code = code ? code->text : STR_ABSENT;
    command->new_run = new_run ? new_run->text : STR_ABSENT;
    if (!call_uuid_param(c, "signal_id", &command->signal_id)) {
        call_fail(c, ERR_SIGNAL_NOT_FOUND, "the run has no decision about this signalId");
        return;
    }
    if (call_project_of_run(c))
        call_post(c, &command->base, &processed_command_type, 0, noted);
}
