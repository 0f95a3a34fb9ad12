/* Timers: set and cancelled with the change they belong to, fired when their time has passed, not before. */
#include "unit/kernel/rig.h"

#include "kernel/timer_kind.h"

#include "base/banned.h"

enum { OWNER = 7, MANY = 3000, SECOND_MS = 1000, DAY_MS = 86400000 };

/* --- a kind that notes what it hears ---------------------------------------------------------------- */

static struct {
    size_t fired, loaded;
    int64_t owner, at_ms;
    int64_t again_ms; /* it sets itself again for so much later */
    bool cancels_next;
} heard;

static const struct timer_kind noted;

static void load(struct unit *u, int64_t owner)
{
    (void)u;
    (void)owner;
    heard.loaded++;
}

static void fire(struct unit *u, int64_t owner)
{
    heard.fired++;
    heard.owner = owner;
    heard.at_ms = u->now_ms;
    if (heard.again_ms)
        unit_timer_set(u, &noted, owner, u->now_ms + heard.again_ms);
    if (heard.cancels_next)
        unit_timer_cancel(u, &noted, owner + 1);
}

static const struct timer_kind noted = {
    .number = TIMER_KINDS_MAX - 1, .name = "noted", .owner_kind = TIMER_OF_RUN, .load = load, .fire = fire};

struct set_command {
    struct command base;
    int64_t first, count, due_ms; /* due_ms 0: cancelled */
    bool refuses;
};

static enum err_code decide_set(struct unit *u, struct command *base, struct err *err)
{
    const struct set_command *c = (const struct set_command *)base;
    for (int64_t owner = c->first; owner < c->first + c->count; owner++)
        if (c->due_ms)
            unit_timer_set(u, &noted, owner, c->due_ms);
        else
            unit_timer_cancel(u, &noted, owner);
    return c->refuses ? err_set(err, ERR_JOB_CONFLICT, "told to") : ERR_OK;
}

static const struct command_type set_command_type = {.name = "set", .decide = decide_set};

static int64_t now_ms(const struct rig *r)
{
    return r->wall_us / 1000;
}

static void set(struct rig *r, int64_t first, int64_t count, int64_t due_ms)
{
    struct set_command *c = ARENA_NEW(r->arena, struct set_command);
    *c = (struct set_command){.first = first, .count = count, .due_ms = due_ms};
    rig_post(r, &c->base, &set_command_type);
    rig_step(r);
    assert_true(rig_is_done(&c->base));
}

static void start(struct rig *r)
{
    memset(&heard, 0, sizeof heard);
    rig_timer_kind = &noted;
    rig_restart(r, 0);
}

static void step_after(struct rig *r, int64_t ms)
{
    rig_pass(r, ms);
    rig_step(r);
}

/* --- tests -------------------------------------------------------------------------------------------- */

RIG_TEST(test_a_timer_fires_once_when_its_time_has_passed_and_never_before, r)
{
    start(r);
    int64_t due_ms = now_ms(r) + SECOND_MS;
    set(r, OWNER, 1, due_ms);
    assert_int_equal(rig_rows(r, &table_timer_row), 1);
    step_after(r, SECOND_MS - 1);
    assert_int_equal(heard.fired, 0);
    step_after(r, 1);
    assert_int_equal(heard.fired, 1);
    assert_int_equal(heard.owner, OWNER);
    assert_true(heard.at_ms >= due_ms && heard.loaded);
    assert_int_equal(rig_rows(r, &table_timer_row), 0);
    step_after(r, DAY_MS);
    assert_int_equal(heard.fired, 1);
}

RIG_TEST(test_a_timer_is_there_after_a_restart, r)
{
    start(r);
    set(r, OWNER, 1, now_ms(r) + SECOND_MS);
    rig_restart(r, SECOND_MS / 2);
    rig_step(r);
    assert_int_equal(heard.fired, 0);
    rig_restart(r, SECOND_MS); /* its time passes while nobody is there */
    step_after(r, SECOND_MS);
    assert_int_equal(heard.fired, 1);
}

RIG_TEST(test_a_cancelled_timer_does_not_fire, r)
{
    start(r);
    set(r, OWNER, 1, now_ms(r) + SECOND_MS);
    set(r, OWNER, 1, 0);
    set(r, OWNER, 1, 0); /* one that is not set is cancelled, too */
    assert_int_equal(rig_rows(r, &table_timer_row), 0);
    step_after(r, 2 * SECOND_MS);
    assert_int_equal(heard.fired, 0);
}

RIG_TEST(test_a_timer_that_is_moved_fires_at_its_new_time, r)
{
    start(r);
    set(r, OWNER, 1, now_ms(r) + SECOND_MS);
    set(r, OWNER, 1, now_ms(r) + 3 * SECOND_MS);
    step_after(r, 3 * SECOND_MS - 1);
    assert_int_equal(heard.fired, 0);
    set(r, OWNER, 1, now_ms(r)); /* and to an earlier one */
    step_after(r, SECOND_MS);
    assert_int_equal(heard.fired, 1);
    assert_int_equal(rig_rows(r, &table_timer_row), 0);
}

/* More than a batch takes: none is lost, none fires twice. */
RIG_TEST(test_many_timers_of_one_moment_fire_each_once, r)
{
    start(r);
    set(r, 1, MANY, now_ms(r) + SECOND_MS);
    assert_int_equal(rig_rows(r, &table_timer_row), MANY);
    rig_pass(r, 2 * SECOND_MS);
    for (int steps = 0; rig_rows(r, &table_timer_row); steps++) {
        assert_true(steps < MANY);
        rig_pass(r, SECOND_MS);
        rig_step(r);
    }
    assert_int_equal(heard.fired, MANY);
}

RIG_TEST(test_a_timer_may_set_itself_again_and_cancel_another_of_its_batch, r)
{
    start(r);
    heard.again_ms = SECOND_MS;
    heard.cancels_next = true;
    set(r, OWNER, 2, now_ms(r) + SECOND_MS);
    step_after(r, 2 * SECOND_MS);
    assert_int_equal(heard.fired, 1);
    assert_int_equal(rig_rows(r, &table_timer_row), 1);
    heard.again_ms = 0;
    step_after(r, 2 * SECOND_MS);
    assert_int_equal(heard.fired, 2);
    assert_int_equal(rig_rows(r, &table_timer_row), 0);
}

/* With the write that it belongs to, or not at all; and what fired in a batch that failed fires again. */
RIG_TEST_UNSHARED(test_a_commit_that_fails_leaves_timers_as_they_were, r,
                  "failures are told to one connection")
{
    start(r);
    r->failures = 1;
    r->failure = ERR_STORAGE_DB_ERROR;
    set(r, OWNER, 1, now_ms(r) + SECOND_MS);
    step_after(r, 2 * SECOND_MS);
    assert_int_equal(heard.fired, 0);
    set(r, OWNER, 1, now_ms(r) + SECOND_MS);
    r->failures = 1;
    step_after(r, 2 * SECOND_MS);
    assert_int_equal(heard.fired, 1);
    assert_int_equal(rig_rows(r, &table_timer_row), 1);
    step_after(r, 2 * SECOND_MS);
    assert_int_equal(heard.fired, 2);
    assert_int_equal(rig_rows(r, &table_timer_row), 0);
}

/* Set ahead by a day it hastens nothing; set back, the timer waits for its time. */
RIG_TEST_UNSHARED(test_a_clock_that_jumps_fires_nothing_early, r, RIG_OWN_CLOCK)
{
    start(r);
    int64_t due_ms = now_ms(r) + 3600 * SECOND_MS / 2;
    set(r, OWNER, 1, due_ms);
    rig_set_wall(r, DAY_MS);
    step_after(r, SECOND_MS);
    assert_int_equal(heard.fired, 0);
    rig_set_wall(r, -DAY_MS - 600 * SECOND_MS);
    step_after(r, SECOND_MS);
    assert_int_equal(heard.fired, 0);
    rig_pass(r, due_ms - now_ms(r) - 1);
    rig_step(r);
    assert_int_equal(heard.fired, 0);
    step_after(r, 1);
    assert_int_equal(heard.fired, 1);
}

int main(void)
{
    return rig_run_all();
}
