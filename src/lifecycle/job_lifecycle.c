#include "lifecycle/job_lifecycle.h"

#include "base/must.h"

#include "base/banned.h"

/* Every move there is. Absent means refused. */
static const struct job_move job_moves[] = {
    {JOB_NO_STATE, JOB_ON_SUBMIT, JOB_CREATED, JOB_EVENT_CREATED},
    {JOB_CREATED, JOB_ON_DUE, JOB_QUEUED, JOB_EVENT_QUEUED},
    {JOB_CREATED, JOB_ON_CANCEL, JOB_CANCELED, JOB_EVENT_CANCELED},
    {JOB_QUEUED, JOB_ON_CLAIM, JOB_ASSIGNED, JOB_EVENT_ASSIGNED},
    {JOB_QUEUED, JOB_ON_CANCEL, JOB_CANCELED, JOB_EVENT_CANCELED},
    {JOB_ASSIGNED, JOB_ON_START, JOB_RUNNING, JOB_EVENT_RUNNING},
    {JOB_ASSIGNED, JOB_ON_CANCEL, JOB_CANCELED, JOB_EVENT_CANCELED},
    {JOB_ASSIGNED, JOB_ON_LEASE_EXPIRE, JOB_QUEUED, JOB_EVENT_LEASE_EXPIRED},
    {JOB_RUNNING, JOB_ON_SUCCEED, JOB_SUCCEEDED, JOB_EVENT_SUCCEEDED},
    {JOB_RUNNING, JOB_ON_FAIL, JOB_FAILED, JOB_EVENT_FAILED},
    {JOB_RUNNING, JOB_ON_TIMEOUT, JOB_FAILED, JOB_EVENT_TIMED_OUT},
    {JOB_RUNNING, JOB_ON_WORKER_LOST, JOB_FAILED, JOB_EVENT_FAILED},
    {JOB_RUNNING, JOB_ON_CANCEL, JOB_CANCELED, JOB_EVENT_CANCELED},
    {JOB_FAILED, JOB_ON_RETRY, JOB_QUEUED, JOB_EVENT_QUEUED},
};

static const struct {
    const char *text, *outcome;
    bool final;
    enum task_phase phase;
} states[] = {
#define X(name, final, outcome, phase) [JOB_##name] = {#name, outcome, final, TASK_##phase},
    JOB_STATES(X)
#undef X
};

static const char *const event_texts[] = {
#define X(name, wire) [JOB_EVENT_##name] = wire,
    JOB_EVENTS(X)
#undef X
};

static const char *const type_texts[] = {
#define X(name) [JOB_TYPE_##name] = #name,
    JOB_TYPES(X)
#undef X
};

static const char *const retry_texts[] = {
#define X(name, wire) [JOB_RETRY_##name] = wire,
    JOB_RETRIES(X)
#undef X
};

const struct job_move *job_find_move(enum job_state from, enum job_trigger on)
{
    for (size_t i = 0; i < LENGTH_OF(job_moves); i++)
        if (job_moves[i].from == from && job_moves[i].on == on)
            return &job_moves[i];
    return NULL;
}

bool job_state_is_final(enum job_state s)
{
    return s < JOB_STATE_COUNT && states[s].final;
}
enum task_phase job_state_phase(enum job_state s)
{
    return states[s].phase;
}
const char *job_state_text(enum job_state s)
{
    return s < JOB_STATE_COUNT ? states[s].text : NULL;
}
const char *job_outcome_text(enum job_state s)
{
    return s < JOB_STATE_COUNT ? states[s].outcome : NULL;
}
const char *job_event_text(enum job_event e)
{
    return event_texts[e];
}
const char *job_type_text(enum job_type t)
{
    return type_texts[t];
}

const char *job_retry_text(enum job_retry r)
{
    return retry_texts[r];
}

static bool find_text(const char *const *texts, size_t count, struct str text, size_t *ret_index)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(text, texts[i])) {
            *ret_index = i;
            return true;
        }
    return false;
}

bool job_state_parse(struct str text, enum job_state *ret_state)
{
    for (size_t i = 0; i < JOB_STATE_COUNT; i++)
        if (str_equal_nocase(text, str_of(states[i].text))) {
            *ret_state = (enum job_state)i;
            return true;
        }
    return false;
}

bool job_outcome_parse(struct str text, enum job_state *ret_state)
{
    for (size_t i = 0; i < JOB_STATE_COUNT; i++)
        if (states[i].outcome && str_equal_nocase(text, str_of(states[i].outcome))) {
            *ret_state = (enum job_state)i;
            return true;
        }
    return false;
}

bool job_event_parse(struct str text, enum job_event *ret_event)
{
    size_t i;
    if (!find_text(event_texts, JOB_EVENT_COUNT, text, &i))
        return false;
    *ret_event = (enum job_event)i;
    return true;
}

bool job_type_parse(struct str text, enum job_type *ret_type)
{
    size_t i;
    if (!find_text(type_texts, JOB_TYPE_COUNT, text, &i))
        return false;
    *ret_type = (enum job_type)i;
    return true;
}

bool job_retry_parse(struct str text, enum job_retry *ret_retry)
{
    size_t i;
    if (!find_text(retry_texts, JOB_RETRY_COUNT, text, &i))
        return false;
    *ret_retry = (enum job_retry)i;
    return true;
}
