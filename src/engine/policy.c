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

static void by_table(const struct policy_request *q, bool may, struct policy_verdict *v)
{
    v->allowed = may;
    if (!may) {
        v->code = ERR_AUTHZ_DENIED;
        snprintf(v->reason, sizeof v->reason, "no role of the actor may send %s",
                 signal_type_text(q->signal));
    }
}

static void by_point(const struct policy_given *g, struct policy_verdict *v)
{
    v->allowed = g->allowed;
    v->requires_approval = g->requires_approval;
    if (g->allowed)
        return;
    v->code = ERR_AUTHZ_DENIED;
    snprintf(v->reason, sizeof v->reason, "%.*s",
             STR_ARG(g->reason.ptr ? g->reason : STR("denied by policy")));
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
    if (given && given->source == POLICY_GIVEN)
        by_point(given, ret);
    else
        by_table(q, may, ret);
    if (!ret->allowed)
        return;
    if (signal_is_destructive(q->signal) && !policy_reason(q->audit_reason).ptr) {
        refuse(ret, ERR_AUTHZ_REASON_REQUIRED, "Destructive signal requires justification");
        return;
    }
    ret->requires_approval |= is_listed(s->engine_approval_required, q->signal);
    if (ret->requires_approval)
        snprintf(ret->reason, sizeof ret->reason, "another Admin of the tenant has to approve it");
    else if (given && given->flagged)
        snprintf(ret->reason, sizeof ret->reason,
                 "the policy decision point did not answer: by the table of roles");
}
