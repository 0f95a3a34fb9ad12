/* runtime/supervisor_internal.h - root's memory. supervisor.c is the loop, supervisor_restart.c decides about
 * what failed, supervisor_stop.c about the stop, supervisor_children.c acts on processes, topology_file.c
 * tells. Times in _ms are of the clock that only goes forward. */
#ifndef WEIR_RUNTIME_SUPERVISOR_INTERNAL_H
#define WEIR_RUNTIME_SUPERVISOR_INTERNAL_H

#include <limits.h>
#include <signal.h>

#include "base/clock.h"
#include "base/str.h"
#include "runtime/heartbeat.h"
#include "runtime/notify.h"
#include "runtime/supervision.h"
#include "runtime/supervisor.h"

/* X(id, name in topology.json) */
#define CHILD_STATES(X)                                                                                      \
    X(WAITING, "waiting")   /* for core to be ready */                                                       \
    X(RESTING, "resting")   /* until it is asked for */                                                      \
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
    int64_t asked_ms; /* of STOPPING: when it was asked */
    uint64_t asks;    /* for it, when it was started last */
    size_t page;      /* its place in the pages; root has the first */
    bool was_ready;   /* once, under this root: its configuration is good */
    bool slow_reported;
    int64_t stopped_since_ms;      /* seen stopped by a signal; 0: running */
    bool hung, disk_wait_reported; /* killed for its silence; not killed because of a disk */
};

enum { ASKS_LOOK_MS = 500 }; /* how long a process on demand may take to begin */

enum domain_state { DOMAIN_RUNNING, DOMAIN_ENDED };

struct domain {
    struct supervision supervision;
    enum domain_state state;
    int64_t restart_at_ms; /* of an ended domain, once its last process is gone */
};

/* Order of a stop. STOP_FAST goes to all at once. */
/* X(id, name in the log) */
#define STOP_PHASES(X) X(NO, "none") X(WORKERS, "workers") X(CORE, "core") X(FAST, "fast")
#define X(id, name)    STOP_##id,
enum stop_phase { STOP_PHASES(X) STOP_PHASE_COUNT };
#undef X

struct supervisor {
    const struct supervisor_config *config;
    const struct settings *settings;
    struct child *children;
    size_t child_count;
    struct domain domains[DOMAIN_COUNT];
    enum stop_phase phase;
    int64_t phase_began_ms, phase_end_ms, stop_began_ms;
    int exit_code;
    struct cascade_watch cascades;
    struct heart_page *pages; /* root's, then one a child */
    int64_t hearts_look_ms;   /* when the hearts are looked at next */
    int64_t hearts_grace_ms;  /* no child counts as silent before */
    bool core_was_ready;
    bool changed; /* topology.json is behind */
    bool topology_failed;
    int signal_fd, lock_fd;
    struct notify notify;
    sigset_t outer_mask;
    pid_t pid;
    char socket_path[PATH_MAX], topology_path[PATH_MAX];
};

static inline int64_t root_now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

static inline size_t page_count(const struct supervisor *s)
{
    return s->child_count + 1;
}

static inline bool child_lives(const struct child *c)
{
    return c->pid != 0;
}

/* supervisor_restart.c */
void start_child(struct supervisor *s, struct child *c);
void start_or_wait_for_demand(struct supervisor *s, struct child *c); /* the first time */
void start_if_asked(struct supervisor *s, struct child *c);
void child_ended(struct supervisor *s, struct child *c, int status);
void act_on_domain(struct supervisor *s, enum domain_id id);
bool domain_lives(const struct supervisor *s, enum domain_id id);
/* Kills what is silent, every so often; the time of the next look is in s->hearts_look_ms. */
void look_at_hearts(struct supervisor *s);
/* Core is there, and no loop of any process is silent: the answer for the watchdog of the service manager. */
bool hearts_beat(const struct supervisor *s);
int64_t hearts_interval_ms(const struct supervisor *s); /* 0: there is no watchdog */

/* supervisor_stop.c */
struct signalfd_siginfo;
void stop_on_signal(struct supervisor *s, const struct signalfd_siginfo *info);
void stop_fast(struct supervisor *s, int exit_code);
void stop_advance(struct supervisor *s);
void stop_over(struct supervisor *s);
bool any_lives(const struct supervisor *s, bool workers_only);

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
void topology_file_write(struct supervisor *s);

#endif
