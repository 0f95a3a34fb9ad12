#include "engine/append.h"

#include "base/must.h"
#include "engine/alert.h"
#include "engine/run_index.h"
#include "engine/run_notices.h"
#include "runs/event_key.h"

#include "base/banned.h"

/* --- what is there already ------------------------------------------------------------------------- */

static struct str key_of(const struct run_write *w)
{
    return (struct str){(const char *)w->key, sizeof w->key};
}

static struct str id_of(const struct run_write *w)
{
    return (struct str){(const char *)w->event_id.bytes, sizeof w->event_id.bytes};
}

static struct run_event_row *event_at(struct unit *u, int64_t run, int64_t seq)
{
    return unit_fetch(u, &table_run_event_row, &(struct run_event_row){.run = run, .seq = seq});
}

struct wanted {
    const struct run_row *run;
    const struct run_write *write;
};

/* The parts of the key, one by one. */
static bool has_key(struct unit *u, int64_t run, int64_t place, const void *arg)
{
    const struct wanted *x = arg;
    const struct run_event_row *e = event_at(u, run, place);
    return e && e->attempt == x->write->attempt && str_equal(run_event_name(e), x->write->name) &&
           str_equal(event_key_step(e->step), event_key_step(x->write->step)) &&
           str_equal(run_event_plan(x->run, e), x->write->plan) &&
           str_equal(run_event_version(x->run, e), x->write->version);
}

static bool has_id(struct unit *u, int64_t run, int64_t place, const void *arg)
{
    const struct wanted *x = arg;
    const struct run_event_row *e = event_at(u, run, place);
    return e && str_equal(e->event_id, id_of(x->write));
}

static void take_place(const struct run_event_row *e, bool duplicate, struct run_place *ret)
{
    *ret = (struct run_place){.seq = e->seq, .persisted_ms = e->persisted_ms, .duplicate = duplicate};
    memcpy(ret->event_id.bytes, e->event_id.ptr, sizeof ret->event_id.bytes);
}

/* One that has to be found by its name. */
static bool names_step(const struct run_write *w)
{
    return w->step.ptr && w->type != RUN_EVENT_UNKNOWN && w->step_idx < 0;
}

void append_hash(struct run_write *w)
{
    if (w->hashes.known)
        return;
    w->hashes.key = run_index_hash(RUN_INDEX_KEY, key_of(w));
    w->hashes.id = run_index_hash(RUN_INDEX_EVENT_ID, id_of(w));
    if (names_step(w))
        w->hashes.step = run_index_hash(RUN_INDEX_STEP, w->step);
    w->hashes.known = true;
}

static bool validates(const struct unit *u)
{
    return settings_is_on(u->settings->engine_append_validation);
}

/* Refusals are kept with the run, and with the tenant while there is no run: the runId is in the key, so no
 * two runs meet there. */
static int64_t keeper_of_tenant(int64_t tenant)
{
    return -tenant;
}

void append_prefetch(struct unit *u, const struct run_row *run, struct run_write *w)
{
    append_hash(w);
    run_index_prefetch(u, run->num, w->hashes.key);
    run_index_prefetch(u, run->num, w->hashes.id);
    if (names_step(w))
        run_index_prefetch(u, run->num, w->hashes.step);
    const int64_t keepers[] = {run->num, keeper_of_tenant(run->tenant)};
    for (size_t i = 0; validates(u) && i < LENGTH_OF(keepers); i++)
        unit_prefetch(u, &table_refused_event_row,
                      &(struct refused_event_row){.run = keepers[i], .key = key_of(w)});
}

/* --- the projector --------------------------------------------------------------------------------- */

static struct run_step_row *new_step(struct unit *u, struct run_row *run, const struct run_write *w)
{
    struct run_step_row *s = ARENA_NEW(u->arena, struct run_step_row);
    *s = (struct run_step_row){
        .run = run->num, .idx = run->step_count++, .step = w->step, .state = STEP_PENDING};
    unit_insert(u, &table_run_step_row, s);
    run_index_add(u, run->num, w->hashes.step, s->idx);
    return s;
}

/* NULL: it has never been heard of. */
static struct run_step_row *step_of(struct unit *u, const struct run_row *run, const struct run_write *w)
{
    int64_t idx = w->step_idx >= 0 ? w->step_idx : run_step_find(u, run, w->hashes.step, w->step);
    return idx >= 0 ? run_step(u, run, idx) : NULL;
}

static bool is_step_event(const struct run_write *w)
{
    return w->type != RUN_EVENT_UNKNOWN && run_event_is_step(w->type);
}

/* The effect of the event, computed without applying it. */
static enum transition try_event(const struct run_row *run, const struct run_step_row *step,
                                 const struct run_write *w, enum run_status *ret_run,
                                 struct step_state *ret_step, struct transition_fault *fault)
{
    *ret_run = (enum run_status)run->state;
    *ret_step = step ? (struct step_state){step->attempt, (enum step_status)step->state}
                     : (struct step_state){0, STEP_PENDING};
    if (is_step_event(w))
        return step_apply(ret_step, *ret_run, w->type, w->attempt, fault);
    return run_apply(ret_run, w->type, fault);
}

static void move_run(struct unit *u, struct run_row *run, enum run_status to)
{
    unit_list(u, run->tenant, (uint8_t)(LIST_RUNS_IN + run->state), run->num, true);
    unit_list(u, run->tenant, (uint8_t)(LIST_RUNS_IN + to), run->num, false);
    run->state = to;
    if (to == RUN_RUNNING && !run->started_ms)
        run->started_ms = u->locked_at_ms;
    if (run_status_is_final(to))
        run->ended_ms = u->locked_at_ms;
}

static void move_step(struct unit *u, struct run_step_row *step, const struct step_state *to)
{
    step->state = to->status;
    step->attempt = to->attempt;
    if (to->status == STEP_RUNNING) {
        step->started_ms = u->locked_at_ms;
        step->ended_ms = 0;
    } else {
        step->ended_ms = u->locked_at_ms;
    }
    unit_update(u, &table_run_step_row, step);
}

static void raise_invalid(struct unit *u, struct run_row *run, const struct run_event_row *e,
                          const struct transition_fault *fault)
{
    run->inconsistent = 1;
    alert_raise(u, run,
                &(struct alert_row){.severity = SEVERITY_CRITICAL,
                                    .category = ALERT_TRANSITION,
                                    .code = str_of(err_wire(ERR_INVALID_TRANSITION)),
                                    .seq = e->seq,
                                    .persisted_ms = e->persisted_ms,
                                    .event_id = e->event_id,
                                    .event_type = run_event_name(e),
                                    .prior = str_of(fault->prior),
                                    .attempted = str_of(fault->attempted)});
}

/* Reduces the record into the run: policy A. */
static void project(struct unit *u, struct run_row *run, const struct run_write *w,
                    const struct run_event_row *e)
{
    struct run_step_row *step = is_step_event(w) ? step_of(u, run, w) : NULL;
    struct transition_fault fault;
    enum run_status status;
    struct step_state state;
    if (is_step_event(w) && !step)
        step = new_step(u, run, w);
    enum transition t = try_event(run, step, w, &status, &state, &fault);
    if (t == TRANSITION_INVALID)
        raise_invalid(u, run, e, &fault);
    else if (t == TRANSITION_DONE && step)
        move_step(u, step, &state);
    else if (t == TRANSITION_DONE)
        move_run(u, run, status);
    if (w->type == RUN_EVENT_RunQueued && run->state == RUN_PENDING && !run->queued_ms)
        run->queued_ms = u->locked_at_ms;
}

/* --- layer 2 --------------------------------------------------------------------------------------- */

static enum err_code refuse(struct str prior, struct str attempted, struct err *err)
{
    return err_set(err, ERR_INVALID_TRANSITION, "from %.*s there is no way to %.*s by this event",
                   STR_ARG(prior), STR_ARG(attempted));
}

static enum err_code refused_before(struct unit *u, int64_t keeper, const struct run_write *w,
                                    struct err *err)
{
    /* In the arena: the unit keeps the bytes of a key, and a write of ours lives no longer than its event. */
    struct refused_event_row key = {.run = keeper, .key = arena_str(u->arena, key_of(w))};
    const struct refused_event_row *before = unit_fetch(u, &table_refused_event_row, &key);
    return before ? refuse(before->prior, before->attempted, err) : ERR_OK;
}

static enum err_code validate(struct unit *u, int64_t keeper, const struct run_row *run,
                              const struct run_step_row *step, const struct run_write *w, struct err *err)
{
    struct transition_fault fault;
    enum run_status status;
    struct step_state state;
    if (try_event(run, step, w, &status, &state, &fault) != TRANSITION_INVALID)
        return ERR_OK;
    struct refused_event_row *r = ARENA_NEW(u->arena, struct refused_event_row);
    *r = (struct refused_event_row){.run = keeper,
                                    .key = arena_str(u->arena, key_of(w)),
                                    .at_ms = u->locked_at_ms,
                                    .prior = str_of(fault.prior),
                                    .attempted = str_of(fault.attempted)};
    unit_insert(u, &table_refused_event_row, r);
    return refuse(r->prior, r->attempted, err);
}

enum err_code append_may_open(struct unit *u, int64_t tenant, const struct run_write *w, struct err *err)
{
    const struct run_row unopened = {.state = RUN_PENDING};
    int64_t keeper = keeper_of_tenant(tenant);
    if (!validates(u))
        return ERR_OK;
    if (refused_before(u, keeper, w, err) != ERR_OK)
        return err->code;
    return validate(u, keeper, &unopened, NULL, w, err);
}

/* For good, whoever has its eventId by now. */
static enum err_code was_refused(struct unit *u, const struct run_row *run, const struct run_write *w,
                                 struct err *err)
{
    if (refused_before(u, run->num, w, err) != ERR_OK)
        return err->code;
    return refused_before(u, keeper_of_tenant(run->tenant), w, err);
}

/* --- writing --------------------------------------------------------------------------------------- */

static struct run_event_row *write_row(struct unit *u, struct run_row *run, const struct run_write *w)
{
    struct run_event_row *e = ARENA_NEW(u->arena, struct run_event_row);
    *e = (struct run_event_row){.run = run->num,
                                .seq = ++run->last_seq,
                                .type = w->type,
                                .attempt = w->attempt,
                                .engine_attempt = w->engine_attempt,
                                .persisted_ms = u->locked_at_ms,
                                .event_id = arena_str(u->arena, id_of(w)),
                                .emitted = w->emitted,
                                .step = w->step,
                                .name = w->type == RUN_EVENT_UNKNOWN ? w->name : STR_ABSENT,
                                .plan = str_equal(w->plan, run->plan) ? STR_ABSENT : w->plan,
                                .version = str_equal(w->version, run->version) ? STR_ABSENT : w->version,
                                .payload = w->payload};
    unit_insert(u, &table_run_event_row, e);
    return e;
}

enum err_code append_event(struct unit *u, struct run_row *run, struct run_write *w,
                           struct run_place *ret_place, struct err *err)
{
    struct wanted x = {run, w};
    append_hash(w);
    int64_t former = run_index_find(u, run->num, w->hashes.key, has_key, &x);
    if (former > 0) {
        take_place(event_at(u, run->num, former), true, ret_place);
        return ERR_OK;
    }
    if (validates(u) && was_refused(u, run, w, err) != ERR_OK)
        return err->code;
    if (run_index_find(u, run->num, w->hashes.id, has_id, &x) > 0)
        return err_set(err, ERR_EVENT_ID_CONFLICT, "an event of this run with another key has this eventId");
    const struct run_step_row *step = validates(u) && is_step_event(w) ? step_of(u, run, w) : NULL;
    if (validates(u) && validate(u, run->num, run, step, w, err) != ERR_OK)
        return err->code;
    const struct run_event_row *e = write_row(u, run, w);
    run_index_add(u, run->num, w->hashes.key, e->seq);
    run_index_add(u, run->num, w->hashes.id, e->seq);
    project(u, run, w, e);
    unit_update(u, &table_run_row, run);
    unit_notify(u, &run_event_notices, e);
    take_place(e, false, ret_place);
    return ERR_OK;
}
