#include "lifecycle/run_lifecycle.h"

#include "base/must.h"

#include "base/banned.h"

/* --- the tables: absent means invalid -------------------------------------------------------------- */

static const struct {
    enum run_status from;
    enum run_event_type on;
    enum run_status to;
} run_moves[] = {
    {RUN_PENDING, RUN_EVENT_RunStarted, RUN_RUNNING},
    {RUN_RUNNING, RUN_EVENT_RunPaused, RUN_PAUSED},
    {RUN_PAUSED, RUN_EVENT_RunResumed, RUN_RUNNING},
    {RUN_RUNNING, RUN_EVENT_RunCompleted, RUN_COMPLETED},
    {RUN_PENDING, RUN_EVENT_RunFailed, RUN_FAILED},
    {RUN_RUNNING, RUN_EVENT_RunFailed, RUN_FAILED},
    {RUN_PAUSED, RUN_EVENT_RunFailed, RUN_FAILED},
    {RUN_PENDING, RUN_EVENT_RunCancelled, RUN_CANCELLED},
    {RUN_RUNNING, RUN_EVENT_RunCancelled, RUN_CANCELLED},
    {RUN_PAUSED, RUN_EVENT_RunCancelled, RUN_CANCELLED},
};

static const struct {
    enum step_status from;
    enum run_event_type on;
    enum step_status to;
    bool while_paused; /* also in a paused run: its running steps end by themselves */
} step_moves[] = {
    {STEP_PENDING, RUN_EVENT_StepStarted, STEP_RUNNING, false},
    {STEP_RUNNING, RUN_EVENT_StepCompleted, STEP_SUCCESS, true},
    {STEP_RUNNING, RUN_EVENT_StepFailed, STEP_FAILED, true},
    {STEP_PENDING, RUN_EVENT_StepSkipped, STEP_SKIPPED, false},
};

/* --- names ------------------------------------------------------------------------------------------ */

#define X(name, final) [RUN_##name] = {#name, final},
static const struct {
    const char *text;
    bool final;
} run_statuses[] = {RUN_STATUSES(X)};
#undef X

#define X(name, final) [STEP_##name] = {#name, final},
static const struct {
    const char *text;
    bool final;
} step_statuses[] = {STEP_STATUSES(X)};
#undef X

#define X(name, step) [RUN_EVENT_##name] = {#name, step},
static const struct {
    const char *text;
    bool step;
} events[] = {RUN_EVENTS(X)};
#undef X

enum run_event_type run_event_of(struct str name)
{
    for (int i = 0; i < RUN_EVENT_COUNT; i++)
        if (str_is(name, events[i].text))
            return (enum run_event_type)i;
    return RUN_EVENT_UNKNOWN;
}

const char *run_event_text(enum run_event_type e)
{
    MUST((unsigned)e < RUN_EVENT_COUNT);
    return events[e].text;
}

bool run_event_is_step(enum run_event_type e)
{
    MUST((unsigned)e < RUN_EVENT_COUNT);
    return events[e].step;
}

const char *run_status_text(enum run_status s)
{
    MUST((unsigned)s < RUN_STATUS_COUNT);
    return run_statuses[s].text;
}

bool run_status_of(struct str name, enum run_status *ret_status)
{
    for (int i = 0; i < RUN_STATUS_COUNT; i++)
        if (str_equal_nocase(name, str_of(run_statuses[i].text))) {
            *ret_status = (enum run_status)i;
            return true;
        }
    return false;
}

bool run_status_is_final(enum run_status s)
{
    MUST((unsigned)s < RUN_STATUS_COUNT);
    return run_statuses[s].final;
}

const char *step_status_text(enum step_status s)
{
    MUST((unsigned)s < STEP_STATUS_COUNT);
    return step_statuses[s].text;
}

bool step_status_is_final(enum step_status s)
{
    MUST((unsigned)s < STEP_STATUS_COUNT);
    return step_statuses[s].final;
}

/* --- applying --------------------------------------------------------------------------------------- */

static enum transition invalid(struct transition_fault *fault, const char *prior, const char *attempted)
{
    if (fault)
        *fault = (struct transition_fault){prior, attempted};
    return TRANSITION_INVALID;
}

/* Where an event leads, from wherever: each has one target. */
static enum run_status run_target(enum run_event_type event)
{
    for (size_t i = 0; i < LENGTH_OF(run_moves); i++)
        if (run_moves[i].on == event)
            return run_moves[i].to;
    MUST(false);
    return RUN_PENDING;
}

enum transition run_apply(enum run_status *status, enum run_event_type event, struct transition_fault *fault)
{
    if (event == RUN_EVENT_UNKNOWN || event == RUN_EVENT_RunQueued)
        return TRANSITION_NONE;
    MUST(!run_event_is_step(event));
    for (size_t i = 0; i < LENGTH_OF(run_moves); i++)
        if (run_moves[i].from == *status && run_moves[i].on == event) {
            *status = run_moves[i].to;
            return TRANSITION_DONE;
        }
    return invalid(fault, run_status_text(*status), run_status_text(run_target(event)));
}

enum step_status step_attempt_status(const struct step_state *step, int64_t attempt)
{
    return attempt == step->attempt ? step->status : STEP_PENDING;
}

/* An attempt is the one under way, or the one that may follow it: numbers are not skipped, and nothing
 * follows an attempt that has not failed. */
static bool is_turn_of(const struct step_state *step, int64_t attempt)
{
    if (attempt == step->attempt)
        return true;
    return attempt == step->attempt + 1 && (step->attempt == 0 || step->status == STEP_FAILED);
}

enum transition step_apply(struct step_state *step, enum run_status run, enum run_event_type event,
                           int64_t attempt, struct transition_fault *fault)
{
    if (event == RUN_EVENT_UNKNOWN)
        return TRANSITION_NONE;
    MUST(run_event_is_step(event));
    for (size_t i = 0; i < LENGTH_OF(step_moves); i++) {
        if (step_moves[i].on != event)
            continue;
        bool runs = run == RUN_RUNNING || (run == RUN_PAUSED && step_moves[i].while_paused);
        if (runs && is_turn_of(step, attempt) && step_attempt_status(step, attempt) == step_moves[i].from) {
            *step = (struct step_state){attempt, step_moves[i].to};
            return TRANSITION_DONE;
        }
        return invalid(fault, step_status_text(step->status), step_status_text(step_moves[i].to));
    }
    MUST(false);
    return TRANSITION_INVALID;
}
