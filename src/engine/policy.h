/* engine/policy.h - may this actor send this signal: evaluateSignal of seed 003 section 4, as an interface.
 *
 * The evaluator behind it is the table of roles (lifecycle/signals.h), or a policy decision point outside
 * whose answer is brought along (POLICY_GIVEN). Order of the checks: tenant, project, switched off, role,
 * reason (AS-02). The point stands in place of the role alone; and ESCALATE_ALERT is for the System whatever
 * a point says (SIG-025). Pure: the id of the decision is passed in. */
#ifndef WEIR_ENGINE_POLICY_H
#define WEIR_ENGINE_POLICY_H

#include "base/err.h"
#include "base/uuid.h"
#include "config/settings.h"
#include "lifecycle/signals.h"

struct policy_actor {
    struct str user_id, tenant;
    const struct str *roles; /* as the token has them, `System` from outside left out */
    size_t role_count;
    bool scoped; /* to these projects; else it may touch every one */
    const struct str *projects;
    size_t project_count;
};

struct policy_request {
    struct policy_actor actor;
    enum signal_type signal;
    struct str payload; /* JSON text */
    struct str tenant, project, run_id;
    struct str audit_reason; /* absent, or as it was said */
};

enum policy_source { POLICY_TABLE, POLICY_GIVEN };

enum { POLICY_REASON_MAX = 150 }; /* bytes of a point's words that are kept */

/* The verdict of a policy decision point, when one was asked. */
struct policy_given {
    enum policy_source source;
    bool allowed, requires_approval;
    bool flagged;      /* it did not answer: a fallback decides, and a person has to review it */
    struct str reason; /* at most POLICY_REASON_MAX; absent: none given */
};

struct policy_verdict {
    bool allowed, requires_approval;
    enum err_code code; /* of a refusal */
    struct str role;    /* the effective one (AS-24: the least held; "NONE") */
    char reason[200];   /* of a refusal, of what is held for approval, or what a point said beside its yes */
};

/* Does the word of a point count for this one? Else it need not be asked. */
bool policy_is_for_point(const struct settings *s, const struct policy_request *q);

void policy_evaluate(const struct settings *s, const struct policy_request *q,
                     const struct policy_given *given, struct policy_verdict *ret);
bool policy_may_touch(const struct policy_actor *actor, struct str project);
/* The least permissive role that suffices; without one the least that is held, "NONE" without any. */
struct str policy_effective_role(const struct policy_actor *actor, enum signal_type signal, bool *ret_may);
/* Trimmed; absent when nothing is left. */
struct str policy_reason(struct str said);

#endif
