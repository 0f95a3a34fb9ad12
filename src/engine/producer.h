/* engine/producer.h - our engine as a producer of run events: layer 1 of seed 002 section 5.3.
 *
 * Every event of a run that Weir executes comes through here. An event that the run's own state does not
 * allow is not written: the run is stopped for good, by a RunFailed that names the attempted event, if that
 * RunFailed is allowed. The event and its id are one write, so the log is the registry of event ids (AR-13).
 */
#ifndef WEIR_ENGINE_PRODUCER_H
#define WEIR_ENGINE_PRODUCER_H

#include "engine/append.h"

struct produced {
    enum run_event_type type;
    const struct run_step_row *step; /* NULL: about the run */
    int64_t attempt;                 /* of the step, or of a pause; else 1 */
    struct str payload;              /* JSON text; absent: none */
};

/* False: nothing was written, and the run is over. */
bool produce(struct unit *u, struct run_row *run, const struct produced *p);
/* The same for an event whose type is none of the catalog (ALERT_ESCALATED): it changes no state. If there is
 * one of this attempt it gets a later one. */
void produce_opaque(struct unit *u, struct run_row *run, struct str type, int64_t attempt,
                    struct str payload);

/* {"reason":TEXT}; absent without a text. {"reason":CODE,"error":{"code","message","retryable"}}.
 * {"output":RESULT}; absent without one. */
struct str payload_reason(struct unit *u, struct str reason);
struct str payload_error(struct unit *u, struct str code, struct str message, bool retryable);
struct str payload_output(struct unit *u, struct str result);

#endif
