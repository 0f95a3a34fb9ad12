#include "engine/decision.h"

#include "base/must.h"
#include "engine/alert.h"
#include "engine/run_notices.h"

#include "base/banned.h"

static struct str bytes_of(const struct uuid *id)
{
    return (struct str){(const char *)id->bytes, sizeof id->bytes};
}

static struct decision_row *by_number(struct unit *u, int64_t id)
{
    return unit_fetch(u, &table_decision_row, &(struct decision_row){.id = id});
}

struct decision_row *decision_of_signal(struct unit *u, int64_t run, const struct uuid *signal_id)
{
    const struct signal_key_row *k = unit_fetch(
        u, &table_signal_key_row, &(struct signal_key_row){.run = run, .signal = bytes_of(signal_id)});
    return k ? by_number(u, k->decision) : NULL;
}

struct decision_row *decision_of_policy(struct unit *u, const struct uuid *policy_id)
{
    const struct policy_key_row *k =
        unit_fetch(u, &table_policy_key_row, &(struct policy_key_row){.policy = bytes_of(policy_id)});
    return k ? by_number(u, k->decision) : NULL;
}

struct decision_row *decision_prefetch_of_signal(struct unit *u, int64_t run, const struct uuid *signal_id)
{
    const struct signal_key_row *k = unit_prefetch(
        u, &table_signal_key_row, &(struct signal_key_row){.run = run, .signal = bytes_of(signal_id)});
    return k ? unit_prefetch(u, &table_decision_row, &(struct decision_row){.id = k->decision}) : NULL;
}

struct decision_row *decision_prefetch_of_policy(struct unit *u, const struct uuid *policy_id)
{
    const struct policy_key_row *k =
        unit_prefetch(u, &table_policy_key_row, &(struct policy_key_row){.policy = bytes_of(policy_id)});
    return k ? unit_prefetch(u, &table_decision_row, &(struct decision_row){.id = k->decision}) : NULL;
}

struct decision_row *decision_add(struct unit *u, const struct decision_row *row)
{
    struct decision_row *d = ARENA_NEW(u->arena, struct decision_row);
    struct signal_key_row *signal = ARENA_NEW(u->arena, struct signal_key_row);
    struct policy_key_row *policy = ARENA_NEW(u->arena, struct policy_key_row);
    *d = *row;
    d->id = unit_id_at(u, u->locked_at_ms); /* records are listed as they were decided */
    d->created_ms = u->locked_at_ms;
    *signal = (struct signal_key_row){.run = d->run, .signal = d->signal, .decision = d->id};
    *policy = (struct policy_key_row){.policy = d->policy, .decision = d->id};
    unit_insert(u, &table_decision_row, d);
    unit_notify(u, &decision_notices, d);
    unit_insert(u, &table_signal_key_row, signal);
    unit_insert(u, &table_policy_key_row, policy);
    unit_list(u, d->run, LIST_DECISIONS, d->id, false);
    return d;
}

void decision_processed(struct unit *u, struct decision_row *d, bool succeeded, struct str error_code)
{
    d->processed_ms = u->locked_at_ms;
    d->succeeded = succeeded;
    d->error_code = error_code;
    unit_update(u, &table_decision_row, d);
}

void decision_execute(struct unit *u, struct run_row *run, struct decision_row *d,
                      const struct applied_signal *s)
{
    struct run_step_row *step;
    struct err err = {.code = ERR_OK};
    enum err_code code = signal_step(u, run, s, &step, &err);
    if (code == ERR_OK)
        code = signal_is_possible(run, step, s, &err);
    bool ours = run->plan_num != 0;
    if (code == ERR_OK && ours)
        code = signal_apply(u, run, step, s, &err);
    if (code == ERR_OK && ours && s->type == SIGNAL_RETRY_RUN)
        d->new_run = s->new_run_id;
    if (code != ERR_OK)
        d->reason = arena_str(u->arena, str_of(err.detail)); /* for a repeated request */
    if (code != ERR_OK || ours || signal_apply_outside(u, run, s)) {
        decision_processed(u, d, code == ERR_OK, code == ERR_OK ? STR_ABSENT : str_of(err_wire(code)));
        return;
    }
    unit_update(u, &table_decision_row, d);
    unit_list(u, d->run, LIST_DECISIONS_OPEN, d->id, false);
}

/* The codes a sender can have heard; what an engine outside calls its failures is no refusal of ours. */
static void repeat_refusal(const struct decision_row *d, struct err *ret)
{
    static const enum err_code codes[] = {
        ERR_AUTHZ_DENIED, ERR_AUTHZ_REASON_REQUIRED, ERR_AUTHZ_TENANT_FORBIDDEN, ERR_SIGNAL_INVALID_PAYLOAD,
        ERR_RUN_TERMINAL, ERR_STEP_NOT_TERMINAL,     ERR_STEP_TERMINAL};
    for (size_t i = 0; d->error_code.ptr && i < LENGTH_OF(codes); i++)
        if (str_is(d->error_code, err_wire(codes[i])))
            err_set(ret, codes[i], "%.*s",
                    STR_ARG(d->reason.ptr ? d->reason : STR("the engine could not do it")));
}

static void copy(struct str text, char *out, size_t size)
{
    size_t len = text.len < size - 1 ? text.len : size - 1;
    while (len && len < text.len && ((unsigned char)text.ptr[len] & 0xC0) == 0x80)
        len--; /* not within a character */
    if (len)
        memcpy(out, text.ptr, len);
    out[len] = '\0';
}

void decision_answer(const struct decision_row *d, struct signal_answer *ret)
{
    ret->decision = (enum signal_decision)d->state;
    ret->processed = d->processed_ms != 0;
    ret->succeeded = d->succeeded != 0;
    copy(d->new_run, ret->new_run, sizeof ret->new_run);
    copy(d->error_code, ret->error_code, sizeof ret->error_code);
    memcpy(ret->decision_id.bytes, d->uuid.ptr, sizeof ret->decision_id.bytes);
    memcpy(ret->policy_id.bytes, d->policy.ptr, sizeof ret->policy_id.bytes);
    repeat_refusal(d, &ret->refusal);
}
