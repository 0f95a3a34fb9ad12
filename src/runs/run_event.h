/* runs/run_event.h - the envelope of a run event (RunEventWrite): read from JSON, checked, written again.
 *
 * These are checked here: the presence and form of every field, a step for the events that need one, the key
 * against its parts. Rules that need the history of the run (duplicates, transitions) are not. Unknown event
 * types are as good as known ones; unknown members are refused. */
#ifndef WEIR_RUNS_RUN_EVENT_H
#define WEIR_RUNS_RUN_EVENT_H

#include "base/json.h"
#include "lifecycle/run_lifecycle.h"
#include "runs/event_key.h"

enum { RUN_ID_MAX = 256, RUN_ATTEMPT_MAX = 2147483647 };

/* X(member, name on the wire, may hold '|') - texts that are not empty; stepId may be absent */
#define RUN_EVENT_TEXTS(X)                                                                                   \
    X(event_type, "eventType", false)                                                                        \
    X(run_id, "runId", false)                                                                                \
    X(tenant_id, "tenantId", true)                                                                           \
    X(project_id, "projectId", true)                                                                         \
    X(environment_id, "environmentId", true)                                                                 \
    X(plan_id, "planId", false)                                                                              \
    X(plan_version, "planVersion", false)                                                                    \
    X(step_id, "stepId", false)

struct run_event {
#define X(member, name, bar) struct str member;
    RUN_EVENT_TEXTS(X)
#undef X
    struct str event_id;   /* a UUID of version 4, as given */
    struct str emitted_at; /* as given */
    struct str key;        /* EVENT_KEY_LEN of hex */
    struct str payload;    /* the JSON text of an object; absent: none */
    int64_t engine_attempt, logical_attempt;
    enum run_event_type type; /* of event_type */
};

/* ERR_EVENT_INVALID with the field in the detail, or ERR_IDEMPOTENCY_KEY_MISMATCH. Texts are the
 * document's. */
MUST_CHECK enum err_code run_event_decode(const struct json *j, struct run_event *ret_event, struct err *err);
struct event_key_parts run_event_key_parts(const struct run_event *e);
/* The members of the write, into an open object. */
void run_event_write(const struct run_event *e, struct json_writer *w);

#endif
