/* runtime/supervision.h - what a supervisor does when a child of its ends. One core, used at two grades: root
 * over processes (supervisor.c), and a process over its actors (actor.c).
 *
 * Pure: no process, no clock, no randomness. Time is passed in; the spread of a pause comes from the child's
 * number and the count of its supervisor, so a run replays the same.
 *
 * Strategy:  one_for_one: the child that ended is started again alone. There is no other (a new one needs a
 *            reason in docs/operations/topology.md before it gets a name here).
 * Intensity: runtime/restart_window.h: the (N+1)th restart within the window ends the supervisor (AT-02).
 * Pause:     the first two restarts of a window are immediate; later ones wait 100 ms, 200 ms ... up to 5 s,
 *            and up to half as long again, spread so that what failed together does not return together.
 * Escalation: a supervisor that ends is one failed child of the one above it. There is none above root. */
#ifndef WEIR_RUNTIME_SUPERVISION_H
#define WEIR_RUNTIME_SUPERVISION_H

#include "runtime/failure_modes.h"
#include "runtime/process_table.h"
#include "runtime/restart_window.h"

struct supervision {
    enum domain_id domain; /* the row of DOMAIN_LIST that it follows */
    struct restart_window window;
    uint64_t restarts; /* granted since it was made */
    uint64_t endings;  /* how often it ended */
};

enum supervision_verdict {
    SUPERVISION_KEEP,    /* the child lives on, nothing is counted */
    SUPERVISION_RESTART, /* this child, after delay_ms */
    SUPERVISION_END,     /* this supervisor: stop what is left, tell the one above */
    SUPERVISION_STOP,    /* everything: a restart cannot help */
};

struct supervision_answer {
    enum supervision_verdict verdict;
    int64_t delay_ms; /* of RESTART */
};

void supervision_init(struct supervision *s, enum domain_id domain, struct domain_limits limits);
/* `child` is its number among its siblings. Counts the restart it grants. */
struct supervision_answer supervision_child_failed(struct supervision *s, enum failure_mode mode,
                                                   uint32_t child, int64_t now_ms);
/* The domain comes back after its end: with an empty window. */
void supervision_renew(struct supervision *s);

/* Cross-domain cascades: failures in another domain within SUPERVISION_INCIDENT_MS after a failure. The
 * domain that failed first has the incident; each further failure elsewhere before its end is one cascade.
 * The target is 0: a crash stays where it happened. */
enum { SUPERVISION_INCIDENT_MS = 2000, CASCADE_TIMES_MAX = 32 };

struct cascade_watch {
    enum domain_id domain;
    int64_t ends_ms; /* of the incident; 0: there has been none */
    uint64_t incidents, cascades;
    int64_t at_ms[CASCADE_TIMES_MAX]; /* when the last ones were: the first of all at 0, then around */
};

/* True when this failure is a cascade. */
bool cascade_watch_failure(struct cascade_watch *w, enum domain_id domain, int64_t now_ms);

#endif
