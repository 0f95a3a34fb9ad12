/* The stop, in order: everything but the owner of the store, then the owner; and the log lines of it. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "runtime/supervisor_internal.h"

#include "base/banned.h"

static const char *phase_name(enum stop_phase phase)
{
    static const char *const names[] = {
#define X(id, name) [STOP_##id] = name,
        STOP_PHASES(X)
#undef X
    };
    return names[phase];
}

bool any_lives(const struct supervisor *s, bool workers_only)
{
    for (size_t i = 0; i < s->child_count; i++)
        if (child_lives(&s->children[i]) && !(workers_only && s->children[i].kind->owns_store))
            return true;
    return false;
}

static int64_t count_living(const struct supervisor *s)
{
    int64_t count = 0;
    for (size_t i = 0; i < s->child_count; i++)
        count += child_lives(&s->children[i]);
    return count;
}

static void tell_phase_over(const struct supervisor *s)
{
    if (s->phase != STOP_NO)
        log_line(LOG_INFO, "stop_phase_over", "phase", LOG_TEXT(phase_name(s->phase)), "duration_ms",
                 LOG_INT(root_now_ms() - s->phase_began_ms), "processes", LOG_INT(count_living(s)), NULL);
}

static void enter(struct supervisor *s, enum stop_phase phase, int64_t limit_ms)
{
    tell_phase_over(s);
    if (s->phase == STOP_NO)
        s->stop_began_ms = root_now_ms();
    s->phase = phase;
    s->phase_began_ms = root_now_ms();
    s->phase_end_ms = s->phase_began_ms + limit_ms;
    log_line(LOG_INFO, "stop_phase", "phase", LOG_TEXT(phase_name(phase)), "limit_ms", LOG_INT(limit_ms),
             "processes", LOG_INT(count_living(s)), NULL);
}

static void ask(struct supervisor *s, bool workers, bool core)
{
    for (size_t i = 0; i < s->child_count; i++) {
        struct child *c = &s->children[i];
        if (c->kind->owns_store ? core : workers)
            child_ask_to_stop(s, c, s->phase_end_ms);
    }
}

static void stop_in_order(struct supervisor *s)
{
    int64_t drain_ms = s->settings->runtime_drain_ms + SUPERVISOR_DRAIN_GRACE_MS;
    enter(s, STOP_WORKERS, drain_ms);
    notify_stopping(&s->notify, drain_ms + SUPERVISOR_CORE_STOP_MS + SUPERVISOR_DRAIN_GRACE_MS,
                    root_now_ms());
    ask(s, true, false);
}

void stop_fast(struct supervisor *s, int exit_code)
{
    if (s->phase == STOP_FAST)
        return; /* the first reason counts */
    enter(s, STOP_FAST, SUPERVISOR_FATAL_STOP_MS);
    notify_stopping(&s->notify, SUPERVISOR_FATAL_STOP_MS + SUPERVISOR_DRAIN_GRACE_MS, root_now_ms());
    s->exit_code = exit_code;
    ask(s, true, true);
}

static void kill_all(struct supervisor *s)
{
    stop_fast(s, s->exit_code);
    for (size_t i = 0; i < s->child_count; i++)
        child_kill(&s->children[i]);
}

/* The name that ps shows; absent when the process is gone already. */
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

/* A signal of the parent is expected. A stop by another process is logged at a level that is never left out,
 * with the sender: people look for the cause when all they see is a server that ended well. */
void stop_on_signal(struct supervisor *s, const struct signalfd_siginfo *info)
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

void stop_advance(struct supervisor *s)
{
    if (s->phase == STOP_WORKERS && (!any_lives(s, true) || root_now_ms() >= s->phase_end_ms)) {
        enter(s, STOP_CORE, SUPERVISOR_CORE_STOP_MS);
        ask(s, false, true);
    }
}

void stop_over(struct supervisor *s)
{
    tell_phase_over(s);
    log_line(LOG_INFO, "stopped", "exit_code", LOG_INT(s->exit_code), "duration_ms",
             LOG_INT(root_now_ms() - s->stop_began_ms), NULL);
}
