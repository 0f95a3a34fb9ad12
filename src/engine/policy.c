#include "engine/policy.h"

#include <stdio.h>

#include "base/banned.h"

struct str policy_reason(struct str said)
{
    while (said.len && (unsigned char)said.ptr[0] <= ' ') {
        said.ptr++;
        said.len--;
    }
    while (said.len && (unsigned char)said.ptr[said.len - 1] <= ' ')
        said.len--;
    return said.len ? said : STR_ABSENT;
}

bool policy_may_touch(const struct policy_actor *actor, struct str project)
{
    for (size_t i = 0; actor->scoped && i < actor->project_count; i++)
        if (str_equal(actor->projects[i], project))
            return true;
    return !actor->scoped;
}

struct str policy_effective_role(const struct policy_actor *actor, enum signal_type signal, bool *ret_may)
{
    int suffices = SIGNAL_ROLE_COUNT, held = SIGNAL_ROLE_COUNT;
    for (size_t i = 0; i < actor->role_count; i++) {
        enum signal_role r;
        if (!signal_role_of(actor->roles[i], &r))
            continue;
        if ((int)r < held)
            held = (int)r;
        if (signal_role_may(r, signal) && (int)r < suffices)
            suffices = (int)r;
    }
    *ret_may = suffices < SIGNAL_ROLE_COUNT;
    if (*ret_may)
        held = suffices;
    return held < SIGNAL_ROLE_COUNT ? str_of(signal_role_text((enum signal_role)held)) : STR("NONE");
}

/* Is it in a comma list of signal types? */
static bool is_listed(const char *list, enum signal_type t)
{
    struct str name = str_of(signal_type_text(t));
    for (const char *at = list; at && *at;) {
        const char *end = strchr(at, ',');
        struct str item = {at, end ? (size_t)(end - at) : strlen(at)};
        while (item.len && item.ptr[0] == ' ') {
            item.ptr++;
            item.len--;
        }
        while (item.len && item.ptr[item.len - 1] == ' ')
            item.len--;
        if (str_equal(item, name))
            return true;
        at = end ? end + 1 : NULL;
    }
    return false;
}

static void refuse(struct policy_verdict *v, enum err_code code, const char *reason)
{
    v->allowed = false;
    v->code = code;
    snprintf(v->reason, sizeof v->reason, "%s", reason);
}

/* Behind what stands there already. */
static void add_reason(struct policy_verdict *v, const char *between, struct str text)
{
    size_t at = strlen(v->reason);
    snprintf(v->reason + at, sizeof v->reason - at, "%s%.*s", at ? between : "", STR_ARG(text));
}

static void by_table(const struct policy_request *q, bool may, bool flagged, struct policy_verdict *v)
{
    v->allowed = may;
    if (!may) {
        v->code = ERR_AUTHZ_DENIED;
        snprintf(v->reason, sizeof v->reason, "no role of the actor may send %s",
                 signal_type_text(q->signal));
    }
    if (flagged)
        add_reason(v, "; ", STR("the policy decision point did not answer: by the table of roles"));
}

static void by_point(const struct policy_given *g, struct policy_verdict *v)
{
    v->allowed = g->allowed;
    v->requires_approval = g->allowed && g->requires_approval;
    v->code = g->allowed ? ERR_OK : ERR_AUTHZ_DENIED;
    struct str said = {g->reason.ptr, g->reason.len < POLICY_REASON_MAX ? g->reason.len : POLICY_REASON_MAX};
    add_reason(v, "", said.len || g->allowed ? said : STR("denied by policy"));
}

/* Why it waits, before anything that was said. */
static void hold_for_approval(struct policy_verdict *v)
{
    char said[sizeof v->reason];
    memcpy(said, v->reason, sizeof said);
    snprintf(v->reason, sizeof v->reason, "another Admin of the tenant has to approve it");
    if (*said)
        add_reason(v, ": ", str_of(said));
}

bool policy_is_for_point(const struct settings *s, const struct policy_request *q)
{
    return q->signal != SIGNAL_ESCALATE_ALERT && str_equal(q->actor.tenant, q->tenant) &&
           !is_listed(s->engine_disabled_signals, q->signal);
}

void policy_evaluate(const struct settings *s, const struct policy_request *q,
                     const struct policy_given *given, struct policy_verdict *ret)
{
    bool may;
    *ret = (struct policy_verdict){.role = policy_effective_role(&q->actor, q->signal, &may)};
    if (!str_equal(q->actor.tenant, q->tenant)) {
        refuse(ret, ERR_AUTHZ_TENANT_FORBIDDEN, "the run is another tenant's");
        return;
    }
    if (!policy_may_touch(&q->actor, q->project)) {
        refuse(ret, ERR_AUTHZ_DENIED, "the run's project is not in the token's project_scope");
        return;
    }
    if (is_listed(s->engine_disabled_signals, q->signal)) {
        refuse(ret, ERR_AUTHZ_DENIED, "this signal is not enabled");
        return;
    }
    if (given && given->source == POLICY_GIVEN && policy_is_for_point(s, q))
        by_point(given, ret);
    else
        by_table(q, may, given && given->flagged, ret);
    if (!ret->allowed)
        return;
    if (signal_is_destructive(q->signal) && !policy_reason(q->audit_reason).ptr) {
        refuse(ret, ERR_AUTHZ_REASON_REQUIRED, "Destructive signal requires justification");
        return;
    }
    ret->requires_approval |= is_listed(s->engine_approval_required, q->signal);
    if (ret->requires_approval)
        hold_for_approval(ret);
}
