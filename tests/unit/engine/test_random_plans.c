/* Random plans, executed by our engine while workers succeed, fail, vanish and come late, signals arrive at
 * any moment, commits fail and the kernel is started anew. After every batch: no step started before what it
 * depends on was done, attempts stay within their bounds, every event was one the contract allows
 * (run_model.h), one event ends a run, counters are what a recount gives, tasks are those of open steps, and
 * what can go on does. In the end every run ends. On every store; WEIR_SEED=N walks another way. */
#include "unit/engine/engine_rig.h"
#include "unit/engine/run_model.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "engine/schedule.h"

#include "base/banned.h"

enum { STEPS_MAX = 10, RUNS = 3, LEASES_MAX = 64, POSTS_MAX = 4, BATCHES = 80, CALM_MAX = 600 };

struct drawn_step {
    uint32_t needs; /* a bit for each */
    int64_t max_attempts;
    int64_t retries; /* by signal, so far */
};

struct drawn_run {
    char name[24], plan[24];
    struct drawn_step steps[STEPS_MAX];
    size_t step_count;
    bool waits; /* onFailure */
    struct run_model *model;
    int64_t num;
    uint32_t tasks; /* counted anew after each batch */
    int ends;       /* terminal events */
};

struct posted {
    struct claim_command *claim;
    struct worker_command *work;
    struct signal_command *signal;
    struct drawn_run *of; /* RETRY_STEP */
    size_t step;
};

struct walk {
    struct rig *rig;
    uint64_t random;
    struct drawn_run runs[RUNS];
    struct claimed_task leases[LEASES_MAX]; /* also of long ago: workers that come late */
    size_t lease_count;
    struct posted posts[POSTS_MAX];
    size_t post_count;
    size_t completed, failed, cancelled, retried, skipped, refused, lost, paused;
};

static uint64_t draw(struct walk *w, uint64_t below)
{
    w->random = hash_mix(w->random + UINT64_C(0x9E3779B97F4A7C15));
    return w->random % below;
}

/* --- plans --------------------------------------------------------------------------------------------- */

static void draw_plan(struct walk *w, struct drawn_run *d)
{
    d->step_count = 1 + draw(w, STEPS_MAX);
    d->waits = draw(w, 2);
    for (size_t i = 0; i < d->step_count; i++) {
        d->steps[i] = (struct drawn_step){.max_attempts = 1 + (int64_t)draw(w, 3)};
        for (size_t on = 0; on < i; on++)
            if (draw(w, 3) == 0)
                d->steps[i].needs |= 1u << on;
    }
}

/* The steps stand in it from the last to the first: the order of a plan says nothing. */
static void put_drawn(struct walk *w, const struct drawn_run *d)
{
    struct strbuf b = {0};
    strbuf_addf(&b, "{\"planId\":\"%s\",\"planVersion\":\"1\",\"onFailure\":\"%s\",\"steps\":[", d->plan,
                d->waits ? "wait" : "fail");
    for (size_t at = d->step_count; at-- > 0;) {
        const char *comma = "";
        strbuf_addf(&b, "{\"stepId\":\"s%zu\",\"maxAttempts\":%lld,\"dependsOn\":[", at,
                    (long long)d->steps[at].max_attempts);
        for (size_t on = 0; on < at; on++)
            if (d->steps[at].needs & (1u << on)) {
                strbuf_addf(&b, "%s\"s%zu\"", comma, on);
                comma = ",";
            }
        strbuf_addf(&b, "]}%s", at ? "," : "");
    }
    strbuf_addf(&b, "]}");
    put_plan(w->rig, arena_copy(w->rig->arena, b.ptr, b.len));
    strbuf_free(&b);
}

static size_t row_of_step(const struct drawn_run *d, size_t step)
{
    return d->step_count - 1 - step;
}

/* --- what is checked after each batch ------------------------------------------------------------------ */

static bool is_done(const struct drawn_run *d, size_t step)
{
    int64_t attempt;
    char name[8];
    snprintf(name, sizeof name, "s%zu", step);
    const char *status = run_model_step(d->model, str_of(name), &attempt);
    return status && (strcmp(status, "SUCCESS") == 0 || strcmp(status, "SKIPPED") == 0);
}

static size_t step_number(struct str name)
{
    int64_t n = -1;
    assert_true(str_to_int((struct str){name.ptr + 1, name.len - 1}, 0, STEPS_MAX, &n));
    return (size_t)n;
}

static void check_step_event(const struct drawn_run *d, const struct run_event_row *e)
{
    size_t step = step_number(e->step);
    const struct drawn_step *s = &d->steps[step];
    assert_true(e->attempt <= s->max_attempts * (1 + s->retries));
    for (size_t on = 0; on < d->step_count; on++)
        if (e->type == RUN_EVENT_StepStarted && s->needs & (1u << on))
            assert_true(is_done(d, on));
}

static void check_event(struct walk *w, struct drawn_run *d, const struct run_row *run,
                        const struct run_event_row *e)
{
    struct model_event m = {.type = run_event_name(e),
                            .step = e->step,
                            .attempt = e->attempt,
                            .plan = run_event_plan(run, e),
                            .version = run_event_version(run, e)};
    bool was_over = run_model_is_over(d->model);
    memcpy(&m.id, e->event_id.ptr, sizeof m.id);
    if (e->step.ptr)
        check_step_event(d, e);
    assert_true(e->engine_attempt >= 1);
    assert_true(run_model_allows(d->model, &m)); /* layer 1: our engine writes nothing else */
    assert_true(!was_over || str_is(m.type, "ALERT_ESCALATED"));
    run_model_reduce(d->model, &m, e->persisted_ms);
    d->ends += !was_over && run_model_is_over(d->model);
    w->completed += e->type == RUN_EVENT_RunCompleted;
    w->failed += e->type == RUN_EVENT_RunFailed;
    w->cancelled += e->type == RUN_EVENT_RunCancelled;
    w->skipped += e->type == RUN_EVENT_StepSkipped;
    w->retried += e->type == RUN_EVENT_StepStarted && e->attempt > 1;
    w->paused += e->type == RUN_EVENT_RunPaused;
    w->lost += e->payload.ptr && strstr(e->payload.ptr, "worker_lost");
}

struct recount {
    uint32_t left, open, failed;
};

static int64_t unmet(const struct drawn_run *d, size_t step)
{
    int64_t n = 0;
    for (size_t on = 0; on < d->step_count; on++)
        n += (d->steps[step].needs & (1u << on)) && !is_done(d, on);
    return n;
}

/* What can go on has a task, what cannot has none. */
static void check_step(struct walk *w, const struct drawn_run *d, const struct run_row *run, size_t number,
                       struct recount *count)
{
    struct run_step_row s = {.run = run->num, .idx = (int64_t)row_of_step(d, number)};
    int64_t attempt;
    assert_true(rig_row(w->rig, &table_run_step_row, &s));
    const char *status = run_model_step(d->model, s.step, &attempt);
    bool goes_on = !run->ending && run->state != RUN_PAUSED && !run_model_is_over(d->model);
    bool waits = (s.state == STEP_PENDING && !s.waits) || (s.state == STEP_FAILED && s.tries_left);
    assert_int_equal(step_number(s.step), number);
    assert_string_equal(step_status_text((enum step_status)s.state), status ? status : "PENDING");
    assert_int_equal(s.attempt, attempt);
    assert_int_equal(s.waits, unmet(d, number));
    assert_true(s.state != STEP_RUNNING || s.task);
    assert_true(s.state == STEP_RUNNING || !s.task || (goes_on && !s.waits));
    assert_true(!goes_on || !waits || s.task);
    count->left += s.state != STEP_SUCCESS && s.state != STEP_SKIPPED;
    count->open += s.task != 0;
    count->failed += s.state == STEP_FAILED && !s.tries_left && !s.task;
}

static void check_run(struct walk *w, struct drawn_run *d)
{
    struct run_row run = run_of(w->rig, d->name);
    struct recount count = {0};
    while ((int64_t)d->model->record_count < run.last_seq) {
        struct run_event_row e = {.run = run.num, .seq = (int64_t)d->model->record_count + 1};
        assert_true(rig_row(w->rig, &table_run_event_row, &e));
        check_event(w, d, &run, &e);
    }
    for (size_t i = 0; i < d->step_count; i++)
        check_step(w, d, &run, i, &count);
    bool over = run_model_is_over(d->model);
    assert_string_equal(run_status_text((enum run_status)run.state), d->model->status);
    assert_int_equal(run.inconsistent, 0);
    assert_int_equal(run.left_count, count.left);
    assert_int_equal(run.open_count, count.open);
    assert_int_equal(run.failed_count, count.failed);
    struct timer_row timer = {.owner = run.num, .kind = run_grace_timer.number};
    assert_int_equal(d->tasks, count.open);
    assert_int_equal(d->ends, over);
    assert_true(!over || (d->tasks == 0 && !rig_row(w->rig, &table_timer_row, &timer) && !count.open));
    assert_true(strcmp(d->model->status, "COMPLETED") != 0 || !count.left);
    /* Nothing under way and nobody to wait for: then it waits for an operator, as its plan says. */
    if (!over && !count.open && run.state != RUN_PAUSED && !run.ending)
        assert_true(d->waits && count.failed);
}

static bool count_task(const void *row, void *arg)
{
    const struct task_row *t = row;
    struct walk *w = arg;
    for (size_t i = 0; i < RUNS; i++)
        w->runs[i].tasks += t->owner == step_task_owner.number && t->subject == w->runs[i].num;
    return true;
}

static void check_all(struct walk *w)
{
    struct reader *reader = w->rig->reader;
    struct err err;
    for (size_t i = 0; i < RUNS; i++)
        w->runs[i].tasks = 0;
    assert_int_equal(reader->ops->reader_begin(reader, &err), ERR_OK);
    assert_int_equal(reader->ops->reader_scan(reader, &table_task_row, count_task, w, &err), ERR_OK);
    reader->ops->reader_end(reader);
    for (size_t i = 0; i < RUNS; i++)
        check_run(w, &w->runs[i]);
}

/* --- what happens -------------------------------------------------------------------------------------- */

static void post_claim(struct walk *w)
{
    uint32_t max = 1 + (uint32_t)draw(w, 4);
    w->posts[w->post_count++] = (struct posted){.claim = rig_post_claim(w->rig, "w", max, 0)};
}

static void post_work(struct walk *w)
{
    if (!w->lease_count)
        return;
    const struct claimed_task *t = &w->leases[draw(w, w->lease_count)];
    static const struct command_type *const verbs[] = {&start_command_type,     &start_command_type,
                                                       &finish_command_type,    &finish_command_type,
                                                       &heartbeat_command_type, &release_command_type};
    size_t verb = draw(w, LENGTH_OF(verbs));
    struct worker_command *c = rig_post_work(w->rig, verbs[verb], t, draw(w, 3) > 0);
    c->items[0].outcome.retryable = draw(w, 4) > 0;
    w->posts[w->post_count++] = (struct posted){.work = c};
}

static const char *signal_payload(struct walk *w, enum signal_type type, size_t step)
{
    struct arena *a = w->rig->arena;
    switch (type) {
    case SIGNAL_RETRY_STEP:
    case SIGNAL_SKIP_STEP:
        return arena_printf(a, "{\"stepId\":\"s%zu\"}", step).ptr;
    case SIGNAL_INJECT_OVERRIDE:
        return arena_printf(a, "{\"stepId\":\"s%zu\",\"override\":{\"x\":1}}", step).ptr;
    case SIGNAL_UPDATE_TARGET:
        return arena_printf(a, "{\"stepId\":\"s%zu\",\"newTarget\":{\"x\":1}}", step).ptr;
    case SIGNAL_UPDATE_PARAMS:
        return "{\"params\":{\"a\":1}}";
    case SIGNAL_ESCALATE_ALERT:
        return "{\"level\":\"INFO\"}";
    case SIGNAL_EMERGENCY_STOP:
        return draw(w, 2) ? "{\"reason\":\"fire\",\"forceKill\":true}" : "{\"reason\":\"fire\"}";
    case SIGNAL_PAUSE:
    case SIGNAL_RESUME:
    case SIGNAL_CANCEL:
    case SIGNAL_RETRY_RUN:
    case SIGNAL_TYPE_COUNT:
        break;
    }
    return "{}";
}

static void post_one_signal(struct walk *w, struct drawn_run *d, enum signal_type type, size_t step)
{
    struct sent s = {.run = d->name,
                     .type = type,
                     .payload = signal_payload(w, type, step),
                     .roles = type == SIGNAL_ESCALATE_ALERT ? "System" : "Admin",
                     .reason = "because"};
    d->steps[step].retries += type == SIGNAL_RETRY_STEP; /* taken back when it is refused */
    w->posts[w->post_count++] = (struct posted){.signal = post_signal(w->rig, &s), .of = d, .step = step};
}

static void post_any_signal(struct walk *w)
{
    static const enum signal_type often[] = {
        SIGNAL_PAUSE,         SIGNAL_PAUSE,         SIGNAL_RESUME,          SIGNAL_RESUME,
        SIGNAL_RESUME,        SIGNAL_RETRY_STEP,    SIGNAL_RETRY_STEP,      SIGNAL_RETRY_STEP,
        SIGNAL_SKIP_STEP,     SIGNAL_UPDATE_PARAMS, SIGNAL_INJECT_OVERRIDE, SIGNAL_UPDATE_TARGET,
        SIGNAL_ESCALATE_ALERT};
    struct drawn_run *d = &w->runs[draw(w, RUNS)];
    enum signal_type type = often[draw(w, LENGTH_OF(often))];
    if (draw(w, 40) == 0)
        type = draw(w, 2) ? SIGNAL_CANCEL : SIGNAL_EMERGENCY_STOP;
    post_one_signal(w, d, type, draw(w, d->step_count));
}

static void note_leases(struct walk *w, const struct claim_command *c)
{
    for (uint32_t i = 0; i < c->task_count; i++) {
        size_t at = w->lease_count < LEASES_MAX ? w->lease_count++ : draw(w, LEASES_MAX);
        w->leases[at] = c->tasks[i];
    }
}

static void step_and_note(struct walk *w)
{
    rig_step(w->rig);
    for (size_t i = 0; i < w->post_count; i++) {
        const struct posted *p = &w->posts[i];
        if (p->claim && rig_is_done(&p->claim->base) && p->claim->base.result == ERR_OK)
            note_leases(w, p->claim);
        if (p->work)
            w->refused += p->work->items[0].code != ERR_OK;
        if (p->signal && p->signal->type == SIGNAL_RETRY_STEP &&
            (p->signal->base.result != ERR_OK || !p->signal->answer.succeeded))
            p->of->steps[p->step].retries--;
    }
    w->post_count = 0;
}

static void random_batch(struct walk *w)
{
    struct rig *r = w->rig;
    size_t count = 1 + draw(w, POSTS_MAX);
    for (size_t i = 0; i < count; i++) {
        uint64_t what = draw(w, 10);
        if (what < 3)
            post_claim(w);
        else if (what < 8)
            post_work(w);
        else
            post_any_signal(w);
    }
    r->failures = draw(w, 40) == 0;
    step_and_note(w);
    r->failures = 0;
    /* Mostly moments; now and then longer than a pause before another try, a lease, a time of grace. */
    rig_pass(r, (int64_t)draw(w, draw(w, 12) ? 300 : 40000));
    if (draw(w, 60) == 0)
        rig_restart(r, (int64_t)draw(w, 2000));
    if (r->shared && draw(w, 8) == 0)
        rig_switch_node(r);
}

/* Workers that do what they are told, operators that want it to end. */
static void calm_batch(struct walk *w, struct drawn_run *d)
{
    struct rig *r = w->rig;
    if (strcmp(d->model->status, "PAUSED") == 0)
        post_one_signal(w, d, SIGNAL_RESUME, 0);
    else if (draw(w, 3) == 0)
        post_one_signal(w, d, SIGNAL_RETRY_STEP, draw(w, d->step_count));
    post_claim(w);
    step_and_note(w);
    for (size_t i = 0; i < w->lease_count; i++) {
        rig_work(r, &start_command_type, &w->leases[i]);
        rig_work(r, &finish_command_type, &w->leases[i]);
    }
    w->lease_count = 0;
    rig_pass(r, 40000);
}

static bool all_over(const struct walk *w)
{
    for (size_t i = 0; i < RUNS; i++)
        if (!run_model_is_over(w->runs[i].model))
            return false;
    return true;
}

static void round_of(struct walk *w, int trial, int batches)
{
    struct rig *r = w->rig;
    w->lease_count = 0;
    for (size_t i = 0; i < RUNS; i++) {
        struct drawn_run *d = &w->runs[i];
        struct run_model *model = d->model;
        *d = (struct drawn_run){.model = model};
        snprintf(d->name, sizeof d->name, "run-%d-%zu", trial, i);
        snprintf(d->plan, sizeof d->plan, "plan-%d-%zu", trial, i);
        draw_plan(w, d);
        run_model_start(model, str_of(d->name));
        put_drawn(w, d);
        start_run(r, d->name, d->plan);
        d->num = run_of(r, d->name).num;
    }
    for (int i = 0; i < batches; i++) {
        random_batch(w);
        check_all(w);
    }
    for (int i = 0; i < CALM_MAX && !all_over(w); i++) {
        calm_batch(w, &w->runs[(size_t)i % RUNS]);
        check_all(w);
    }
    assert_true(all_over(w));
    rig_expect_sound(r);
}

/* --- tests --------------------------------------------------------------------------------------------- */

static int trials_wanted(const struct rig *r)
{
    const char *text = getenv("WEIR_TEST_LONG");
    int more = text && str_is(str_of(text), "1") ? 50 : 1;
    return more * (r->shared ? 3 : r->on_disk ? 12 : 40);
}

static uint64_t seed(void)
{
    int64_t n = 1;
    const char *text = getenv("WEIR_SEED");
    return text && str_to_int(str_of(text), 0, INT64_MAX, &n) ? (uint64_t)n : 1;
}

/* [RUN-044] [RUN-105] [RUN-106] [RUN-100] [RUN-101] [RUN-102] [RUN-103] among all that can happen to a run */
TEST(test_random_plans_keep_every_promise)
{
    void *rig;
    rig_up(&rig);
    struct walk *w = must_alloc(sizeof *w);
    w->random = seed();
    for (size_t i = 0; i < RUNS; i++)
        w->runs[i].model = must_alloc(sizeof *w->runs[i].model);
    int trials = trials_wanted(rig);
    for (int trial = 0; trial < trials; trial++) {
        w->rig = rig;
        round_of(w, trial, BATCHES);
        if (!w->rig->shared && trial % 5 == 4) { /* what old runs have left makes checking slow */
            rig_down(&rig);
            rig_up(&rig);
            w->rig = rig;
        }
    }
    print_message("%d plans, %d runs: %zu completed, %zu failed, %zu cancelled, %zu pauses, %zu attempts "
                  "after the first, %zu skipped, %zu workers lost, %zu calls of workers refused\n",
                  trials * RUNS, trials * RUNS, w->completed, w->failed, w->cancelled, w->paused, w->retried,
                  w->skipped, w->lost, w->refused);
    assert_int_equal(w->completed + w->failed + w->cancelled, trials * RUNS);
    if (!w->rig->shared) /* the walk went everywhere */
        assert_true(w->completed && w->failed && w->cancelled && w->retried && w->skipped && w->lost &&
                    w->refused && w->paused);
    for (size_t i = 0; i < RUNS; i++)
        free(w->runs[i].model);
    free(w);
    rig_down(&rig);
}

int main(void)
{
    return rig_run_all();
}
