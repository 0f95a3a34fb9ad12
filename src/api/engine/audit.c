#include "api/engine/audit.h"

#include "base/log.h"
#include "engine/alert.h"
#include "engine/run_notices.h"
#include "lifecycle/signals.h"

#include "base/banned.h"

static void uuid_of(struct str bytes, char out[UUID_TEXT_LEN + 1])
{
    struct uuid id = {{0}};
    if (bytes.len == sizeof id.bytes)
        memcpy(id.bytes, bytes.ptr, sizeof id.bytes);
    uuid_text(&id, out);
}

/* When it is made, and again when another Admin has settled it. */
static void tell_decision(struct api *a, const struct decision_row *d)
{
    char decision[UUID_TEXT_LEN + 1], signal[UUID_TEXT_LEN + 1], policy[UUID_TEXT_LEN + 1];
    uuid_of(d->uuid, decision);
    uuid_of(d->signal, signal);
    uuid_of(d->policy, policy);
    metrics_signal(a->metrics, (enum signal_decision)d->state);
    log_line(LOG_INFO, "signal", "signal_decision_id", LOG_TEXT(decision), "signal_id", LOG_TEXT(signal),
             "policy_decision_id", LOG_TEXT(policy), "signal_type",
             LOG_TEXT(signal_type_text((enum signal_type)d->type)), "decision",
             LOG_TEXT(signal_decision_text((enum signal_decision)d->state)), "run", LOG_INT(d->run),
             "actor_id", LOG_STR(d->actor), "actor_tenant", LOG_STR(d->actor_tenant), "actor_role",
             LOG_STR(d->role), "error_code", LOG_STR(d->error_code), "reason", LOG_STR(d->audit_reason),
             "approved_by", LOG_STR(d->approved_by), "approval_reason",
             LOG_STR(d->approved_ms ? d->reason : STR_ABSENT), NULL);
}

static void tell_alert(struct api *a, const struct alert_row *x)
{
    char about[UUID_TEXT_LEN + 1];
    enum alert_severity severity = (enum alert_severity)x->severity;
    uuid_of(x->event_id, about);
    metrics_alert(a->metrics, (enum alert_category)x->category);
    log_line(severity >= SEVERITY_CRITICAL ? LOG_ERROR : LOG_WARN, "alert", "alert_code", LOG_STR(x->code),
             "severity", LOG_TEXT(alert_severity_text(severity)), "category",
             LOG_TEXT(alert_category_text((enum alert_category)x->category)), "run", LOG_INT(x->run), "about",
             LOG_TEXT(about), "event_type", LOG_STR(x->event_type), "run_seq", LOG_INT(x->seq), "prior_state",
             LOG_STR(x->prior), "attempted_state", LOG_STR(x->attempted), "detail", LOG_STR(x->detail), NULL);
}

void engine_committed(struct api *a, const struct unit *u)
{
    size_t events = 0;
    for (size_t i = 0; i < u->notices.count; i++) {
        const struct notice *n = &u->notices.list[i];
        events += n->kind == &run_event_notices;
        if (n->kind == &decision_notices)
            tell_decision(a, n->row);
        else if (n->kind == &alert_notices)
            tell_alert(a, n->row);
    }
    metrics_run_events(a->metrics, events);
}
