/* engine/decision.h - decision records: written once, found by signal and by policy decision, and the two
 * ways they are added to (approval, what the engine did). */
#ifndef WEIR_ENGINE_DECISION_H
#define WEIR_ENGINE_DECISION_H

#include "engine/signal_apply.h"
#include "engine/signal_commands.h"

/* NULL: there is none. */
struct decision_row *decision_of_signal(struct unit *u, int64_t run, const struct uuid *signal_id);
struct decision_row *decision_of_policy(struct unit *u, const struct uuid *policy_id);
/* Load step: the same; NULL also while it is still to come. */
struct decision_row *decision_prefetch_of_signal(struct unit *u, int64_t run, const struct uuid *signal_id);
struct decision_row *decision_prefetch_of_policy(struct unit *u, const struct uuid *policy_id);
/* A copy of `row` with an id and time of its own, findable and listed. */
struct decision_row *decision_add(struct unit *u, const struct decision_row *row);
/* Applies an accepted one: the state's word and the effect become its engineResult. In a run of an engine
 * outside it waits for that. ERR_OK also when the state refused: look at the row. */
void decision_execute(struct unit *u, struct run_row *run, struct decision_row *d,
                      const struct applied_signal *s);
/* The engine has done with it. */
void decision_processed(struct unit *u, struct decision_row *d, bool succeeded, struct str error_code);
/* The answer for the sender of a signal, the same each time it is asked for, also of a refusal. */
void decision_answer(const struct decision_row *d, struct signal_answer *ret);

#endif
