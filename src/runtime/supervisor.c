#include "runtime/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "runtime/data_lock.h"
#include "runtime/process_title.h"
#include "runtime/sandbox.h"
#include "runtime/supervisor_internal.h"

#include "base/banned.h"

static int64_t now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

static struct domain *domain_of(struct supervisor *s, const struct child *c)
{
    return &s->domains[c->kind->domain];
}

/* ---- stopping ---- */

static bool any_lives(const struct supervisor *s, bool workers_only)
{
    for (size_t i = 0; i < s->child_count; i++)
        if (child_lives(&s->children[i]) && !(workers_only && s->children[i].kind->owns_store))
            return true;
    return false;
}

static void ask_to_stop(struct supervisor *s, bool core_too, int64_t kill_at_ms)
{
    for (size_t i = 0; i < s->child_count; i++) {
        struct child *c = &s->children[i];
        if (core_too || !c->kind->owns_store)
            child_ask_to_stop(s, c, kill_at_ms);
    }
}

static void stop_in_order(struct supervisor *s)
{
    int64_t drain_ms = s->settings->runtime_drain_ms + SUPERVISOR_DRAIN_GRACE_MS;
    s->phase = STOP_WORKERS;
    s->phase_end_ms = now_ms() + drain_ms;
    notify_stopping(&s->notify, drain_ms + SUPERVISOR_CORE_STOP_MS + SUPERVISOR_DRAIN_GRACE_MS, now_ms());
    ask_to_stop(s, false, s->phase_end_ms);
}

static void stop_fast(struct supervisor *s, int exit_code)
{
    if (s->phase == STOP_FAST)
        return; /* the first reason counts */
    s->phase = STOP_FAST;
    s->exit_code = exit_code;
    notify_stopping(&s->notify, SUPERVISOR_FATAL_STOP_MS + SUPERVISOR_DRAIN_GRACE_MS, now_ms());
    ask_to_stop(s, true, now_ms() + SUPERVISOR_FATAL_STOP_MS);
}

static void kill_all(struct supervisor *s)
{
    stop_fast(s, s->exit_code);
    for (size_t i = 0; i < s->child_count; i++)
        child_kill(&s->children[i]);
}

/* What ps calls it; absent when it is gone already. */
static struct str process_name(uint32_t pid, char *out, size_t size)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size);
    if (fd >= 0)
        close(fd);
    struct str rest = {out, n > 0 ? (size_t)n : 0};
    return n > 0 ? str_cut(&rest, '\n') : STR_ABSENT;
}

/* Whoever started us may stop us. That somebody else did is what people look for afterwards, when all they
 * see is a server that has ended well: it is told at a level that nobody leaves out, and who it was. */
static void on_stop_signal(struct supervisor *s, const struct signalfd_siginfo *info)
{
    char name[32];
    bool by_another = info->ssi_pid && (pid_t)info->ssi_pid != getppid();
    log_line(by_another ? LOG_WARN : LOG_INFO, "stop_requested", "signal",
             LOG_TEXT(strsignal((int)info->ssi_signo)), "by_pid", LOG_INT(info->ssi_pid), "by_uid",
             LOG_INT(info->ssi_uid), "by", LOG_STR(process_name(info->ssi_pid, name, sizeof name)), "at_once",
             LOG_INT(s->phase != STOP_NO), NULL);
    if (s->phase == STOP_NO)
        stop_in_order(s);
    else
        kill_all(s);
}

static void advance_stop(struct supervisor *s)
{
    if (s->phase == STOP_WORKERS && (!any_lives(s, true) || now_ms() >= s->phase_end_ms)) {
        s->phase = STOP_CORE;
        for (size_t i = 0; i < s->child_count; i++)
            if (s->children[i].kind->owns_store)
                child_ask_to_stop(s, &s->children[i], now_ms() + SUPERVISOR_CORE_STOP_MS);
    }
}

/* ---- restarting ---- */

static void give_up(struct supervisor *s, const char *what, const char *how)
{
    const struct restart_window *w = &s->domains[DOMAIN_ROOT].window;
    log_line(LOG_ERROR, "root_gave_up", "component", LOG_TEXT("supervisor"), "failure_class",
             LOG_TEXT("fatal"), "domain", LOG_TEXT(domain_name(DOMAIN_ROOT)), "source_child", LOG_TEXT(what),
             "restart_count", LOG_INT(w->max_restarts), "window_s", LOG_INT(w->window_ms / 1000), "reason",
             LOG_TEXT(how), NULL);
    fprintf(stderr, "weir: %s failed (%s) after %u restarts within %lld s; giving up\n", what, how,
            w->max_restarts, (long long)(w->window_ms / 1000));
    stop_fast(s, EXIT_FAILURE);
}

/* What is left of the domain goes too; the whole comes back as one restart of root's (AT-03). */
static void end_domain(struct supervisor *s, const struct child *source, const char *how)
{
    enum domain_id id = source->kind->domain;
    struct domain *d = &s->domains[id];
    int64_t delay_ms;
    if (id == DOMAIN_ROOT) {
        give_up(s, source->name, how);
        return;
    }
    log_line(LOG_ERROR, "domain_ended", "component", LOG_TEXT("supervisor"), "failure_class",
             LOG_TEXT("fatal"), "domain", LOG_TEXT(domain_name(id)), "source_child", LOG_TEXT(source->name),
             "restart_count", LOG_INT(d->window.count), "window_s", LOG_INT(d->window.window_ms / 1000),
             "reason", LOG_TEXT(how), NULL);
    if (!restart_window_add(&s->domains[DOMAIN_ROOT].window, now_ms(), &delay_ms)) {
        give_up(s, domain_name(id), how);
        return;
    }
    d->state = DOMAIN_ENDED;
    d->restart_at_ms = now_ms() + delay_ms;
    int64_t kill_at_ms = now_ms() + s->settings->runtime_drain_ms + SUPERVISOR_DRAIN_GRACE_MS;
    for (size_t i = 0; i < s->child_count; i++)
        if (s->children[i].kind->domain == id)
            child_ask_to_stop(s, &s->children[i], kill_at_ms);
}

/* The child is gone, or there was no process to be had for it. */
static void restart_child(struct supervisor *s, struct child *c, const char *how)
{
    int64_t delay_ms;
    if (domain_of(s, c)->state == DOMAIN_ENDED)
        return; /* comes back with its domain */
    if (!restart_window_add(&domain_of(s, c)->window, now_ms(), &delay_ms)) {
        end_domain(s, c, how);
        return;
    }
    c->state = CHILD_BACKOFF;
    c->act_at_ms = now_ms() + delay_ms;
}

static void start_child(struct supervisor *s, struct child *c)
{
    if (child_start(s, c, now_ms()))
        return;
    log_line(LOG_ERROR, "process_not_started", "name", LOG_TEXT(c->name), "reason", LOG_TEXT(strerror(errno)),
             NULL);
    restart_child(s, c, "cannot fork");
}

static void on_child_end(struct supervisor *s, struct child *c, int status)
{
    char how[64];
    child_end_text(status, how, sizeof how);
    bool asked = c->state == CHILD_STOPPING;
    log_line(asked ? LOG_INFO : LOG_WARN, "process_ended", "name", LOG_TEXT(c->name), "pid", LOG_INT(c->pid),
             "reason", LOG_TEXT(how), "failure_class", asked ? LOG_STR(STR_ABSENT) : LOG_TEXT("recoverable"),
             "uptime_ms", LOG_INT(now_ms() - c->started_ms), NULL);
    child_gone(s, c);
    if (s->phase != STOP_NO)
        return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == PROCESS_EXIT_CONFIG) {
        fprintf(stderr, "weir: %s cannot run with this configuration (see above); stopping\n", c->name);
        stop_fast(s, PROCESS_EXIT_CONFIG);
        return;
    }
    restart_child(s, c, how);
}

static void reap(struct supervisor *s)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (size_t i = 0; i < s->child_count; i++)
            if (s->children[i].pid == pid)
                on_child_end(s, &s->children[i], status);
}

/* ---- what is due ---- */

static void act_on_child(struct supervisor *s, struct child *c)
{
    if (c->state == CHILD_STARTING && !c->slow_reported &&
        now_ms() >= c->started_ms + SUPERVISOR_READY_WARN_MS) {
        c->slow_reported = true;
        log_line(LOG_WARN, "process_not_ready", "name", LOG_TEXT(c->name), "pid", LOG_INT(c->pid),
                 "waited_ms", LOG_INT(now_ms() - c->started_ms), NULL);
    }
    if (now_ms() < c->act_at_ms)
        return;
    if (c->state == CHILD_BACKOFF) {
        start_child(s, c);
    } else if (c->state == CHILD_STOPPING) {
        log_line(LOG_WARN, "process_killed", "name", LOG_TEXT(c->name), "pid", LOG_INT(c->pid), NULL);
        child_kill(c);
    }
}

static bool domain_lives(const struct supervisor *s, enum domain_id id)
{
    for (size_t i = 0; i < s->child_count; i++)
        if (s->children[i].kind->domain == id && child_lives(&s->children[i]))
            return true;
    return false;
}

static void act_on_domain(struct supervisor *s, enum domain_id id)
{
    struct domain *d = &s->domains[id];
    if (restart_window_slide(&d->window, now_ms()))
        s->changed = true;
    if (d->state != DOMAIN_ENDED || s->phase != STOP_NO || now_ms() < d->restart_at_ms || domain_lives(s, id))
        return;
    log_line(LOG_WARN, "domain_restarted", "domain", LOG_TEXT(domain_name(id)), NULL);
    d->state = DOMAIN_RUNNING;
    restart_window_clear(&d->window);
    for (size_t i = 0; i < s->child_count; i++)
        if (s->children[i].kind->domain == id)
            start_child(s, &s->children[i]);
}

static void act_on_what_is_due(struct supervisor *s)
{
    advance_stop(s);
    for (size_t i = 0; i < s->child_count; i++)
        act_on_child(s, &s->children[i]);
    for (enum domain_id id = 0; id < DOMAIN_COUNT; id++)
        act_on_domain(s, id);
}

/* ---- the service manager ---- */

/* What root knows of its children's loops: that core is there. One that stops is held to its time by root. */
static bool all_loops_beat(const struct supervisor *s)
{
    for (size_t i = 0; i < s->child_count; i++)
        if (s->children[i].kind->owns_store && !child_lives(&s->children[i]))
            return s->phase != STOP_NO;
    return true;
}

static void tell_manager(struct supervisor *s)
{
    size_t running = 0;
    for (size_t i = 0; i < s->child_count; i++)
        running += s->children[i].state == CHILD_RUNNING;
    notify_status(&s->notify, "%zu of %zu processes ready%s", running, s->child_count,
                  s->phase == STOP_NO ? "" : "; stopping");
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int poll_timeout_ms(const struct supervisor *s)
{
    int64_t due = s->phase == STOP_WORKERS ? s->phase_end_ms : INT64_MAX;
    due = sooner(due, notify_next_ms(&s->notify));
    for (size_t i = 0; i < s->child_count; i++) {
        const struct child *c = &s->children[i];
        due = sooner(due, c->act_at_ms);
        if (c->state == CHILD_STARTING && !c->slow_reported)
            due = sooner(due, c->started_ms + SUPERVISOR_READY_WARN_MS);
    }
    for (enum domain_id id = 0; id < DOMAIN_COUNT; id++) {
        due = sooner(due, restart_window_next_slide(&s->domains[id].window));
        if (s->domains[id].state == DOMAIN_ENDED && !domain_lives(s, id) && s->phase == STOP_NO)
            due = sooner(due, s->domains[id].restart_at_ms);
    }
    if (due == INT64_MAX)
        return -1;
    int64_t left = due - now_ms();
    return left <= 0 ? 0 : (int)sooner(left, INT_MAX);
}

/* ---- events ---- */

static void on_signals(struct supervisor *s)
{
    struct signalfd_siginfo info;
    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            reap(s);
        else
            on_stop_signal(s, &info);
    }
}

static void on_ready(struct supervisor *s, const struct child *c)
{
    log_line(LOG_INFO, "process_ready", "name", LOG_TEXT(c->name), "pid", LOG_INT(c->pid), "after_ms",
             LOG_INT(now_ms() - c->started_ms), NULL);
    if (!c->kind->owns_store || s->core_was_ready || s->phase != STOP_NO)
        return;
    s->core_was_ready = true;
    for (size_t i = 0; i < s->child_count; i++)
        if (s->children[i].state == CHILD_WAITING)
            start_child(s, &s->children[i]);
    notify_ready(&s->notify, now_ms());
    if (s->config->on_ready)
        s->config->on_ready(s->config->on_ready_self);
}

static void wait_for_events(struct supervisor *s, struct pollfd *fds)
{
    fds[0] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
    for (size_t i = 0; i < s->child_count; i++)
        fds[i + 1] = (struct pollfd){.fd = s->children[i].ready_fd, .events = POLLIN};
    if (poll(fds, s->child_count + 1, poll_timeout_ms(s)) <= 0)
        return;
    for (size_t i = 0; i < s->child_count; i++)
        if (fds[i + 1].revents && child_read_ready(s, &s->children[i]))
            on_ready(s, &s->children[i]);
    if (fds[0].revents)
        on_signals(s);
}

static void run(struct supervisor *s)
{
    struct pollfd *fds = must_alloc((s->child_count + 1) * sizeof *fds);
    for (size_t i = 0; i < s->child_count; i++)
        if (s->children[i].kind->owns_store)
            start_child(s, &s->children[i]);
    while (s->phase == STOP_NO || any_lives(s, false)) {
        act_on_what_is_due(s);
        if (s->changed) {
            topology_write(s);
            tell_manager(s);
        }
        notify_watchdog(&s->notify, all_loops_beat(s), now_ms());
        wait_for_events(s, fds);
    }
    topology_write(s);
    free(fds);
}

/* ---- start and end of root itself ---- */

static void signals_open(struct supervisor *s)
{
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT};
    sigset_t handled;
    sigemptyset(&handled);
    for (size_t i = 0; i < LENGTH_OF(numbers); i++) {
        sigaddset(&handled, numbers[i]);
        signal(numbers[i], SIG_DFL); /* whoever started us may have ignored them */
    }
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    MUST(sigprocmask(SIG_BLOCK, &handled, &s->outer_mask) == 0);
    for (size_t i = 0; i < LENGTH_OF(numbers); i++)
        sigdelset(&s->outer_mask, numbers[i]); /* children always hear them */
    s->signal_fd = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    MUST(s->signal_fd >= 0);
}

static enum err_code paths_make(struct supervisor *s, struct err *err)
{
    const char *dir = s->settings->data_dir;
    int n = snprintf(s->socket_path, sizeof s->socket_path, "%s/core.sock", dir);
    if (n < 0 || (size_t)n >= sizeof((struct sockaddr_un *)0)->sun_path)
        return err_set(err, ERR_CONFIG_INVALID,
                       "data: the path is too long by %d bytes for the socket core.sock in it",
                       n + 1 - (int)sizeof((struct sockaddr_un *)0)->sun_path);
    snprintf(s->topology_path, sizeof s->topology_path, "%s/topology.json", dir);
    return data_dir_create(dir, err);
}

int supervisor_run(const struct supervisor_config *config)
{
    struct supervisor *s = must_alloc(sizeof *s);
    struct err err = {0};
    s->config = config;
    s->settings = config->settings;
    s->pid = getpid();
    int64_t orphan_wait_ms = s->settings->runtime_drain_ms + SUPERVISOR_DRAIN_GRACE_MS;
    if (paths_make(s, &err) || data_lock_take(s->settings->data_dir, orphan_wait_ms, &s->lock_fd, &err)) {
        fprintf(stderr, "weir: %s\n", err.detail);
        free(s);
        return EXIT_FAILURE;
    }
    log_process("root");
    notify_open(&s->notify, now_ms());
    process_title_prepare(config->argc, config->argv);
    signals_open(s);
    for (enum domain_id id = 0; id < DOMAIN_COUNT; id++) {
        struct domain_limits limits = domain_limits(id, s->settings);
        restart_window_init(&s->domains[id].window, limits.max_restarts, limits.window_seconds);
    }
    children_create(s);
    sandbox_log(s->settings);
    if (sandbox_enter(SANDBOX_ROOT, s->settings, &err) == ERR_OK)
        run(s);
    else
        fprintf(stderr, "weir: %s\n", err.detail);
    int exit_code = err.code == ERR_OK ? s->exit_code : PROCESS_EXIT_CONFIG;
    log_line(LOG_INFO, "stopped", "exit_code", LOG_INT(exit_code), NULL);
    close(s->signal_fd);
    notify_close(&s->notify);
    data_lock_release(s->lock_fd);
    free(s->children);
    free(s);
    return exit_code;
}
