#include "unit/engine/run_model.h"

#include <string.h>

#include "base/must.h"

#include "base/banned.h"

static bool is(const char *status, const char *name)
{
    return strcmp(status, name) == 0;
}

/* 2.2: a known event whose name begins with Step is about a step. */
static bool is_known_step_event(struct str type)
{
    return str_is(type, "StepStarted") || str_is(type, "StepCompleted") || str_is(type, "StepFailed") ||
           str_is(type, "StepSkipped");
}

static bool is_known_run_event(struct str type)
{
    return str_is(type, "RunQueued") || str_is(type, "RunStarted") || str_is(type, "RunPaused") ||
           str_is(type, "RunResumed") || str_is(type, "RunCompleted") || str_is(type, "RunFailed") ||
           str_is(type, "RunCancelled");
}

bool run_model_is_over(const struct run_model *m)
{
    return is(m->status, "COMPLETED") || is(m->status, "FAILED") || is(m->status, "CANCELLED");
}

/* --- 5.1, AR-02, AR-03: what an event makes of a run --------------------------------------------------- */

static const char *run_target(struct str type)
{
    return str_is(type, "RunStarted") || str_is(type, "RunResumed") ? "RUNNING"
           : str_is(type, "RunPaused")                              ? "PAUSED"
           : str_is(type, "RunCompleted")                           ? "COMPLETED"
           : str_is(type, "RunFailed")                              ? "FAILED"
                                                                    : "CANCELLED";
}

static bool run_may(const struct run_model *m, struct str type)
{
    if (run_model_is_over(m))
        return m->flaw == FLAW_FINAL_IS_NOT_FINAL && str_is(type, "RunFailed");
    if (str_is(type, "RunStarted"))
        return is(m->status, "PENDING");
    if (str_is(type, "RunPaused"))
        return is(m->status, "RUNNING");
    if (str_is(type, "RunResumed"))
        return is(m->status, "PAUSED");
    if (str_is(type, "RunCompleted"))
        return is(m->status, "RUNNING") ||
               (m->flaw == FLAW_COMPLETES_WHILE_PAUSED && is(m->status, "PAUSED"));
    return true; /* RunFailed, RunCancelled */
}

/* --- 5.2, AR-04, AR-07: and of a step ------------------------------------------------------------------ */

static const struct model_step *find_step(const struct run_model *m, struct str name)
{
    for (size_t i = 0; i < m->step_count; i++)
        if (str_equal(m->steps[i].name, name))
            return &m->steps[i];
    return NULL;
}

/* One that is heard of for the first time is PENDING. */
static struct model_step *hear_of_step(struct run_model *m, struct str name)
{
    const struct model_step *s = find_step(m, name);
    if (s)
        return &m->steps[s - m->steps];
    MUST(m->step_count < MODEL_STEPS_MAX);
    m->steps[m->step_count] = (struct model_step){.name = name};
    return &m->steps[m->step_count++];
}

/* The state of (step, attempt); NULL: there is no such attempt, nor can it come now. */
static const char *attempt_state(const struct run_model *m, const struct model_step *s, int64_t n)
{
    if (n < 1 || n > MODEL_ATTEMPTS_MAX)
        return NULL;
    if (s && s->of_attempt[n])
        return s->of_attempt[n];
    if (n == 1)
        return "PENDING";
    const char *before = s ? s->of_attempt[n - 1] : NULL;
    if (before && is(before, "FAILED"))
        return "PENDING";
    return m->flaw == FLAW_ATTEMPTS_MAY_BE_SKIPPED ? "PENDING" : NULL;
}

const char *run_model_attempt(const struct run_model *m, struct str step, int64_t attempt)
{
    return attempt_state(m, find_step(m, step), attempt);
}

static const char *step_target(struct str type)
{
    return str_is(type, "StepStarted")     ? "RUNNING"
           : str_is(type, "StepCompleted") ? "SUCCESS"
           : str_is(type, "StepFailed")    ? "FAILED"
                                           : "SKIPPED";
}

static bool step_may(const struct run_model *m, const struct model_event *e)
{
    const char *state = attempt_state(m, find_step(m, e->step), e->attempt);
    bool opens = str_is(e->type, "StepStarted") || str_is(e->type, "StepSkipped");
    bool runs = is(m->status, "RUNNING"), paused = is(m->status, "PAUSED");
    if (!state)
        return false;
    if (opens && (runs || (paused && m->flaw == FLAW_STARTS_STEPS_WHILE_PAUSED)))
        return is(state, "PENDING") || (m->flaw == FLAW_FAILED_ATTEMPT_GOES_ON && is(state, "FAILED"));
    if (!opens && m->flaw == FLAW_CLOSES_STEPS_BEFORE_THE_START && is(m->status, "PENDING"))
        return true;
    return !opens && (runs || paused) && is(state, "RUNNING");
}

bool run_model_allows(const struct run_model *m, const struct model_event *e)
{
    if (is_known_step_event(e->type))
        return step_may(m, e);
    if (!is_known_run_event(e->type)) /* AR-10 */
        return m->flaw != FLAW_UNKNOWN_TYPES_ARE_INVALID;
    if (str_is(e->type, "RunQueued")) /* AR-02 */
        return m->flaw != FLAW_QUEUED_LATE_IS_INVALID || is(m->status, "PENDING");
    return run_may(m, e->type);
}

const char *run_model_step(const struct run_model *m, struct str name, int64_t *ret_attempt)
{
    const struct model_step *s = find_step(m, name);
    *ret_attempt = 0;
    for (int64_t n = MODEL_ATTEMPTS_MAX; s && n > 0; n--)
        if (s->of_attempt[n]) {
            *ret_attempt = n;
            return s->of_attempt[n];
        }
    return s ? "PENDING" : NULL;
}

/* --- 5.3 layer 3, policy A ----------------------------------------------------------------------------- */

static void describe(const struct run_model *m, const struct model_event *e, const char **prior,
                     const char **attempted)
{
    int64_t unused;
    if (is_known_step_event(e->type)) {
        const char *state = run_model_step(m, e->step, &unused);
        *prior = state ? state : "PENDING";
        *attempted = step_target(e->type);
        return;
    }
    *prior = m->status;
    *attempted = run_target(e->type);
}

static void take_effect(struct run_model *m, const struct model_event *e, int64_t now_ms)
{
    if (is_known_step_event(e->type)) {
        hear_of_step(m, e->step)->of_attempt[e->attempt] = step_target(e->type);
        return;
    }
    if (!is_known_run_event(e->type))
        return;
    if (str_is(e->type, "RunQueued")) {
        if (is(m->status, "PENDING") && !m->queued_ms)
            m->queued_ms = now_ms;
        return;
    }
    m->status = run_target(e->type);
    if (is(m->status, "RUNNING") && !m->started_ms)
        m->started_ms = now_ms;
    if (run_model_is_over(m))
        m->ended_ms = now_ms;
}

void run_model_reduce(struct run_model *m, const struct model_event *e, int64_t persisted_ms)
{
    MUST(m->record_count < MODEL_RECORDS_MAX);
    struct model_record *r = &m->records[m->record_count++];
    bool frozen = m->flaw == FLAW_INVALID_FREEZES_THE_RUN && m->inconsistent;
    *r = (struct model_record){.event = *e, .persisted_ms = persisted_ms};
    bool allowed = run_model_allows(m, e);
    if (!allowed) {
        describe(m, e, &r->prior, &r->attempted);
        m->inconsistent = true;
    }
    if (is_known_step_event(e->type))
        hear_of_step(m, e->step);
    if (allowed && !frozen)
        take_effect(m, e, persisted_ms);
}

/* --- the append authority ------------------------------------------------------------------------------ */

/* 3.1, without the digest: the six fields. */
static bool same_key(const struct run_model *m, const struct model_event *a, const struct model_event *b)
{
    struct str of_a = a->step.ptr ? a->step : STR("RUN"), of_b = b->step.ptr ? b->step : STR("RUN");
    return str_equal(of_a, of_b) && a->attempt == b->attempt && str_equal(a->type, b->type) &&
           str_equal(a->plan, b->plan) &&
           (m->flaw == FLAW_VERSION_IS_NOT_IN_THE_KEY || str_equal(a->version, b->version));
}

static const struct model_refusal *refused_before(const struct run_model *m, const struct model_event *e)
{
    for (size_t i = 0; i < m->refusal_count; i++)
        if (same_key(m, &m->refusals[i].event, e) && str_equal(m->refusals[i].event.tenant, e->tenant))
            return &m->refusals[i];
    return NULL;
}

/* Layer 2 (5.3, AR-08): what was refused once is refused for good. It opens no run. */
static const struct model_refusal *refuse(struct run_model *m, const struct model_event *e)
{
    if (!m->validates || run_model_allows(m, e))
        return NULL;
    MUST(m->refusal_count < MODEL_REFUSALS_MAX);
    struct model_refusal *r = &m->refusals[m->refusal_count++];
    r->event = *e;
    describe(m, e, &r->prior, &r->attempted);
    return r;
}

static void open_run(struct run_model *m, const struct model_event *e)
{
    if (m->exists)
        return;
    m->exists = true;
    m->tenant = e->tenant;
    m->project = e->project;
    m->environment = e->environment;
}

static bool is_of_run(const struct run_model *m, const struct model_event *e)
{
    return str_equal(m->tenant, e->tenant) && str_equal(m->project, e->project) &&
           str_equal(m->environment, e->environment);
}

enum model_answer run_model_append(struct run_model *m, const struct model_event *e, int64_t now_ms,
                                   int64_t *ret_seq, const struct model_refusal **ret_refusal)
{
    if (m->exists && !is_of_run(m, e)) /* AR-09 */
        return MODEL_WRONG_ENVELOPE;
    for (size_t i = 0; i < m->record_count; i++)
        if (same_key(m, &m->records[i].event, e)) { /* 3.2 */
            *ret_seq = (int64_t)i + 1;
            return MODEL_DUPLICATE;
        }
    *ret_refusal = m->validates ? refused_before(m, e) : NULL;
    if (*ret_refusal)
        return MODEL_REFUSED;
    for (size_t i = 0; i < m->record_count; i++)
        if (memcmp(&m->records[i].event.id, &e->id, sizeof e->id) == 0) /* AR-09 */
            return MODEL_ID_IS_ANOTHERS;
    *ret_refusal = refuse(m, e);
    if (*ret_refusal)
        return MODEL_REFUSED;
    open_run(m, e);
    run_model_reduce(m, e, now_ms);
    *ret_seq = (int64_t)m->record_count;
    return MODEL_WRITTEN;
}

void run_model_start(struct run_model *m, struct str id)
{
    enum model_flaw flaw = m->flaw;
    bool validates = m->validates;
    memset(m, 0, sizeof *m);
    m->flaw = flaw;
    m->validates = validates;
    m->id = id;
    m->status = "PENDING";
}
