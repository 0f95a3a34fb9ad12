/* Log lines of the partitions: failures, by the crash policy.
 *
 * A delivery that goes well costs no line. A receiver that fails thousands of times a second gets
 * TELLS_PER_SECOND lines from each partition; the rest is counted all the same, and each attempt stands in
 * the delivery log. */
#include <stdio.h>

#include "base/heart.h"
#include "base/log.h"
#include "domains/gateway/gateway_internal.h"
#include "runtime/event_names.h"
#include "runtime/failure_modes.h"

#include "base/banned.h"

enum { TELLS_PER_SECOND = 10, SECOND_MS = 1000, CODE_MAX = 48, CHILD_MAX = 64 };

static bool may_tell(struct outbound *p, int64_t now_ms)
{
    if (now_ms - p->told_at_ms >= SECOND_MS) {
        p->told_at_ms = now_ms;
        p->tells_left = TELLS_PER_SECOND;
    }
    if (!p->tells_left)
        return false;
    p->tells_left--;
    return true;
}

static void tell_failed(const struct gateway *g, struct sending *s, int64_t now_ms)
{
    char code[CODE_MAX];
    if (s->status)
        snprintf(code, sizeof code, "%d", s->status);
    else
        snprintf(code, sizeof code, "%s", s->error_code);
    if (may_tell(s->partition, now_ms))
        failure_outbound_failed(g->process->kind->name, s->partition->number, s->attempt, code);
    else
        heart_add_count(FAILURE_MODE_OUTBOUND);
}

void outbound_tell_result(struct gateway *g, struct sending *s, int64_t now_ms)
{
    if (s->success)
        return;
    if (s->poison)
        failure_poison_message(g->process->kind->name, s->delivery_id.ptr, s->error_message, "exhausted");
    else if (s->retryable)
        tell_failed(g, s, now_ms);
}

/* As root tells of a domain that ended by its processes. Root counts this one too: it reads the count of the
 * failure below off this process's page. */
static void tell_escalation(const struct gateway *g, const struct actor_failure *f)
{
    const struct process_kind *kind = g->process->kind;
    char child[CHILD_MAX];
    snprintf(child, sizeof child, "%s partition %u", g->process->name, f->partition);
    failure_restarts_exhausted(kind->name, f->in_window, g->limits.window_seconds, domain_name(kind->domain));
    log_line(LOG_ERROR, EVENT_SUPERVISOR_ESCALATION, "domain", LOG_TEXT(domain_name(kind->domain)),
             "source_child", LOG_TEXT(child), "restart_count", LOG_INT(f->in_window), "supervisor",
             LOG_TEXT(domain_rows[kind->domain].supervisor), "reason", LOG_TEXT(f->reason), NULL);
}

void outbound_tell_failed_actor(void *gateway, const struct actor_failure *f)
{
    const struct gateway *g = gateway;
    const struct process_kind *kind = g->process->kind;
    failure_actor_failed(kind->name, domain_name(kind->domain), f->partition, (int64_t)f->restarts,
                         f->reason);
    if (f->delay_ms < 0)
        tell_escalation(g, f);
}
