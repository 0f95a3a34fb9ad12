/* Settles signals that are held for approval; notes the results of an outside engine. */
#include "base/json.h"
#include "base/must.h"
#include "engine/decision.h"
#include "engine/run_notices.h"

#include "base/banned.h"

/* --- approval -------------------------------------------------------------------------------------- */

static void load_settle(struct unit *u, struct command *base)
{
    const struct decision_row *d =
        decision_prefetch_of_policy(u, &((struct settle_command *)base)->policy_id);
    if (d)
        unit_prefetch(u, &table_run_row, &(struct run_row){.num = d->run});
}

/* The record has one place for reasons: the approver's, and behind it the reason of a refusal by the state.
 * */
static void keep_reason(struct unit *u, const struct settle_command *c, struct decision_row *d)
{
    if (c->reason.ptr && d->error_code.ptr)
        d->reason = arena_printf(u->arena, "%.*s (approved: %.*s)", STR_ARG(d->reason), STR_ARG(c->reason));
    else if (c->reason.ptr)
        d->reason = c->reason;
}

static void settle(struct unit *u, struct settle_command *c, struct run_row *run, struct decision_row *d)
{
    enum signal_decision decision = (enum signal_decision)d->state;
    MUST(signal_decision_settle(&decision, c->approve));
    d->state = decision;
    d->approved_by = c->actor_shown;
    d->approved_ms = u->locked_at_ms;
    unit_notify(u, &decision_notices, d);
    if (!c->approve) {
        d->error_code = str_of(err_wire(ERR_AUTHZ_DENIED));
        d->reason = c->reason.ptr ? c->reason : STR("rejected by another Admin");
        unit_update(u, &table_decision_row, d);
        return;
    }
    struct applied_signal s = {(enum signal_type)d->type, NULL, c->new_run_id};
    struct err err = {.code = ERR_OK};
    if (json_parse(u->arena, d->payload, &s.payload, &err) == ERR_OK)
        decision_execute(u, run, d, &s);
    else
        decision_processed(u, d, false, str_of(err_wire(ERR_SIGNAL_INVALID_PAYLOAD)));
    keep_reason(u, c, d);
}

/* The approver gets the result as the answer; that a rejected signal is refused is told to its sender. */
static void answer(const struct decision_row *d, struct settle_command *c)
{
    decision_answer(d, &c->answer);
    if (!c->approve)
        c->answer.refusal = (struct err){.code = ERR_OK};
}

static enum err_code decide_settle(struct unit *u, struct command *base, struct err *err)
{
    struct settle_command *c = (struct settle_command *)base;
    struct decision_row *d = decision_of_policy(u, &c->policy_id);
    struct run_row *run = d ? run_by_number(u, d->run) : NULL;
    if (!run || !str_equal(run->tenant_name, c->actor.tenant) || !policy_may_touch(&c->actor, run->project))
        return err_set(err, ERR_SIGNAL_NOT_FOUND, "no decision of your tenant has this policyDecisionId");
    if (str_equal(d->actor, c->actor_shown))
        return err_set(err, ERR_AUTHZ_DENIED, "who sent the signal cannot settle it: another Admin has to");
    if (d->state != DECISION_REVISION_REQUIRED) {
        bool same = d->needs_approval && (d->state == DECISION_ACCEPTED) == c->approve;
        answer(d, c);
        c->answer.replayed = true;
        if (!same)
            err_set(&c->answer.refusal, ERR_SIGNAL_DUPLICATE, "the decision was made before");
        return ERR_OK;
    }
    settle(u, c, run, d);
    answer(d, c);
    return ERR_OK;
}

const struct command_type settle_command_type = {
    "settle", load_settle, decide_settle, COMMAND_ANSWER(struct settle_command, answer), .critical = true};

/* --- processed ------------------------------------------------------------------------------------- */

static void load_processed(struct unit *u, struct command *base)
{
    const struct processed_command *c = (const struct processed_command *)base;
    const struct run_row *run = run_prefetch(u, c->run_id);
    if (run)
        (void)decision_prefetch_of_signal(u, run->num, &c->signal_id);
}

static enum err_code decide_processed(struct unit *u, struct command *base, struct err *err)
{
    struct processed_command *c = (struct processed_command *)base;
    const struct run_row *run = run_find(u, c->run_id);
    struct decision_row *d = run ? decision_of_signal(u, run->num, &c->signal_id) : NULL;
    if (!d || !str_equal(run->tenant_name, c->tenant))
        return err_set(err, ERR_SIGNAL_NOT_FOUND, "the run has no decision about this signalId");
    memcpy(c->policy_id.bytes, d->policy.ptr, sizeof c->policy_id.bytes);
    if (c->new_run.ptr && (d->type != SIGNAL_RETRY_RUN || !c->succeeded))
        return err_set(err, ERR_REQUEST_MALFORMED, "newRunId is of a RETRY_RUN that succeeded");
    if (d->processed_ms) {
        bool same_run = !c->new_run.ptr || str_equal(d->new_run, c->new_run);
        if ((d->succeeded != 0) != c->succeeded || !same_run)
            err_set(&c->refusal, ERR_SIGNAL_DUPLICATE, "another result was told before");
        return ERR_OK;
    }
    if (d->state != DECISION_ACCEPTED) {
        err_set(&c->refusal, ERR_SIGNAL_DUPLICATE, "the signal is not accepted: there is nothing to process");
        return ERR_OK;
    }
    d->new_run = c->new_run;
    decision_processed(u, d, c->succeeded, c->error_code);
    unit_list(u, d->run, LIST_DECISIONS_OPEN, d->id, true);
    return ERR_OK;
}

const struct command_type processed_command_type = {"processed", load_processed, decide_processed,
                                                    COMMAND_ANSWER(struct processed_command, policy_id),
                                                    .critical = true};
