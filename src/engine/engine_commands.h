/* engine/engine_commands.h - the commands of the engine: plans, runs, events of outside engines, their event
 * ids. Signals: engine/signal_commands.h.
 *
 * The caller has checked form, role and project. The tenant of a run is checked here, because it stands in
 * the run. Texts are the caller's, and good until `done`: that comes after the commit, so nothing is copied.
 */
#ifndef WEIR_ENGINE_COMMANDS_H
#define WEIR_ENGINE_COMMANDS_H

#include "engine/append.h"
#include "kernel/kernel.h"
#include "runs/plan.h"

enum { APPEND_EVENTS_MAX = 1000 };

/* Puts a plan. The same content again is the same plan, other content under its name PLAN_CONFLICT. */
struct plan_command {
    struct command base;
    struct str tenant;
    const struct plan *plan;
    uint8_t fingerprint[DIGEST_BYTES]; /* of its canonical content */
    /* answer */
    bool created;
    int64_t created_ms;
};
extern const struct command_type plan_command_type;

/* Starts a run of a plan. The same id and content again is the same run, other content RUN_CONFLICT. */
struct run_command {
    struct command base;
    struct str tenant;
    struct str run_id; /* never absent: the caller makes one up */
    struct str plan, version, project, environment;
    struct str params; /* JSON text of an object; absent: none */
    uint8_t fingerprint[DIGEST_BYTES];
    /* answer */
    bool created;
    enum run_status status;
};
extern const struct command_type run_command_type;

struct append_item {
    struct run_write write;
    struct str tenant, project, environment;
    /* answer; an item with an error from the start is passed over */
    struct err err;
    struct run_place place;
};

/* Events for one run; the first good one opens it if it is not there. Each item stands alone. */
struct append_command {
    struct command base;
    struct str tenant; /* of the caller */
    struct str run_id;
    struct append_item *items;
    size_t item_count;
};
extern const struct command_type append_command_type;

/* The id an event has or shall have (EventIdRegistry). */
struct event_id_command {
    struct command base;
    struct str tenant, run_id;
    uint8_t key[DIGEST_BYTES];
    struct uuid event_id; /* proposed; the answer */
};
extern const struct command_type event_id_command_type;

#endif
