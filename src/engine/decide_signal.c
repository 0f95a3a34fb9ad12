/* Signals: authorization, record, effect, in that order and in one transaction. */
#include "base/json.h"
#include "base/must.h"
#include "engine/alert.h"
#include "engine/decision.h"

#include "base/banned.h"

static struct str bytes_of(const struct uuid *id)
{
    return (struct str){(const char *)id->bytes, sizeof id->bytes};
}

static void load_signal(struct unit *u, struct command *base)
{
    const struct signal_command *c = (const struct signal_command *)base;
    const struct run_row *run = run_prefetch(u, c->run_id);
    if (run)
        (void)decision_prefetch_of_signal(u, run->num, &c->signal_id);
}

/* --- rate ------------------------------------------------------------------------------------------ */

/* The decision is known, and its minute has no room for one more of its kind: the sender hears so. */
static bool is_one_too_many(struct signal_command *c, bool allowed)
{
    if (!(allowed ? c->room.none_if_allowed : c->room.none_if_refused))
        return false;
    c->answer = (struct signal_answer){.refusal = c->room.full};
    return true;
}

/* --- what was said before -------------------------------------------------------------------------- */

static void replay(struct signal_command *c, const struct decision_row *d)
{
    if (is_one_too_many(c, d->state != DECISION_REJECTED))
        return;
    decision_answer(d, &c->answer);
    c->answer.replayed = true;
    if (d->type != (int64_t)c->type || memcmp(d->fingerprint.ptr, c->fingerprint, sizeof c->fingerprint) != 0)
        err_set(&c->answer.refusal, ERR_SIGNAL_DUPLICATE,
                "this signalId was used before with another type or payload");
}

/* --- alerts ---------------------------------------------------------------------------------------- */

/* The run's tenant has the alert, as it has the record; where the actor came from stands here (AS-20). */
static void raise_security(struct unit *u, const struct signal_command *c, const struct run_row *run,
                           const struct decision_row *d)
{
    struct str who =
        arena_printf(u->arena, "%.*s of tenant %.*s", STR_ARG(d->actor), STR_ARG(c->actor.tenant));
    alert_raise(u, run,
                &(struct alert_row){.severity = SEVERITY_WARNING,
                                    .category = ALERT_SECURITY,
                                    .code = d->error_code,
                                    .event_id = d->uuid,
                                    .event_type = str_of(signal_type_text((enum signal_type)d->type)),
                                    .detail = who});
}

static void raise_destructive(struct unit *u, const struct run_row *run, const struct decision_row *d)
{
    alert_raise(u, run,
                &(struct alert_row){.severity = SEVERITY_P1,
                                    .category = ALERT_DESTRUCTIVE_SIGNAL,
                                    .code = STR("DESTRUCTIVE_SIGNAL"),
                                    .event_id = d->uuid,
                                    .event_type = str_of(signal_type_text((enum signal_type)d->type)),
                                    .detail = d->actor});
}

/* The policy decision point did not answer: whatever the fallback decided, a person has to look. */
static void raise_review(struct unit *u, const struct run_row *run, const struct decision_row *d)
{
    alert_raise(u, run,
                &(struct alert_row){.severity = SEVERITY_WARNING,
                                    .category = ALERT_SECURITY,
                                    .code = STR("POLICY_REVIEW"),
                                    .event_id = d->uuid,
                                    .event_type = str_of(signal_type_text((enum signal_type)d->type)),
                                    .detail = d->reason});
}

/* --- deciding -------------------------------------------------------------------------------------- */

static struct decision_row *record(struct unit *u, const struct signal_command *c, const struct run_row *run,
                                   const struct policy_verdict *v)
{
    enum signal_decision decision = !v->allowed            ? DECISION_REJECTED
                                    : v->requires_approval ? DECISION_REVISION_REQUIRED
                                                           : DECISION_ACCEPTED;
    struct str reason = str_of(v->reason);
    bool foreign = !str_equal(c->actor.tenant, run->tenant_name);
    struct decision_row row = {.uuid = bytes_of(&c->decision_id),
                               .run = run->num,
                               .tenant = run->tenant,
                               .type = c->type,
                               .signal = bytes_of(&c->signal_id),
                               .policy = bytes_of(&c->policy_id),
                               .actor = c->actor_shown,
                               .actor_tenant = foreign ? c->actor.tenant : STR_ABSENT,
                               .role = v->role,
                               .audit_reason = policy_reason(c->audit_reason),
                               .source_ip = c->source_ip,
                               .payload = c->payload->source,
                               .fingerprint = {(const char *)c->fingerprint, sizeof c->fingerprint},
                               .needs_approval = v->allowed && v->requires_approval,
                               .state = decision,
                               .reason = reason.len ? arena_str(u->arena, reason) : STR_ABSENT,
                               .error_code = v->allowed ? STR_ABSENT : str_of(err_wire(v->code))};
    return decision_add(u, &row);
}

static void judge(struct unit *u, struct signal_command *c, struct run_row *run)
{
    struct policy_request q = {.actor = c->actor,
                               .signal = c->type,
                               .payload = c->payload->source,
                               .tenant = run->tenant_name,
                               .project = run->project,
                               .run_id = run->id,
                               .audit_reason = c->audit_reason};
    struct policy_verdict v;
    policy_evaluate(u->settings, &q, &c->given, &v);
    if (is_one_too_many(c, v.allowed))
        return;
    struct decision_row *d = record(u, c, run, &v);
    if (!v.allowed)
        raise_security(u, c, run, d);
    else if (signal_is_destructive(c->type))
        raise_destructive(u, run, d);
    if (c->given.flagged)
        raise_review(u, run, d);
    if (d->state == DECISION_ACCEPTED) {
        struct applied_signal s = {c->type, c->payload, c->new_run_id};
        decision_execute(u, run, d, &s);
    }
    decision_answer(d, &c->answer);
}

static enum err_code decide_signal(struct unit *u, struct command *base, struct err *err)
{
    struct signal_command *c = (struct signal_command *)base;
    struct run_row *run = run_find(u, c->run_id);
    struct run_step_row *step;
    struct applied_signal s = {c->type, c->payload, c->new_run_id};
    if (!run || c->run_unseen)
        return err_set(err, ERR_RUN_HIDDEN, "there is no such run, or it is not yours to know");
    bool foreign = !str_equal(c->actor.tenant, run->tenant_name);
    const struct decision_row *former = decision_of_signal(u, run->num, &c->signal_id);
    /* A foreigner hears again what it was told itself, and nothing that others were told. */
    bool to_it = former && str_equal(former->actor, c->actor_shown) && former->error_code.ptr &&
                 str_is(former->error_code, err_wire(ERR_AUTHZ_TENANT_FORBIDDEN)) &&
                 (!former->actor_tenant.ptr || str_equal(former->actor_tenant, c->actor.tenant));
    if (former && foreign && !to_it)
        return err_set(err, ERR_AUTHZ_TENANT_FORBIDDEN, "the run is another tenant's");
    if (former) {
        replay(c, former);
        return ERR_OK;
    }
    if (!foreign && c->step_unseen)
        return err_set(err, ERR_SIGNAL_INVALID_PAYLOAD, "the run has no step of this stepId");
    if (!foreign && signal_step(u, run, &s, &step, err) != ERR_OK)
        return err->code; /* as any other payload that is wrong: no record (AS-09, AS-11) */
    judge(u, c, run);
    return ERR_OK;
}

const struct command_type signal_command_type = {
    "signal", load_signal, decide_signal, COMMAND_ANSWER(struct signal_command, answer), .critical = true};
