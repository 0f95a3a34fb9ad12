/* Random streams of events against a model written from the contract (run_model.h): whatever arrives, in
 * whatever order, from several producers at once, the run and its steps are what the model says at every
 * runSeq, a duplicate gets what is stored, nothing illegal changes a state, and every invalid event has one
 * alert, also when everything is sent again and after a restart. Layer 2 off and on, on every store.
 *
 * WEIR_SEED=N walks another way; WEIR_TEST_LONG=1 sends a million events. */
#include "unit/engine/engine_rig.h"
#include "unit/engine/run_model.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "lifecycle/run_projection.h"

#include "base/banned.h"

enum { RUNS = 12, COMMANDS_MAX = 5, ITEMS_MAX = 6, BATCHES_A_ROUND = 200, FAULT_TEXT_MAX = 400 };
enum { ARENA_KEEP_BYTES = 1 << 20, EVENTS_MORE_MAX = 40000 };

/* All there is to meet. */
enum { STATUSES = 6, STATES = 6, STEP_TYPES = 4, TYPES = 11 };
static const char *const statuses[STATUSES] = {"PENDING",   "RUNNING", "PAUSED",
                                               "COMPLETED", "FAILED",  "CANCELLED"};
static const char *const states[STATES] = {"PENDING", "RUNNING", "SUCCESS", "FAILED", "SKIPPED", "none"};
static const char *const types[TYPES] = {"StepStarted",  "StepCompleted", "StepFailed",  "StepSkipped",
                                         "RunQueued",    "RunStarted",    "RunPaused",   "RunResumed",
                                         "RunCompleted", "RunFailed",     "RunCancelled"};

/* One producer's call, and what it said. */
struct call {
    struct append_command *command;
    struct model_event events[ITEMS_MAX];
    struct run_model *run;
    struct str caller;
};

struct walk {
    struct rig *rig;
    uint64_t random;
    struct run_model *runs; /* RUNS of them */
    struct call calls[COMMANDS_MAX];
    size_t call_count;
    char fault[FAULT_TEXT_MAX];                    /* the first difference; empty: none */
    size_t of_runs[STATUSES][TYPES];               /* events that met a run of this status */
    size_t of_steps[STATUSES][STATES][STEP_TYPES]; /* and an attempt in this state */
    size_t answers[MODEL_WRONG_ENVELOPE + 1], invalid, lost, forbidden, sent;
};

static uint64_t draw(struct walk *w, uint64_t below)
{
    w->random = hash_mix(w->random + UINT64_C(0x9E3779B97F4A7C15));
    return w->random % below;
}

__attribute__((format(printf, 2, 3))) static void blame(struct walk *w, const char *fmt, ...)
{
    va_list args;
    if (w->fault[0])
        return;
    va_start(args, fmt);
    vsnprintf(w->fault, sizeof w->fault, fmt, args);
    va_end(args);
}

static void same_text(struct walk *w, const char *what, struct str got, struct str wanted)
{
    bool same = got.ptr ? wanted.ptr && str_equal(got, wanted) : !wanted.ptr;
    if (!same)
        blame(w, "%s is %.*s, should be %.*s", what, STR_ARG(got), STR_ARG(wanted));
}

static void same_number(struct walk *w, const char *what, int64_t got, int64_t wanted)
{
    if (got != wanted)
        blame(w, "%s is %lld, should be %lld", what, (long long)got, (long long)wanted);
}

/* --- what producers say -------------------------------------------------------------------------------- */

static struct str pick(struct walk *w, const char *const *from, size_t count)
{
    return str_of(from[draw(w, count)]);
}
#define PICK(w, ...)                                                                                         \
    pick(w, (const char *const[]){__VA_ARGS__}, LENGTH_OF(((const char *const[]){__VA_ARGS__})))

static struct str any_type(struct walk *w, bool short_life)
{
    if (draw(w, short_life ? 6 : 100) == 0)
        return PICK(w, "RunCompleted", "RunFailed", "RunCancelled");
    switch (draw(w, 10)) {
    case 0:
        return PICK(w, "FooHappened", "ALERT_ESCALATED", "runstarted", "SignalAccepted");
    case 1:
    case 2:
    case 3:
        return PICK(w, "RunQueued", "RunStarted", "RunPaused", "RunResumed", "RunPaused", "RunResumed");
    }
    return PICK(w, "StepStarted", "StepCompleted", "StepFailed", "StepSkipped", "StepStarted", "StepFailed");
}

static struct model_event any_event(struct walk *w, const struct run_model *m)
{
    struct model_event e = {.type = any_type(w, (m - w->runs) % 3 == 0), /* some end soon */
                            .attempt = 1,
                            .plan = draw(w, 20) ? STR("p") : STR("q"),
                            .version = draw(w, 5) ? STR("1") : PICK(w, "2", "10"),
                            .tenant = STR(TENANT),
                            .project = STR("proj"),
                            .environment = STR("prod"),
                            .id = uuid_v4()};
    bool about_step = str_is(e.type, "StepStarted") || str_is(e.type, "StepCompleted") ||
                      str_is(e.type, "StepFailed") || str_is(e.type, "StepSkipped");
    bool about_run = e.type.ptr[0] == 'R';
    if (about_step || (!about_run && draw(w, 2)))
        e.step = PICK(w, "a", "b", "c", "RUN", "größe");
    if (about_step) {
        run_model_step(m, e.step, &e.attempt);
        e.attempt += (int64_t)draw(w, 3) - (e.attempt > 0);
    } else if (draw(w, 2)) {
        e.attempt = 1 + (int64_t)draw(w, 5); /* pauses are counted (AR-06); so may be anything else */
    }
    if (e.attempt < 1)
        e.attempt = 1;
    if (draw(w, 200) == 0)
        e.attempt = 2147483647;
    return e;
}

/* Half of what is said makes sense: else runs get nowhere. */
static struct model_event likely_event(struct walk *w, const struct run_model *m)
{
    struct model_event e = any_event(w, m);
    for (int tries = 0; tries < 20 && (!run_model_allows(m, &e) || str_is(e.type, "RunCancelled")); tries++)
        e = any_event(w, m);
    return e;
}

static struct model_event next_event(struct walk *w, const struct run_model *m)
{
    struct model_event e = draw(w, 2) ? likely_event(w, m) : any_event(w, m);
    if (m->record_count && draw(w, 6) == 0) { /* said before, by the same or by another who made its own id */
        e = m->records[draw(w, m->record_count)].event;
        if (draw(w, 2))
            e.id = uuid_v4();
    } else if (m->refusal_count && draw(w, 6) == 0) {
        e = m->refusals[draw(w, m->refusal_count)].event;
    } else if (m->record_count && draw(w, 40) == 0) {
        e.id = m->records[draw(w, m->record_count)].event.id;
    } else if (m->refusal_count && draw(w, 40) == 0) {
        e.id = m->refusals[draw(w, m->refusal_count)].event.id;
    }
    if (draw(w, 50) == 0)
        e.tenant = STR("other");
    if (draw(w, 50) == 0)
        e.project = STR("theirs");
    if (draw(w, 50) == 0)
        e.environment = STR("dev");
    return e;
}

static struct append_item item_of(const struct run_model *m, const struct model_event *e)
{
    struct append_item item = {.write = {.type = run_event_of(e->type),
                                         .name = e->type,
                                         .step = e->step,
                                         .step_idx = -1,
                                         .attempt = e->attempt,
                                         .engine_attempt = 1,
                                         .event_id = e->id,
                                         .emitted = STR("2026-11-16T00:00:00.000Z"),
                                         .plan = e->plan,
                                         .version = e->version},
                               .tenant = e->tenant,
                               .project = e->project,
                               .environment = e->environment,
                               .err = {.code = ERR_OK}};
    struct event_key_parts parts = {.run_id = m->id,
                                    .step_id = e->step,
                                    .logical_attempt = e->attempt,
                                    .event_type = e->type,
                                    .plan_id = e->plan,
                                    .plan_version = e->version};
    event_key_digest(&parts, item.write.key);
    return item;
}

static void post_call(struct walk *w, struct run_model *m, const struct model_event *events, size_t count)
{
    struct call *c = &w->calls[w->call_count++];
    struct append_item items[ITEMS_MAX];
    c->run = m;
    c->caller = draw(w, 100) ? STR(TENANT) : STR("other");
    memcpy(c->events, events, count * sizeof *events);
    for (size_t i = 0; i < count; i++)
        items[i] = item_of(m, &events[i]);
    c->command = post_append(w->rig, c->caller.ptr, m->id.ptr, items, count);
    w->sent += count;
}

static void post_new(struct walk *w)
{
    struct run_model *m = &w->runs[draw(w, RUNS)];
    struct model_event events[ITEMS_MAX];
    size_t count = 1 + draw(w, draw(w, 2) ? ITEMS_MAX : 1);
    for (size_t i = 0; i < count; i++)
        events[i] = next_event(w, m);
    if (m->record_count + COMMANDS_MAX * ITEMS_MAX < MODEL_RECORDS_MAX)
        post_call(w, m, events, count);
}

/* --- what they hear ------------------------------------------------------------------------------------ */

static void check_place(struct walk *w, const struct run_model *m, const struct append_item *item,
                        const struct model_event *e, int64_t seq, bool duplicate)
{
    const struct model_record *r = &m->records[seq - 1];
    const struct uuid *id = duplicate && m->flaw == FLAW_DUPLICATE_GETS_ITS_OWN_ID ? &e->id : &r->event.id;
    same_number(w, "the error of an event that is written", item->err.code, ERR_OK);
    same_number(w, "duplicate", item->place.duplicate, duplicate);
    same_number(w, "runSeq", item->place.seq, seq);
    same_number(w, "persistedAt", item->place.persisted_ms, r->persisted_ms);
    if (memcmp(&item->place.event_id, id, sizeof *id) != 0)
        blame(w, "the eventId of %.*s at %lld is not the one that is stored", STR_ARG(e->type),
              (long long)seq);
}

static size_t place_of(const char *const *names, size_t count, struct str name)
{
    size_t i = 0;
    while (i < count && !str_is(name, names[i]))
        i++;
    return i;
}

/* What a new event meets: in the end everything was met by everything. */
static void note_meeting(struct walk *w, const struct model_event *e, const char *of_run, const char *of_step)
{
    size_t status = place_of(statuses, STATUSES, str_of(of_run));
    size_t type = place_of(types, TYPES, e->type);
    if (type == TYPES)
        return;
    w->of_runs[status][type]++;
    if (type >= STEP_TYPES)
        return;
    w->of_steps[status][place_of(states, STATES, str_of(of_step ? of_step : "none"))][type]++;
}

static bool all_met(const struct walk *w)
{
    for (size_t s = 0; s < STATUSES; s++)
        for (size_t t = 0; t < TYPES; t++)
            if (!w->of_runs[s][t])
                return false;
    for (size_t s = 1; s <= 2; s++) /* RUNNING, PAUSED */
        for (size_t i = 0; i < STATES; i++)
            for (size_t t = 0; t < STEP_TYPES; t++)
                if (!w->of_steps[s][i][t])
                    return false;
    return true;
}

static void check_item(struct walk *w, struct run_model *m, const struct append_item *item,
                       const struct model_event *e)
{
    const struct model_refusal *refusal = NULL;
    char words[200];
    int64_t seq = 0;
    size_t before = m->record_count;
    size_t refusals = m->refusal_count;
    const char *status = m->status, *state = run_model_attempt(m, e->step, e->attempt);
    enum model_answer answer = run_model_append(m, e, w->rig->wall_us / 1000, &seq, &refusal);
    if (m->record_count > before || m->refusal_count > refusals)
        note_meeting(w, e, status, state);
    w->answers[answer]++;
    w->invalid += m->record_count > before && m->records[before].prior;
    switch (answer) {
    case MODEL_WRITTEN:
    case MODEL_DUPLICATE:
        check_place(w, m, item, e, seq, answer == MODEL_DUPLICATE);
        break;
    case MODEL_ID_IS_ANOTHERS:
        same_number(w, "the error of another's eventId", item->err.code, ERR_EVENT_ID_CONFLICT);
        break;
    case MODEL_WRONG_ENVELOPE:
        same_number(w, "the error of another envelope", item->err.code, ERR_ENVELOPE_MISMATCH);
        break;
    case MODEL_REFUSED: /* the same words each time */
        same_number(w, "the error of a refusal", item->err.code, ERR_INVALID_TRANSITION);
        snprintf(words, sizeof words, "from %s there is no way to %s by this event", refusal->prior,
                 refusal->attempted);
        same_text(w, "a refusal", str_of(item->err.detail), str_of(words));
        break;
    }
}

static void check_call(struct walk *w, const struct call *c)
{
    struct run_model *m = c->run;
    if (m->exists && !str_equal(m->tenant, c->caller)) {
        same_number(w, "the answer to another tenant", c->command->base.result, ERR_AUTHZ_TENANT_FORBIDDEN);
        w->forbidden++;
        return;
    }
    if (c->command->base.result != ERR_OK) {
        blame(w, "a call is refused: %s", c->command->base.err.detail);
        return;
    }
    for (size_t i = 0; i < c->command->item_count; i++) {
        const struct append_item *item = &c->command->items[i];
        if (m->exists || str_equal(c->events[i].tenant, c->caller))
            check_item(w, m, item, &c->events[i]);
        else /* a run is opened for the caller's tenant alone */
            same_number(w, "the error of the first event of another tenant", item->err.code,
                        ERR_AUTHZ_TENANT_FORBIDDEN);
    }
}

/* --- what is stored ------------------------------------------------------------------------------------ */

static void compare_step(struct walk *w, const struct run_model *m, const struct run_step_row *s)
{
    int64_t attempt;
    const char *status = run_model_step(m, s->step, &attempt);
    same_text(w, "the status of a step", str_of(step_status_text((enum step_status)s->state)),
              str_of(status ? status : "unheard of"));
    same_number(w, "the attempt of a step", s->attempt, attempt);
}

static void compare_run(struct walk *w, const struct run_model *m)
{
    struct run_row run;
    struct rig *r = w->rig;
    if (!find_run(r, m->id.ptr, &run)) {
        if (m->exists)
            blame(w, "run %.*s is not there", STR_ARG(m->id));
        return;
    }
    same_number(w, "whether the run is there", true, m->exists);
    same_text(w, "the status", str_of(run_status_text((enum run_status)run.state)), str_of(m->status));
    same_number(w, "lastRunSeq", run.last_seq, (int64_t)m->record_count);
    same_number(w, "inconsistent", run.inconsistent != 0, m->inconsistent);
    same_number(w, "queuedAt", run.queued_ms, m->queued_ms);
    same_number(w, "startedAt", run.started_ms, m->started_ms);
    same_number(w, "endedAt", run.ended_ms, m->ended_ms);
    same_number(w, "the number of steps", run.step_count, (int64_t)m->step_count);
    for (int64_t i = 0; i < run.step_count && !w->fault[0]; i++) {
        struct run_step_row step = {.run = run.num, .idx = i};
        assert_true(rig_row(r, &table_run_step_row, &step));
        compare_step(w, m, &step);
    }
}

/* As of one runSeq: the reduction that readers use against another one by the model's rules. */
static void compare_at(struct walk *w, const struct run_model *m, const struct run_projection *p)
{
    same_text(w, "the status as of a runSeq", str_of(run_status_text(p->status)), str_of(m->status));
    same_number(w, "the watermark", p->last_seq, (int64_t)m->record_count);
    same_number(w, "steps as of a runSeq", (int64_t)p->step_count, (int64_t)m->step_count);
    for (const struct projected_step *s = p->steps; s; s = s->next) {
        int64_t attempt;
        const char *status = run_model_step(m, s->name, &attempt);
        same_text(w, "a step as of a runSeq", str_of(step_status_text(s->state.status)),
                  str_of(status ? status : "unheard of"));
        same_number(w, "its attempt", s->state.attempt, attempt);
    }
}

static void compare_record(struct walk *w, const struct run_model *m, const struct run_row *run,
                           const struct run_event_row *e, const struct model_record *r)
{
    same_text(w, "a record's type", run_event_name(e), r->event.type);
    same_text(w, "a record's step", e->step, r->event.step);
    same_number(w, "a record's attempt", e->attempt, r->event.attempt);
    same_number(w, "a record's time", e->persisted_ms, r->persisted_ms);
    same_text(w, "a record's plan", run_event_plan(run, e), r->event.plan);
    same_text(w, "a record's version", run_event_version(run, e), r->event.version);
    same_text(w, "a record's id", e->event_id,
              (struct str){(const char *)r->event.id.bytes, sizeof r->event.id.bytes});
    (void)m;
}

static void compare_history(struct walk *w, const struct run_model *m)
{
    struct run_model *again = must_alloc(sizeof *again);
    struct run_projection p = {0};
    struct arena *a = arena_new(1 << 14);
    const struct run_row run = run_of(w->rig, m->id.ptr);
    size_t count;
    const struct run_event_row *events = events_of(w->rig, m->id.ptr, &count);
    again->flaw = m->flaw;
    run_model_start(again, m->id);
    run_projection_start(&p, a);
    same_number(w, "the number of records", (int64_t)count, (int64_t)m->record_count);
    for (size_t i = 0; i < count && !w->fault[0]; i++) {
        const struct model_record *r = &m->records[i];
        compare_record(w, m, &run, &events[i], r);
        run_model_reduce(again, &r->event, r->persisted_ms);
        run_projection_apply(&p, events[i].seq, (enum run_event_type)events[i].type, events[i].step,
                             events[i].attempt, NULL);
        compare_at(w, again, &p);
    }
    same_text(w, "the status reduced again", str_of(again->status), str_of(m->status));
    run_projection_free(&p);
    arena_free(a);
    free(again);
}

struct alert_check {
    struct walk *walk;
    int64_t nums[RUNS];
};

static bool check_alert(const void *row, void *arg)
{
    const struct alert_row *a = row;
    struct alert_check *c = arg;
    struct walk *w = c->walk;
    size_t n = 0;
    while (n < RUNS && c->nums[n] != a->run)
        n++;
    if (n == RUNS || a->seq < 1 || (size_t)a->seq > w->runs[n].record_count) {
        blame(w, "an alert is about nothing");
        return false;
    }
    struct model_record *r = &w->runs[n].records[a->seq - 1];
    r->alerts++;
    same_text(w, "the event of an alert", a->event_id,
              (struct str){(const char *)r->event.id.bytes, sizeof r->event.id.bytes});
    same_text(w, "its type", a->event_type, r->event.type);
    same_text(w, "its prior state", a->prior, str_of(r->prior ? r->prior : "(it was valid)"));
    same_text(w, "its attempted state", a->attempted, str_of(r->attempted ? r->attempted : "(valid)"));
    same_number(w, "its time", a->persisted_ms, r->persisted_ms);
    same_text(w, "its code", a->code, STR("INVALID_TRANSITION"));
    return true;
}

static void compare_alerts(struct walk *w)
{
    struct alert_check c = {.walk = w};
    struct reader *reader = w->rig->reader;
    struct err err;
    for (size_t n = 0; n < RUNS; n++) {
        struct run_row run = {0};
        if (find_run(w->rig, w->runs[n].id.ptr, &run))
            c.nums[n] = run.num;
        for (size_t i = 0; i < w->runs[n].record_count; i++)
            w->runs[n].records[i].alerts = 0;
    }
    assert_int_equal(reader->ops->reader_begin(reader, &err), ERR_OK);
    assert_int_equal(reader->ops->reader_scan(reader, &table_alert_row, check_alert, &c, &err), ERR_OK);
    reader->ops->reader_end(reader);
    for (size_t n = 0; n < RUNS; n++)
        for (size_t i = 0; i < w->runs[n].record_count; i++)
            same_number(w, "the number of alerts about an event", w->runs[n].records[i].alerts,
                        w->runs[n].records[i].prior != NULL);
}

/* --- one round ----------------------------------------------------------------------------------------- */

/* What was posted goes through, or a failing commit loses it whole: then nobody was told it was written. */
static void step_and_check(struct walk *w, bool loses)
{
    struct rig *r = w->rig;
    size_t commits = r->commits;
    r->failures = loses ? 1 : 0;
    rig_step(r);
    bool lost = loses && r->failures == 0;
    r->failures = 0;
    for (size_t i = 0; i < w->call_count; i++) {
        const struct call *c = &w->calls[i];
        assert_true(rig_is_done(&c->command->base));
        if (lost && c->command->base.result == ERR_STORAGE_DB_ERROR)
            w->lost++;
        else if (lost) /* it wanted nothing written */
            continue;
        else
            check_call(w, c);
    }
    assert_true(!lost || r->commits == commits);
    for (size_t i = 0; i < w->call_count && !w->fault[0]; i++)
        compare_run(w, w->calls[i].run);
    w->call_count = 0;
    arena_reset(r->arena);
}

static void random_batch(struct walk *w)
{
    size_t count = 1 + draw(w, draw(w, 3) ? COMMANDS_MAX : 1);
    for (size_t i = 0; i < count; i++)
        post_new(w);
    rig_pass(w->rig, (int64_t)draw(w, 1500));
    step_and_check(w, draw(w, 40) == 0);
    if (w->rig->shared && draw(w, 3) == 0)
        rig_switch_node(w->rig);
}

/* All that was ever said, once more and in any order: everything is known already. */
static void say_all_again(struct walk *w)
{
    for (size_t n = 0; n < RUNS; n++) {
        struct run_model *m = &w->runs[n];
        size_t records = m->record_count;
        for (size_t at = draw(w, 3); at < records && !w->fault[0];) {
            struct model_event events[ITEMS_MAX];
            size_t count = 0;
            for (; count < ITEMS_MAX && at < records; at += 1 + draw(w, 3)) {
                events[count] = m->records[records - 1 - at].event;
                if (draw(w, 2))
                    events[count].id = uuid_v4();
                count++;
            }
            post_call(w, m, events, count);
            step_and_check(w, false);
        }
        same_number(w, "records after all was said again", (int64_t)m->record_count, (int64_t)records);
    }
}

static void compare_all(struct walk *w)
{
    for (size_t n = 0; n < RUNS && !w->fault[0]; n++) {
        compare_run(w, &w->runs[n]);
        if (w->runs[n].exists)
            compare_history(w, &w->runs[n]);
    }
    if (!w->fault[0])
        compare_alerts(w);
    arena_reset(w->rig->arena);
}

static void round_of(struct walk *w, enum model_flaw flaw, bool validates, int batches)
{
    static char names[RUNS][24];
    struct rig *r = w->rig;
    struct err err;
    arena_keep(r->arena, ARENA_KEEP_BYTES);
    assert_int_equal(
        settings_set(&r->settings, "engine.append_validation", validates ? "on" : "off", ORIGIN_FLAG, &err),
        ERR_OK);
    for (size_t n = 0; n < RUNS; n++) {
        snprintf(names[n], sizeof names[n], "run-%zu", n);
        w->runs[n].flaw = flaw;
        w->runs[n].validates = validates;
        run_model_start(&w->runs[n], str_of(names[n]));
    }
    for (int i = 0; i < batches && !w->fault[0]; i++)
        random_batch(w);
    compare_all(w);
    if (w->fault[0])
        return;
    say_all_again(w);
    rig_restart(r, 5000);
    say_all_again(w);
    compare_all(w);
}

/* --- tests --------------------------------------------------------------------------------------------- */

static bool is_long(void)
{
    const char *text = getenv("WEIR_TEST_LONG");
    return text && str_is(str_of(text), "1");
}

/* How many new events all rounds together send: a million on the fast store. */
static size_t events_wanted(const struct rig *r)
{
    if (r->shared)
        return is_long() ? 20000 : 400;
    return r->on_disk ? (is_long() ? 100000 : 1500) : (is_long() ? 1000000 : 3000);
}

static uint64_t seed(void)
{
    int64_t n = 1;
    const char *text = getenv("WEIR_SEED");
    return text && str_to_int(str_of(text), 0, INT64_MAX, &n) ? (uint64_t)n : 1;
}

static void walk(bool validates)
{
    struct walk *w = must_alloc(sizeof *w);
    w->runs = must_alloc(RUNS * sizeof *w->runs);
    w->random = seed() + validates;
    void *rig;
    rig_up(&rig);
    size_t written = 0, wanted = events_wanted(rig);
    const bool in_memory = !((struct rig *)rig)->on_disk; /* the longest walk: it meets everything */
    while (written < wanted || (in_memory && !all_met(w) && written < wanted + EVENTS_MORE_MAX)) {
        if (written) {
            rig_down(&rig); /* `weir verify` has nothing to say of it */
            rig_up(&rig);
        }
        w->rig = rig;
        round_of(w, FLAW_NONE, validates, w->rig->shared ? BATCHES_A_ROUND / 4 : BATCHES_A_ROUND);
        if (w->fault[0])
            fail_msg("%s", w->fault);
        written = w->answers[MODEL_WRITTEN] + w->answers[MODEL_REFUSED];
    }
    size_t sent = w->sent;
    print_message("%zu events sent: %zu written (%zu invalid), %zu duplicates, %zu refused, %zu of another's "
                  "id, %zu of another envelope, %zu calls of other tenants, %zu calls lost\n",
                  sent, w->answers[MODEL_WRITTEN], w->invalid, w->answers[MODEL_DUPLICATE],
                  w->answers[MODEL_REFUSED], w->answers[MODEL_ID_IS_ANOTHERS],
                  w->answers[MODEL_WRONG_ENVELOPE], w->forbidden, w->lost);
    for (int i = 0; i <= MODEL_WRONG_ENVELOPE; i++) /* the walk went everywhere */
        assert_true(w->answers[i] > 0 || (i == MODEL_REFUSED && !validates));
    assert_true(!in_memory || all_met(w));
    assert_true(validates ? w->invalid == 0 : w->invalid > 10);
    assert_true(w->forbidden > 0);
    rig_down(&rig);
    free(w->runs);
    free(w);
}

/* [RUN-025] [RUN-048] [RUN-076] [RUN-077] [RUN-078] [RUN-079] [RUN-104] [RUN-117] [RUN-118] [RUN-119]
 * [RUN-120] [RUN-124] [RUN-125] [RUN-126] [RUN-127] Layer 3 alone. */
TEST(test_random_streams_are_reduced_as_the_contract_says)
{
    walk(false);
}

/* [RUN-112] [RUN-113] [RUN-114] [RUN-115] [RUN-116] With layer 2 before it nothing invalid is
 * ever written. */
TEST(test_random_streams_are_refused_where_the_contract_says)
{
    walk(true);
}

/* The control: each wrong rule of the model is found by the same comparison. */
TEST_OF_GROUPS(test_a_model_with_a_wrong_rule_is_found_out, void *rig, NULL, NULL, "memory", NULL)
{
#define X(name) #name,
    static const char *const names[] = {"none", MODEL_FLAWS(X)};
#undef X
    struct walk *w = must_alloc(sizeof *w);
    w->runs = must_alloc(RUNS * sizeof *w->runs);
    for (int flaw = FLAW_NONE + 1; flaw < FLAW_COUNT; flaw++) {
        w->fault[0] = '\0';
        for (uint64_t round = 0; !w->fault[0] && round < 10; round++) {
            rig_up(&rig);
            w->rig = rig;
            w->random = seed() + 1000 * (uint64_t)flaw + round;
            w->call_count = 0;
            round_of(w, (enum model_flaw)flaw, false, BATCHES_A_ROUND / 2);
            rig_down(&rig);
        }
        if (!w->fault[0])
            fail_msg("nobody saw that %s", names[flaw]);
        print_message("%s: %s\n", names[flaw], w->fault);
    }
    free(w->runs);
    free(w);
}

int main(void)
{
    return rig_run_all();
}
