/* engine/append.h - the append authority: the only code that writes run events, and the projector that
 * reduces each event into the run and its steps in the same transaction (seed 002; AR-01 policy A).
 *
 * Order:     the key decides first: a known key is answered with the stored event, and nothing is written; a
 *            key that layer 2 has refused is refused again. Then the event id. Then, if
 *            engine.append_validation says so, the transition (layer 2). A written event gets the next runSeq
 *            and our time.
 * Projector: an event that is no valid transition changes nothing but the flag `inconsistent` of the run, and
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
        bool known; /* append_hash; otherwise they are computed where they are first needed */
    } hashes;
};

/* Where it stands. */
struct run_place {
    struct uuid event_id;
    int64_t seq, persisted_ms;
    bool duplicate;
};

/* The run of this name, or NULL; in a load step NULL also while it is still to come. */
struct run_row *run_prefetch(struct unit *u, struct str run_id);
struct run_row *run_find(struct unit *u, struct str run_id);
struct run_row *run_by_number(struct unit *u, int64_t num);
/* A new one in PENDING, listed; `row` has what never changes but num and created_ms. In the arena. */
struct run_row *run_add(struct unit *u, const struct run_row *row);
struct run_step_row *run_step(struct unit *u, const struct run_row *run, int64_t idx);
/* By name and its hash, in a run of an outside engine; -1: none yet. */
int64_t run_step_find(struct unit *u, const struct run_row *run, int64_t hash, struct str name);

/* By what it is found (run_index.h), on whatever thread: digests that the commit thread then need not
 * make. */
void append_hash(struct run_write *w);
/* Load step: the rows that append_event will look for. */
void append_prefetch(struct unit *u, const struct run_row *run, struct run_write *w);
/* Layer 2's word on an event that would open its run; a refusal is remembered for the tenant. */
MUST_CHECK enum err_code append_may_open(struct unit *u, int64_t tenant, const struct run_write *w,
                                         struct err *err);
MUST_CHECK enum err_code append_event(struct unit *u, struct run_row *run, struct run_write *w,
                                      struct run_place *ret_place, struct err *err);

/* The name, plan and version of an event: the run's own where the event has none. */
struct str run_event_name(const struct run_event_row *e);
struct str run_event_plan(const struct run_row *run, const struct run_event_row *e);
struct str run_event_version(const struct run_row *run, const struct run_event_row *e);

/* Its idempotency key, made anew from what it is made of. */
void run_event_key(const struct run_row *run, const struct run_event_row *e, uint8_t out[DIGEST_BYTES]);

#endif
