/* One child at a time: start it, hear that it is ready, ask it to stop, kill it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "runtime/process_title.h"
#include "runtime/sandbox.h"
#include "runtime/scratch_file.h"
#include "runtime/supervisor_internal.h"

#include "base/banned.h"

void children_create(struct supervisor *s)
{
    for (enum process_id id = 0; id < PROCESS_COUNT; id++)
        s->child_count += (size_t)process_instances(id, s->settings);
    s->children = must_alloc(s->child_count * sizeof *s->children);
    struct child *c = s->children;
    for (enum process_id id = 0; id < PROCESS_COUNT; id++) {
        int64_t count = process_instances(id, s->settings);
        for (int i = 1; i <= count; i++, c++) {
            *c = (struct child){.kind = &process_kinds[id],
                                .instance = i,
                                .ready_fd = -1,
                                .page = (size_t)(c - s->children) + 1,
                                .state = CHILD_WAITING,
                                .act_at_ms = INT64_MAX};
            if (c->kind->owns_store)
                snprintf(c->name, sizeof c->name, "%s", c->kind->name);
            else
                snprintf(c->name, sizeof c->name, "%s %d", c->kind->name, i);
        }
    }
}

/* Descriptors of root that are none of this child's business. Only the owner of the store keeps the
 * lock: a runner that is still draining must not keep a new start away. */
static void close_what_is_roots(const struct supervisor *s, const struct child *c)
{
    close(s->signal_fd);
    if (s->notify.fd >= 0)
        close(s->notify.fd);
    for (size_t i = 0; i < s->child_count; i++)
        if (s->children[i].ready_fd >= 0)
            close(s->children[i].ready_fd);
    if (!c->kind->owns_store) {
        close(s->lock_fd);
        close(s->config->secrets_fd);
    }
}

/* Before the first thread: Landlock holds only for threads that begin inside it. */
static void enter_sandbox(const struct supervisor *s, const char *name, enum sandbox_id sandbox)
{
    struct err err;
    if (sandbox_enter(sandbox, s->settings, &err) == ERR_OK)
        return;
    log_say("%s", err.detail);
    failure_boot_config_invalid(name, err.detail, "sandbox");
    _exit(PROCESS_EXIT_CONFIG);
}

static _Noreturn void run_child(const struct supervisor *s, const struct child *c, int ready_fd)
{
    /* A group of its own, so that Ctrl-C reaches root alone and the order of the stop is kept. */
    setpgid(0, 0);
    /* Of a root that dies: core closes its store, the others have nothing to lose and no core to report to.
     * One that is stopped hears nothing but SIGKILL. */
    prctl(PR_SET_PDEATHSIG, c->kind->owns_store ? SIGTERM : SIGKILL);
    if (getppid() != s->pid)
        _exit(0); /* root died before the line above */
    close_what_is_roots(s, c);
    char title[32];
    snprintf(title, sizeof title, "weir: %s", c->name);
    process_title_set(title);
    log_process(c->name);
    int64_t beat_ms = hearts_interval_ms(s);
    heart_use(s->pages, page_count(s), c->page, beat_ms ? beat_ms : HEART_INTERVAL_MS);
    heartbeat_keep_own(s->pages, page_count(s), c->page);
    enum sandbox_id sandbox = sandbox_of(c->kind->id, s->settings);
    int scratch_fd = sandbox == SANDBOX_RUNNER ? scratch_file_open() : -1;
    enter_sandbox(s, c->name, sandbox);
    log_background(); /* a child forks no more */
    struct process_start start = {
        .settings = s->settings,
        .kind = c->kind,
        .instance = c->instance,
        .name = c->name,
        .data_dir = s->settings->data_dir,
        .socket_path = s->socket_path,
        .topology_path = s->topology_path,
        .root_pid = s->pid,
        .was_ready = c->was_ready,
        .accept_loss = s->config->accept_loss,
        .ready_fd = ready_fd,
        .lock_fd = c->kind->owns_store ? s->lock_fd : -1,
        .secrets_fd = c->kind->owns_store ? s->config->secrets_fd : -1,
        .scratch_fd = scratch_fd,
    };
    process_signals_install(&start);
    sigprocmask(SIG_SETMASK, &s->outer_mask, NULL); /* signals that came meanwhile are delivered now */
    exit(s->config->run(&start));
}

bool child_start(struct supervisor *s, struct child *c, int64_t now_ms)
{
    MUST(!child_lives(c) && c->ready_fd < 0);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    heartbeat_clear(&s->pages[c->page]);
    fflush(NULL); /* or the child would print what root has buffered once more */
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        run_child(s, c, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    c->pid = pid;
    c->ready_fd = ends[0];
    c->state = CHILD_STARTING;
    c->act_at_ms = INT64_MAX;
    c->slow_reported = c->hung = c->disk_wait_reported = false;
    c->stopped_since_ms = 0;
    c->started_ms = now_ms;
    c->restarts += c->started_wall_us != 0;
    c->started_wall_us = clock_wall_us(&clock_system);
    s->changed = true;
    log_line(LOG_INFO, "process_started", "name", LOG_TEXT(c->name), "pid", LOG_INT(pid), "restarts",
             LOG_INT(c->restarts), NULL);
    return true;
}

void child_ask_to_stop(struct supervisor *s, struct child *c, int64_t kill_at_ms)
{
    s->changed = true;
    if (!child_lives(c)) {
        c->state = CHILD_STOPPED;
        c->act_at_ms = INT64_MAX;
        return;
    }
    kill(c->pid, SIGTERM);
    c->state = CHILD_STOPPING;
    c->asked_ms = root_now_ms();
    c->act_at_ms = kill_at_ms;
}

void child_kill(struct child *c)
{
    c->act_at_ms = INT64_MAX;
    if (child_lives(c))
        kill(c->pid, SIGKILL);
}

bool child_read_ready(struct supervisor *s, struct child *c)
{
    char byte;
    ssize_t n = read(c->ready_fd, &byte, 1);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    close(c->ready_fd);
    c->ready_fd = -1;
    if (n != 1 || c->state != CHILD_STARTING)
        return false;
    c->state = CHILD_RUNNING;
    c->was_ready = true;
    s->changed = true;
    return true;
}

void child_gone(struct supervisor *s, struct child *c)
{
    if (c->ready_fd >= 0)
        close(c->ready_fd);
    c->ready_fd = -1;
    c->pid = 0;
    c->state = CHILD_STOPPED;
    c->act_at_ms = INT64_MAX;
    s->changed = true;
}

void child_end_text(int status, char *out, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(out, size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(out, size, "exit status %d", WEXITSTATUS(status));
}
