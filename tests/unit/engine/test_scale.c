/* What an event costs does not depend on what came before it: rows read and written for one event are counted
 * in a run at its beginning and after thousands of records, in a store of a few runs and of very many, and
 * for steps of plans as long and as wide as they may be. Counts do not depend on the machine; processor time
 * is compared beside them, with room. WEIR_TEST_LONG=1: 10,000 steps, 100,000 runs. */
#include "unit/engine/engine_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/banned.h"

enum { ARENA_KEEP_BYTES = 1 << 20, SAMPLE = 64, CLAIM_AT_ONCE = 256, TIMES_MORE_MAX = 5, LATE_LOOKS = 16 };

static bool is_long(void)
{
    const char *text = getenv("WEIR_TEST_LONG");
    return text && str_is(str_of(text), "1");
}

static int64_t size_wanted(const struct rig *r, int64_t in_long, int64_t at_commit)
{
    if (r->shared)
        return is_long() ? in_long / 20 : at_commit / 10;
    return is_long() ? in_long : at_commit;
}

/* --- the meter ----------------------------------------------------------------------------------------- */

struct meter {
    size_t fetched, written;
    int64_t cpu_us;
};

/* Of this thread, which decides and commits. The one that copies the WAL works now and then, for thousands of
 * commits at a time. */
static int64_t cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static size_t sum(const size_t of[TABLES_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < table_count; i++)
        n += of[i];
    return n;
}

/* One command, alone in its batch. */
static void step_metered(struct rig *r, const struct command *c, struct meter *m)
{
    size_t before = sum(r->fetches);
    int64_t began = cpu_us();
    memset(r->writes, 0, sizeof r->writes);
    rig_step(r);
    assert_true(rig_is_done(c));
    assert_int_equal(c->result, ERR_OK);
    m->cpu_us += cpu_us() - began;
    m->fetched += sum(r->fetches) - before;
    m->written += sum(r->writes);
}

static void append_metered(struct rig *r, const char *run, const char *type, const char *step,
                           struct meter *m)
{
    struct append_item item = outside_item(r, run, &(struct outside){.type = type, .step = step});
    struct append_command *c = post_append(r, TENANT, run, &item, 1);
    step_metered(r, &c->base, m);
    assert_int_equal(c->items[0].err.code, ERR_OK);
    assert_false(c->items[0].place.duplicate);
}

static void same_work(const char *what, const struct meter *early, const struct meter *late)
{
    print_message("%s: %zu rows read and %zu written at first, %zu and %zu later; %lld us of processor "
                  "time, then %lld\n",
                  what, early->fetched, early->written, late->fetched, late->written,
                  (long long)early->cpu_us, (long long)late->cpu_us);
    assert_true(early->fetched && early->written);
    assert_int_equal(late->fetched, early->fetched);
    assert_int_equal(late->written, early->written);
    assert_true(late->cpu_us < TIMES_MORE_MAX * early->cpu_us + 20000);
}

/* --- events of engines outside ------------------------------------------------------------------------- */

/* A step's whole life, of SAMPLE steps. */
static struct meter append_steps(struct rig *r, const char *run, int64_t from)
{
    struct meter m = {0};
    for (int64_t i = from; i < from + SAMPLE; i++) {
        char step[32];
        snprintf(step, sizeof step, "step-%lld", (long long)i);
        append_metered(r, run, "StepStarted", step, &m);
        append_metered(r, run, "StepCompleted", step, &m);
        arena_reset(r->arena);
    }
    return m;
}

RIG_TEST(test_an_event_costs_the_same_however_long_its_run_is, r)
{
    int64_t steps = size_wanted(r, 10000, 1500);
    struct meter unused = {0};
    arena_keep(r->arena, ARENA_KEEP_BYTES);
    append_metered(r, "run", "RunStarted", NULL, &unused);
    struct meter early = append_steps(r, "run", 0);
    for (int64_t i = SAMPLE; i < steps - SAMPLE; i += SAMPLE)
        append_steps(r, "run", i);
    struct meter late = append_steps(r, "run", steps);
    same_work("64 steps of a long run", &early, &late);
    append_metered(r, "run", "RunCompleted", NULL, &unused);
    assert_status(r, "run", "COMPLETED");
}

static struct meter open_runs(struct rig *r, int64_t from)
{
    struct meter m = {0};
    for (int64_t i = from; i < from + SAMPLE; i++) {
        char run[32];
        snprintf(run, sizeof run, "run-%lld", (long long)i);
        append_metered(r, run, "RunStarted", NULL, &m);
        arena_reset(r->arena);
    }
    return m;
}

static struct meter go_on(struct rig *r)
{
    struct meter m = {0};
    for (int64_t i = 0; i < SAMPLE; i++) {
        char run[24];
        snprintf(run, sizeof run, "run-%lld", (long long)i);
        append_metered(r, run, "RunPaused", NULL, &m);
        append_metered(r, run, "RunResumed", NULL, &m);
        arena_reset(r->arena);
    }
    return m;
}

RIG_TEST(test_an_event_costs_the_same_however_many_runs_there_are, r)
{
    /* In memory every look at a run's events sorts those of all: checking it would take hours. */
    int64_t runs = r->on_disk ? size_wanted(r, 100000, 4000) : size_wanted(r, 5000, 800);
    struct meter other = {0};
    char step[24];
    arena_keep(r->arena, ARENA_KEEP_BYTES);
    open_runs(r, 0); /* the first one also makes the tenant */
    struct meter early = open_runs(r, SAMPLE);
    for (int i = 0; i < SAMPLE; i++) {
        snprintf(step, sizeof step, "s%d", i);
        append_metered(r, "early", i ? "StepStarted" : "RunStarted", i ? step : NULL, &other);
    }
    for (int64_t i = 2 * SAMPLE; i < runs; i += SAMPLE)
        open_runs(r, i);
    struct meter late = open_runs(r, runs + SAMPLE);
    for (int64_t i = 2; i <= LATE_LOOKS; i++) { /* one of them may bear the merge of what waited */
        struct meter again = open_runs(r, runs + i * SAMPLE);
        late = again.cpu_us < late.cpu_us ? again : late;
    }
    same_work("64 new runs", &early, &late);
    struct meter now = {0};
    for (int i = 0; i < SAMPLE; i++) {
        snprintf(step, sizeof step, "s%d", i);
        append_metered(r, "late", i ? "StepStarted" : "RunStarted", i ? step : NULL, &now);
    }
    same_work("64 events of a run", &other, &now);
    struct meter old = go_on(r);
    assert_true(old.written <= 2 * (now.written + early.written));
}

/* --- plans of our own ---------------------------------------------------------------------------------- */

static void put_big(struct rig *r, const char *name, int64_t steps, bool wide)
{
    struct strbuf b = {0};
    strbuf_addf(&b, "{\"planId\":\"%s\",\"planVersion\":\"1\",\"steps\":[{\"stepId\":\"s0\"}", name);
    for (int64_t i = 1; i < steps; i++) {
        strbuf_addf(&b, ",{\"stepId\":\"s%lld\",\"dependsOn\":[", (long long)i);
        for (int64_t on = wide && i == steps - 1 ? 1 : i - 1; on < i; on++)
            strbuf_addf(&b, "%s\"s%lld\"", on > 1 && wide && i == steps - 1 ? "," : "",
                        wide && i < steps - 1 ? 0LL : (long long)on);
        strbuf_addf(&b, "]}");
    }
    strbuf_addf(&b, "]}");
    put_plan(r, arena_copy(r->arena, b.ptr, b.len));
    strbuf_free(&b);
}

/* Claims what there is, up to so many, and does it; how many there were. */
static uint32_t do_some(struct rig *r, uint32_t max, struct meter *m)
{
    struct claim_command *c = rig_post_claim(r, "w", max, 0);
    step_metered(r, &c->base, m);
    for (uint32_t i = 0; i < c->task_count; i++) {
        struct worker_command *start = rig_post_work(r, &start_command_type, &c->tasks[i], true);
        step_metered(r, &start->base, m);
        struct worker_command *finish = rig_post_work(r, &finish_command_type, &c->tasks[i], true);
        step_metered(r, &finish->base, m);
        assert_int_equal(finish->items[0].code, ERR_OK);
    }
    return c->task_count;
}

RIG_TEST(test_a_step_costs_the_same_however_long_its_plan_is, r)
{
    int64_t steps = size_wanted(r, 10000, 1000), done = 0;
    struct meter unused = {0}, early = {0}, late = {0};
    arena_keep(r->arena, ARENA_KEEP_BYTES);
    put_big(r, "chain", steps, false);
    start_run(r, "run", "chain");
    for (; done < 8; done++)
        assert_int_equal(do_some(r, 1, &unused), 1);
    for (; done < 24; done++)
        assert_int_equal(do_some(r, 1, &early), 1);
    for (; done < steps - 17; done++, arena_reset(r->arena))
        assert_int_equal(do_some(r, 1, &unused), 1);
    for (; done < steps - 1; done++)
        assert_int_equal(do_some(r, 1, &late), 1);
    same_work("16 steps of a chain", &early, &late);
    assert_status(r, "run", "RUNNING");
    assert_int_equal(do_some(r, 1, &unused), 1);
    assert_status(r, "run", "COMPLETED");
    assert_int_equal(run_of(r, "run").last_seq, 2 * steps + 3);
}

/* One step, then all but two at once, then one that waits for all of those. */
RIG_TEST(test_a_plan_may_be_as_wide_as_it_may_be_long, r)
{
    int64_t steps = size_wanted(r, 10000, 1000), done = 0;
    struct meter unused = {0}, early = {0}, late = {0};
    arena_keep(r->arena, ARENA_KEEP_BYTES);
    put_big(r, "wide", steps, true);
    start_run(r, "run", "wide");
    assert_int_equal(do_some(r, CLAIM_AT_ONCE, &unused), 1);
    assert_int_equal(run_of(r, "run").open_count, steps - 2);
    assert_int_equal(do_some(r, 16, &early), 16);
    for (done = 16; done < steps - 2 - 16; arena_reset(r->arena)) {
        int64_t left = steps - 2 - 16 - done;
        done += do_some(r, (uint32_t)(left < CLAIM_AT_ONCE ? left : CLAIM_AT_ONCE), &unused);
    }
    assert_int_equal(do_some(r, 15, &late), 15);
    assert_int_equal(do_some(r, 1, &late), 1); /* the last of them, which makes the end ready */
    assert_true(late.fetched <= early.fetched + 16 && late.written <= early.written + 16);
    print_message("16 of %lld steps side by side: %zu rows read and %zu written at first, %zu and %zu at the "
                  "end; %lld us of processor time, then %lld\n",
                  (long long)steps, early.fetched, early.written, late.fetched, late.written,
                  (long long)early.cpu_us, (long long)late.cpu_us);
    assert_true(late.cpu_us < TIMES_MORE_MAX * early.cpu_us + 20000);
    assert_int_equal(do_some(r, CLAIM_AT_ONCE, &unused), 1);
    assert_status(r, "run", "COMPLETED");
    assert_int_equal(run_of(r, "run").last_seq, 2 * steps + 3);
}

int main(void)
{
    return rig_run_all();
}
