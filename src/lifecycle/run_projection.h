/* lifecycle/run_projection.h - the state of a run, reduced from its events, the first one on: the stored
 * state has to equal it (weir verify), and the state as of any runSeq comes from it. Pure; policy A of AR-01:
 * an event that is no valid transition changes nothing but `invalid`. */
#ifndef WEIR_LIFECYCLE_RUN_PROJECTION_H
#define WEIR_LIFECYCLE_RUN_PROJECTION_H

#include "base/arena.h"
#include "base/map.h"
#include "lifecycle/run_lifecycle.h"

struct projected_step {
    struct map_node node;
    struct str name;
    struct step_state state;
    struct projected_step *next; /* in the order in which they were first heard of */
};

struct run_projection {
    enum run_status status;
    int64_t last_seq; /* the watermark: every event moves it, also those of unknown types */
    uint64_t invalid; /* events that were no valid transition */
    size_t step_count;
    struct projected_step *steps, **tail;
    struct map by_name;
    struct arena *arena; /* steps and their names; the caller's */
};

void run_projection_start(struct run_projection *p, struct arena *a);
void run_projection_free(struct run_projection *p); /* the table; not the arena */
/* The next record. `fault` is set when the transition is invalid; may be NULL. */
enum transition run_projection_apply(struct run_projection *p, int64_t seq, enum run_event_type type,
                                     struct str step, int64_t attempt, struct transition_fault *fault);
struct projected_step *run_projection_step(const struct run_projection *p, struct str name); /* or NULL */

#endif
