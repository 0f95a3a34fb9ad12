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

/* ---- what is due ---- */

static void act_on_child(struct supervisor *s, struct child *c)
{
    if (c->state == CHILD_STARTING && !c->slow_reported &&
        root_now_ms() >= c->started_ms + SUPERVISOR_READY_WARN_MS) {
        c->slow_reported = true;
        log_line(LOG_WARN, "process_not_ready", "name", LOG_TEXT(c->name), "pid", LOG_INT(c->pid),
                 "waited_ms", LOG_INT(root_now_ms() - c->started_ms), NULL);
    }
    if (root_now_ms() < c->act_at_ms)
        return;
    if (c->state == CHILD_RESTING) {
        start_if_asked(s, c);
    } else if (c->state == CHILD_BACKOFF) {
        start_child(s, c);
    } else if (c->state == CHILD_STOPPING) {
        log_line(LOG_WARN, "process_killed", "name", LOG_TEXT(c->name), "pid", LOG_INT(c->pid), NULL);
        child_kill(c);
    }
}

static void reap(struct supervisor *s)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (size_t i = 0; i < s->child_count; i++)
            if (s->children[i].pid == pid)
                child_ended(s, &s->children[i], status);
}

static void act_on_what_is_due(struct supervisor *s)
{
    stop_advance(s);
    look_at_hearts(s);
    for (size_t i = 0; i < s->child_count; i++)
        act_on_child(s, &s->children[i]);
    for (enum domain_id id = 0; id < DOMAIN_COUNT; id++)
        act_on_domain(s, id);
}

/* ---- the service manager ---- */

static void tell_manager(struct supervisor *s)
{
    size_t running = 0, wanted = 0; /* a process on demand is not waited for */
    for (size_t i = 0; i < s->child_count; i++) {
        running += s->children[i].state == CHILD_RUNNING;
        wanted += s->children[i].state != CHILD_RESTING;
    }
    notify_status(&s->notify, "%zu of %zu processes ready%s", running, wanted,
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
    if (hearts_interval_ms(s) && s->phase == STOP_NO)
        due = sooner(due, s->hearts_look_ms);
    for (enum domain_id id = 0; id < DOMAIN_COUNT; id++) {
        due = sooner(due, restart_window_next_slide(&s->domains[id].supervision.window));
        if (s->domains[id].state == DOMAIN_ENDED && !domain_lives(s, id) && s->phase == STOP_NO)
            due = sooner(due, s->domains[id].restart_at_ms);
    }
    if (due == INT64_MAX)
        return -1;
    int64_t left = due - root_now_ms();
    return left <= 0 ? 0 : (int)sooner(left, INT_MAX);
}

/* ---- events ---- */

static void reload(struct supervisor *s)
{
    log_line(LOG_INFO, "reload_requested", NULL);
    for (size_t i = 0; i < s->child_count; i++)
        if (s->children[i].kind->owns_store && child_lives(&s->children[i]))
            (void)kill(s->children[i].pid, SIGHUP);
}

static void on_signals(struct supervisor *s)
{
    struct signalfd_siginfo info;
    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            reap(s);
        else if (info.ssi_signo == SIGHUP)
            reload(s);
        else
            stop_on_signal(s, &info);
    }
}

static void on_ready(struct supervisor *s, const struct child *c)
{
    log_line(LOG_INFO, "process_ready", "name", LOG_TEXT(c->name), "pid", LOG_INT(c->pid), "after_ms",
             LOG_INT(root_now_ms() - c->started_ms), NULL);
    if (!c->kind->owns_store || s->core_was_ready || s->phase != STOP_NO)
        return;
    s->core_was_ready = true;
    for (size_t i = 0; i < s->child_count; i++)
        if (s->children[i].state == CHILD_WAITING)
            start_or_wait_for_demand(s, &s->children[i]);
    notify_ready(&s->notify, root_now_ms());
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
            topology_file_write(s);
            tell_manager(s);
        }
        notify_watchdog(&s->notify, hearts_beat(s), root_now_ms());
        wait_for_events(s, fds);
    }
    topology_file_write(s);
    free(fds);
}

/* ---- start and end of root itself ---- */

static void signals_open(struct supervisor *s)
{
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
    sigset_t handled;
    sigemptyset(&handled);
    for (size_t i = 0; i < LENGTH_OF(numbers); i++) {
        sigaddset(&handled, numbers[i]);
        signal(numbers[i], SIG_DFL); /* the parent may have ignored them */
    }
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

static enum err_code open_all(struct supervisor *s, struct err *err)
{
    int64_t orphan_wait_ms = s->settings->runtime_drain_ms + SUPERVISOR_DRAIN_GRACE_MS;
    if (paths_make(s, err) != ERR_OK ||
        data_lock_take(s->settings->data_dir, orphan_wait_ms, &s->lock_fd, err) != ERR_OK)
        return err->code;
    children_create(s);
    s->pages = heartbeat_pages_new(page_count(s));
    if (!s->pages)
        return err_set(err, ERR_INTERNAL, "no memory for the heartbeats: %s", strerror(errno));
    heart_use(s->pages, page_count(s), 0, HEART_INTERVAL_MS);
    return ERR_OK;
}

static void close_all(struct supervisor *s)
{
    data_lock_release(s->lock_fd);
    free(s->children);
    free(s);
}

int supervisor_run(const struct supervisor_config *config)
{
    struct supervisor *s = must_alloc(sizeof *s);
    struct err err = {0};
    s->config = config;
    s->settings = config->settings;
    s->pid = getpid();
    s->lock_fd = -1;
    log_process("root");
    if (open_all(s, &err) != ERR_OK) {
        log_say("%s", err.detail);
        failure_boot_config_invalid("root", err.detail, "data_directory");
        close_all(s);
        return EXIT_FAILURE;
    }
    notify_open(&s->notify, root_now_ms());
    process_title_prepare(config->argc, config->argv);
    signals_open(s);
    for (enum domain_id id = 0; id < DOMAIN_COUNT; id++)
        supervision_init(&s->domains[id].supervision, id, domain_limits(id, s->settings));
    sandbox_log(s->settings);
    if (sandbox_enter(SANDBOX_ROOT, s->settings, &err) == ERR_OK) {
        run(s);
    } else {
        log_say("%s", err.detail);
        failure_boot_config_invalid("root", err.detail, "sandbox");
    }
    int exit_code = err.code == ERR_OK ? s->exit_code : PROCESS_EXIT_CONFIG;
    stop_over(s);
    close(s->signal_fd);
    notify_close(&s->notify);
    close_all(s);
    return exit_code;
}
