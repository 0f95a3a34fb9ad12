/* engine/append.h - the append authority: the only code that writes run events, and the projector that
 * reduces each into the run and its steps in the same transaction (seed 002; AR-01 policy A).
 *
 * Order:     the key decides first: one that is there is answered with what is stored, nothing is written,
 *            and one that layer 2 has refused is refused again; then the event id; then, if
 *            engine.append_validation says so, the transition (layer 2). What is written gets the next runSeq
 *            and our time.
 * Projector: an event that is no valid transition changes nothing but the run's mark `inconsistent`, and
 *            raises one alert; it stands in the log like any other (layer 3, always).
 * Callers:   engines outside through append_command, ours through append_event.
 * Fails:     EVENT_ID_CONFLICT, INVALID_TRANSITION; nothing is written then, but the memory of a refusal. */
#ifndef WEIR_ENGINE_APPEND_H
#define WEIR_ENGINE_APPEND_H

#include "base/digest.h"
#include "kernel/unit.h"
#include "lifecycle/run_lifecycle.h"

/* One event to be written; of its run it says only what the run does not. */
struct run_write {
    enum run_event_type type;
    struct str name;  /* eventType, as it is spelled */
    struct str step;  /* absent: about the run */
    int64_t step_idx; /* of a run of ours; -1: to be looked up by name, or new */
    int64_t attempt, engine_attempt;
    struct uuid event_id;
    uint8_t key[DIGEST_BYTES];
    struct str emitted, plan, version, payload;
    struct {
        int64_t key, id, step;
        bool known; /* append_mark; else whoever needs them first makes them */
    } marks;
};

/* Where it stands. */
struct run_place {
    struct uuid event_id;
    int64_t seq, persisted_ms;
    bool duplicate;
};

/* The run of this name, or NULL. Load phase: run_want, then what is needed of it; before that, on a shared
 * store, run_ask: then the rows of all runs of a batch come, and are locked, together. */
void run_ask(struct unit *u, struct str run_id);
void run_want(struct unit *u, struct str run_id);
struct run_row *run_find(struct unit *u, struct str run_id);
struct run_row *run_by_number(struct unit *u, int64_t num);
/* A new one in PENDING, listed; `row` has what never changes but num and created_ms. In the arena. */
struct run_row *run_add(struct unit *u, const struct run_row *row);
struct run_step_row *run_step(struct unit *u, const struct run_row *run, int64_t idx);
/* By name and its mark, in a run of an engine outside; -1: none yet. */
int64_t run_step_find(struct unit *u, const struct run_row *run, int64_t mark, struct str name);

/* By what it is found (run_marks.h), on whatever thread: digests that the commit thread then need not
 * make. */
void append_mark(struct run_write *w);
/* Load phase: what append_event will look for. */
void append_want(struct unit *u, const struct run_row *run, struct run_write *w);
/* Layer 2's word on an event that would open its run; a refusal is remembered for the tenant. */
MUST_CHECK enum err_code append_may_open(struct unit *u, int64_t tenant, const struct run_write *w,
                                         struct err *err);
MUST_CHECK enum err_code append_event(struct unit *u, struct run_row *run, struct run_write *w,
                                      struct run_place *ret_place, struct err *err);

/* What tells of an event in a record: the run's own where the event says nothing. */
struct str run_event_name(const struct run_event_row *e);
struct str run_event_plan(const struct run_row *run, const struct run_event_row *e);
struct str run_event_version(const struct run_row *run, const struct run_event_row *e);

/* Its idempotency key, made anew from what it is made of. */
void run_event_key(const struct run_row *run, const struct run_event_row *e, uint8_t out[DIGEST_BYTES]);

#endif
