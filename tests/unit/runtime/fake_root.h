/* fake_root.h - a real supervisor in a process of its own, over children that do as a test says.
 *
 * Children report what happens to them through a pipe, so a test waits for events and never sleeps.
 * Every wait is bounded and fails the test when it is over. */
#ifndef WEIR_TESTS_FAKE_ROOT_H
#define WEIR_TESTS_FAKE_ROOT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/supervisor.h"

enum fake_plan {
    FAKE_SERVE,       /* ready, then leave when asked */
    FAKE_NEVER_READY, /* leave when asked, but never say ready */
    FAKE_DIE,         /* exit with `exit_code` at once */
    FAKE_DIE_UNTIL,   /* die on the first `deaths` starts, then serve */
    FAKE_DIE_LATER,   /* serve on the first start, die on the next `deaths`, then serve again */
    FAKE_WAIT_GATE,   /* ready; when asked to leave, wait for fake_open_gate() first */
    FAKE_HANG,        /* ready, then deaf to SIGTERM */
    FAKE_STILL,       /* ready, beats once and never again; leaves when asked */
    FAKE_DISK,        /* the same, but says that it waits for a disk */
    FAKE_HELD,        /* the same, but the kernel holds it in state D */
};

struct fake_plans {
    enum fake_plan core, runner;
    enum fake_plan runner_1; /* of the first runner, when it differs from FAKE_SERVE */
    int exit_code, deaths;
};

enum fake_event_type { EVENT_STARTED = 1, EVENT_ASKED_TO_STOP, EVENT_ON_READY };

struct fake_event {
    enum fake_event_type type;
    enum process_id kind;
    int instance;
    pid_t pid;
    int64_t at_ms;
};

struct fake_root {
    struct settings settings;
    struct fake_plans plans;
    process_main_fn *run;    /* the children's main function instead of a plan; NULL: a plan */
    char base[64], data[96]; /* data directory, inside a temporary one */
    bool stderr_stuck;       /* a pipe that is full and that nobody reads */
    pid_t pid;
    int events, gate[2];
};

enum { FAKE_WAIT_MS = 15000 };

void fake_open(struct fake_root *f); /* defaults, temporary directory */
void fake_set(struct fake_root *f, const char *key, const char *value);
void fake_start(struct fake_root *f); /* forks the root */
void fake_close(struct fake_root *f); /* kills what is left, cleans up */
void fake_open_gate(struct fake_root *f);

/* The next event; fails after FAKE_WAIT_MS. */
struct fake_event fake_next(struct fake_root *f);
/* False when no event comes for `quiet_ms`. */
bool fake_next_within(struct fake_root *f, int64_t quiet_ms, struct fake_event *ret_event);
/* Skips events until one of this kind comes. instance 0: any. */
struct fake_event fake_await(struct fake_root *f, enum fake_event_type type, enum process_id kind,
                             int instance);
int fake_await_exit(struct fake_root *f); /* exit code of the root, or 1000 + signal */
bool fake_gone_within(pid_t pid, int64_t wait_ms);
/* Waits until topology.json holds `part`. */
void fake_await_topology(struct fake_root *f, const char *part);
char *fake_topology(const struct fake_root *f); /* caller frees */
char *fake_stderr(const struct fake_root *f);   /* caller frees */
int64_t fake_now_ms(void);

#endif
