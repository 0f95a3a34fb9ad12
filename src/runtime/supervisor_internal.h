/* runtime/supervisor_internal.h - root's memory. supervisor.c decides, supervisor_children.c acts
 * on processes, topology_file.c tells. Times in _ms are of the clock that only goes forward. */
#ifndef WEIR_RUNTIME_SUPERVISOR_INTERNAL_H
#define WEIR_RUNTIME_SUPERVISOR_INTERNAL_H

#include <limits.h>
#include <signal.h>

#include "base/str.h"
#include "runtime/notify.h"
#include "runtime/restart_window.h"
#include "runtime/supervisor.h"

/* X(id, name in topology.json) */
#define CHILD_STATES(X)                                                                                      \
    X(WAITING, "waiting")   /* for core to be ready */                                                       \
    X(STARTING, "starting") /* runs, has not said ready */                                                   \
    X(RUNNING, "running")                                                                                    \
    X(BACKOFF, "backoff")   /* will start at act_at_ms */                                                    \
    X(STOPPING, "stopping") /* was asked to leave; is killed at act_at_ms */                                 \
    X(STOPPED, "stopped")

#define X(id, name) CHILD_##id,
enum child_state { CHILD_STATES(X) CHILD_STATE_COUNT };
#undef X

struct child {
    const struct process_kind *kind;
    int instance;
    char name[24];
    enum child_state state;
    pid_t pid;         /* 0: no process */
    int ready_fd;      /* -1: said ready, or no process */
    int64_t act_at_ms; /* see the states; INT64_MAX: nothing to do */
    int64_t started_ms, started_wall_us;
    int64_t restarts;
    bool slow_reported;
};

enum domain_state { DOMAIN_RUNNING, DOMAIN_ENDED };

struct domain {
    struct restart_window window;
    enum domain_state state;
    int64_t restart_at_ms; /* of an ended domain, once its last process is gone */
};

/* Order of a stop. STOP_FAST goes to everybody at once. */
enum stop_phase { STOP_NO, STOP_WORKERS, STOP_CORE, STOP_FAST };

struct supervisor {
    const struct supervisor_config *config;
    const struct settings *settings;
    struct child *children;
    size_t child_count;
    struct domain domains[DOMAIN_COUNT];
    enum stop_phase phase;
    int64_t phase_end_ms;
    int exit_code;
    bool core_was_ready;
    bool changed; /* topology.json is behind */
    bool topology_failed;
    int signal_fd, lock_fd;
    struct notify notify;
    sigset_t outer_mask;
    pid_t pid;
    char socket_path[PATH_MAX], topology_path[PATH_MAX];
};

static inline bool child_lives(const struct child *c)
{
    return c->pid != 0;
}

/* supervisor_children.c */
void children_create(struct supervisor *s);
/* False when there is no process to be had (fork or pipe failed). Does not return in the child. */
bool child_start(struct supervisor *s, struct child *c, int64_t now_ms);
void child_ask_to_stop(struct supervisor *s, struct child *c, int64_t kill_at_ms);
void child_kill(struct child *c);
/* True when it has just said ready. */
bool child_read_ready(struct supervisor *s, struct child *c);
void child_gone(struct supervisor *s, struct child *c);
/* "exit status 3", "signal 11 (Segmentation fault)" */
void child_end_text(int status, char *out, size_t size);

/* topology_file.c */
const char *child_state_name(enum child_state state);
void topology_write(struct supervisor *s);

#endif
