/* Failures and their consequences: the child is started again, or its domain ends, or the program.
 * runtime/supervision.h has the rules; here they are applied to processes. */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/log.h"
#include "runtime/supervisor_internal.h"

#include "base/banned.h"

static struct domain *domain_of(struct supervisor *s, const struct child *c)
{
    return &s->domains[c->kind->domain];
}

/* ---- escalation ---- */

/* One fatal event for the operator and one for the measure of containment. */
static void tell_escalation(const struct supervision *ended, const char *source_child, const char *how)
{
    const struct restart_window *w = &ended->window;
    failure_restarts_exhausted("supervisor", w->max_restarts, w->window_ms / 1000,
                               domain_name(ended->domain));
    log_line(LOG_ERROR, EVENT_SUPERVISOR_ESCALATION, "domain", LOG_TEXT(domain_name(ended->domain)),
             "source_child", LOG_TEXT(source_child), "restart_count", LOG_INT(w->max_restarts), "supervisor",
             LOG_TEXT(domain_rows[ended->domain].supervisor), "reason", LOG_TEXT(how), NULL);
}

static void give_up(struct supervisor *s, const char *what, const char *how)
{
    const struct supervision *root = &s->domains[DOMAIN_ROOT].supervision;
    stop_fast(s, EXIT_FAILURE);
    tell_escalation(root, what, how);
    log_say("%s failed (%s) after %u restarts within %lld s; giving up", what, how, root->window.max_restarts,
            (long long)(root->window.window_ms / 1000));
}

/* The rest of the domain is stopped too; the whole domain comes back as one restart of root's (AT-03). */
static void end_domain(struct supervisor *s, const struct child *source, const char *how)
{
    enum domain_id id = source->kind->domain;
    struct domain *d = &s->domains[id];
    if (id == DOMAIN_ROOT) {
        give_up(s, source->name, how);
        return;
    }
    tell_escalation(&d->supervision, source->name, how);
    struct supervision_answer answer = supervision_child_failed(
        &s->domains[DOMAIN_ROOT].supervision, FAILURE_MODE_EXHAUSTED, (uint32_t)id, root_now_ms());
    if (answer.verdict != SUPERVISION_RESTART) {
        give_up(s, domain_name(id), how);
        return;
    }
    d->state = DOMAIN_ENDED;
    d->restart_at_ms = root_now_ms() + answer.delay_ms;
    int64_t kill_at_ms = root_now_ms() + s->settings->runtime_drain_ms + SUPERVISOR_DRAIN_GRACE_MS;
    for (size_t i = 0; i < s->child_count; i++)
        if (s->children[i].kind->domain == id)
            child_ask_to_stop(s, &s->children[i], kill_at_ms);
}

/* ---- one child ---- */

/* The child is gone, or there was no process to be had for it. */
static void child_failed(struct supervisor *s, struct child *c, enum failure_mode mode, const char *how)
{
    if (cascade_watch_failure(&s->cascades, c->kind->domain, root_now_ms()))
        log_line(LOG_ERROR, "cross_domain_cascade", "domain", LOG_TEXT(domain_name(c->kind->domain)),
                 "source_domain", LOG_TEXT(domain_name(s->cascades.domain)), "source_child",
                 LOG_TEXT(c->name), "cascade_count", LOG_INT((int64_t)s->cascades.cascades), NULL);
    if (domain_of(s, c)->state == DOMAIN_ENDED)
        return; /* comes back with its domain */
    struct supervision_answer answer =
        supervision_child_failed(&domain_of(s, c)->supervision, mode, (uint32_t)c->page, root_now_ms());
    switch (answer.verdict) {
    case SUPERVISION_KEEP:
        return;
    case SUPERVISION_RESTART:
        c->state = CHILD_BACKOFF;
        c->act_at_ms = root_now_ms() + answer.delay_ms;
        return;
    case SUPERVISION_END:
        end_domain(s, c, how);
        return;
    case SUPERVISION_STOP:
        stop_fast(s, PROCESS_EXIT_CONFIG);
        log_say("%s cannot run with this configuration (see above); stopping", c->name);
        return;
    }
}

static uint64_t asks_for(const struct child *c)
{
    return c->kind->asked == BUS_NONE ? 0 : bus_last(c->kind->asked).count;
}

void start_child(struct supervisor *s, struct child *c)
{
    c->asks = asks_for(c);
    if (child_start(s, c, root_now_ms()))
        return;
    const char *reason = strerror(errno);
    log_line(LOG_ERROR, "process_not_started", "name", LOG_TEXT(c->name), "reason", LOG_TEXT(reason), NULL);
    failure_process_ended(c->name, domain_name(c->kind->domain), reason, 0);
    child_failed(s, c, FAILURE_MODE_PROCESS_ENDED, "cannot fork");
}

/* ---- processes on demand ---- */

static void wait_for_demand(struct supervisor *s, struct child *c)
{
    c->state = CHILD_RESTING;
    c->act_at_ms = root_now_ms() + ASKS_LOOK_MS;
    c->started_wall_us = 0; /* the next start is no restart */
    s->changed = true;
}

void start_or_wait_for_demand(struct supervisor *s, struct child *c)
{
    if (process_is_on_demand(c->kind->id, s->settings))
        wait_for_demand(s, c);
    else
        start_child(s, c);
}

void start_if_asked(struct supervisor *s, struct child *c)
{
    c->act_at_ms = root_now_ms() + ASKS_LOOK_MS;
    if (s->phase == STOP_NO && asks_for(c) != c->asks)
        start_child(s, c);
}

/* A process on demand has ended because it was idle. Work announced since it began starts another one. */
static bool ended_idle(struct supervisor *s, struct child *c, int status)
{
    if (c->state != CHILD_RUNNING || s->phase != STOP_NO || !WIFEXITED(status) || WEXITSTATUS(status) != 0 ||
        !process_is_on_demand(c->kind->id, s->settings))
        return false;
    log_line(LOG_INFO, "process_idle", "name", LOG_TEXT(c->name), "pid", LOG_INT(c->pid), "uptime_ms",
             LOG_INT(root_now_ms() - c->started_ms), NULL);
    child_gone(s, c);
    wait_for_demand(s, c);
    return true;
}

/* Exit codes with a meaning are logged by the process that exits with them: here they only choose the mode.
 * Settings do not change under a root: one that was ready once, and now calls them bad, met something that
 * may pass. */
static enum failure_mode mode_of(const struct child *c, int status)
{
    if (c->hung)
        return FAILURE_MODE_PROCESS_HUNG;
    if (WIFEXITED(status) && WEXITSTATUS(status) == PROCESS_EXIT_CONFIG && !c->was_ready)
        return FAILURE_MODE_BOOT_CONFIG;
    if (WIFEXITED(status) && WEXITSTATUS(status) == PROCESS_EXIT_ADAPTER)
        return FAILURE_MODE_ADAPTER_INIT;
    return FAILURE_MODE_PROCESS_ENDED;
}

void child_ended(struct supervisor *s, struct child *c, int status)
{
    char how[64];
    if (ended_idle(s, c, status))
        return;
    child_end_text(status, how, sizeof how);
    bool asked = c->state == CHILD_STOPPING;
    enum failure_mode mode = mode_of(c, status);
    const char *class_name = failure_class_name(failure_modes[mode].failure_class);
    int64_t uptime_ms = root_now_ms() - c->started_ms;
    log_line(asked ? LOG_INFO : LOG_WARN, "process_ended", "name", LOG_TEXT(c->name), "pid", LOG_INT(c->pid),
             "reason", LOG_TEXT(how), "failure_class", asked ? LOG_STR(STR_ABSENT) : LOG_TEXT(class_name),
             "uptime_ms", LOG_INT(uptime_ms), "stop_ms",
             asked ? LOG_INT(root_now_ms() - c->asked_ms) : LOG_STR(STR_ABSENT), NULL);
    child_gone(s, c);
    if (s->phase != STOP_NO || (asked && domain_of(s, c)->state == DOMAIN_ENDED))
        return;
    if (mode == FAILURE_MODE_PROCESS_ENDED)
        failure_process_ended(c->name, domain_name(c->kind->domain), how, uptime_ms);
    child_failed(s, c, mode, how);
}

/* ---- domains ---- */

bool domain_lives(const struct supervisor *s, enum domain_id id)
{
    for (size_t i = 0; i < s->child_count; i++)
        if (s->children[i].kind->domain == id && child_lives(&s->children[i]))
            return true;
    return false;
}

void act_on_domain(struct supervisor *s, enum domain_id id)
{
    struct domain *d = &s->domains[id];
    if (restart_window_slide(&d->supervision.window, root_now_ms()))
        s->changed = true;
    if (d->state != DOMAIN_ENDED || s->phase != STOP_NO || root_now_ms() < d->restart_at_ms ||
        domain_lives(s, id))
        return;
    log_line(LOG_WARN, "domain_restarted", "domain", LOG_TEXT(domain_name(id)), NULL);
    d->state = DOMAIN_RUNNING;
    supervision_renew(&d->supervision);
    for (size_t i = 0; i < s->child_count; i++)
        if (s->children[i].kind->domain == id)
            start_or_wait_for_demand(s, &s->children[i]);
}

/* ---- hearts ---- */

int64_t hearts_interval_ms(const struct supervisor *s)
{
    int64_t ms = s->settings->runtime_heartbeat_timeout_ms / HEARTBEAT_LOOKS;
    return s->settings->runtime_heartbeat_timeout_ms && ms < 1 ? 1 : ms;
}

static void replace_hung(struct child *c, const char *loop, int64_t silent_ms)
{
    failure_process_hung(c->name, domain_name(c->kind->domain), loop, silent_ms);
    c->hung = true;
    child_kill(c); /* also ends what is stopped */
}

/* True when it has been stopped for so long that it is replaced. */
static bool look_whether_stopped(struct supervisor *s, struct child *c, int64_t now_ms)
{
    if (!heartbeat_is_stopped(c->pid)) {
        c->stopped_since_ms = 0;
        return false;
    }
    if (!c->stopped_since_ms)
        c->stopped_since_ms = now_ms;
    if (now_ms - c->stopped_since_ms < s->settings->runtime_heartbeat_timeout_ms)
        return false;
    replace_hung(c, "all, by a signal", now_ms - c->stopped_since_ms);
    return true;
}

static void look_at(struct supervisor *s, struct child *c, int64_t now_ms)
{
    struct heartbeat_silence silence;
    if (look_whether_stopped(s, c, now_ms))
        return;
    if (!heartbeat_silent(&s->pages[c->page], s->settings->runtime_heartbeat_timeout_ms, now_ms, &silence))
        return;
    if (heartbeat_in_disk_wait(c->pid, silence.thread_id)) {
        if (!c->disk_wait_reported)
            log_line(LOG_WARN, "process_waits_for_disk", "name", LOG_TEXT(c->name), "loop",
                     LOG_TEXT(silence.loop), "silent_ms", LOG_INT(silence.silent_ms), NULL);
        c->disk_wait_reported = true;
        return;
    }
    replace_hung(c, silence.loop, silence.silent_ms);
}

void look_at_hearts(struct supervisor *s)
{
    int64_t now_ms = root_now_ms(), interval_ms = hearts_interval_ms(s);
    if (!interval_ms || s->phase != STOP_NO || now_ms < s->hearts_look_ms)
        return;
    /* Root itself came late: the machine slept or was frozen, and the others with it. They beat first. */
    if (s->hearts_look_ms && now_ms - s->hearts_look_ms > interval_ms)
        s->hearts_grace_ms = now_ms + s->settings->runtime_heartbeat_timeout_ms;
    s->hearts_look_ms = now_ms + interval_ms;
    if (now_ms < s->hearts_grace_ms)
        return;
    for (size_t i = 0; i < s->child_count; i++) {
        struct child *c = &s->children[i];
        if (child_lives(c) && !c->hung && (c->state == CHILD_RUNNING || c->state == CHILD_STARTING))
            look_at(s, c, now_ms);
    }
}

bool hearts_beat(const struct supervisor *s)
{
    int64_t timeout_ms = s->settings->runtime_heartbeat_timeout_ms, now_ms = root_now_ms();
    struct heartbeat_silence silence;
    if (s->phase != STOP_NO)
        return true; /* while it stops root limits the time itself */
    for (size_t i = 0; i < s->child_count; i++) {
        const struct child *c = &s->children[i];
        if (!child_lives(c) && c->kind->owns_store)
            return false;
        if (child_lives(c) && timeout_ms && now_ms >= s->hearts_grace_ms &&
            (c->stopped_since_ms || (heartbeat_silent(&s->pages[c->page], timeout_ms, now_ms, &silence) &&
                                     !heartbeat_in_disk_wait(c->pid, silence.thread_id))))
            return false;
    }
    return true;
}
