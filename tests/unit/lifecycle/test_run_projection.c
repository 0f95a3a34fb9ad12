/* A run reduced from its events: steps in the order they were first heard of, each by its own name, and every
 * event moves the watermark. */
#include <stdio.h>

#include "case.h"

#include "base/must.h"
#include "lifecycle/run_projection.h"

#include "base/banned.h"

enum { STEPS = 300 };

static enum transition apply(struct run_projection *p, enum run_event_type type, const char *step,
                             int64_t attempt)
{
    return run_projection_apply(p, p->last_seq + 1, type, step ? str_of(step) : STR_ABSENT, attempt, NULL);
}

ARENA_TEST(test_steps_are_told_apart_and_stand_in_order, a)
{
    struct run_projection p = {0};
    char name[24];
    run_projection_start(&p, a);
    assert_int_equal(apply(&p, RUN_EVENT_RunStarted, NULL, 1), TRANSITION_DONE);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < STEPS; i++) {
            snprintf(name, sizeof name, "step-%d", i);
            assert_int_equal(apply(&p, round ? RUN_EVENT_StepCompleted : RUN_EVENT_StepStarted, name, 1),
                             TRANSITION_DONE);
        }
    assert_int_equal(p.step_count, STEPS);
    assert_int_equal(p.last_seq, 1 + 2 * STEPS);
    assert_int_equal(p.invalid, 0);
    int i = 0;
    for (const struct projected_step *s = p.steps; s; s = s->next, i++) {
        snprintf(name, sizeof name, "step-%d", i);
        assert_true(str_is(s->name, name));
        assert_int_equal(s->state.status, STEP_SUCCESS);
        assert_int_equal(s->state.attempt, 1);
        assert_ptr_equal(run_projection_step(&p, str_of(name)), s);
    }
    assert_int_equal(i, STEPS);
    assert_null(run_projection_step(&p, STR("step-")));
    run_projection_free(&p);
}

/* AR-01, policy A */
ARENA_TEST(test_what_is_no_transition_is_counted_and_changes_nothing_else, a)
{
    struct run_projection p = {0};
    struct transition_fault fault = {0};
    run_projection_start(&p, a);
    assert_int_equal(apply(&p, RUN_EVENT_UNKNOWN, "x", 1), TRANSITION_NONE);
    assert_int_equal(p.step_count, 0);
    assert_int_equal(apply(&p, RUN_EVENT_StepStarted, "x", 1), TRANSITION_INVALID); /* it has not begun */
    assert_int_equal(p.step_count, 1);
    assert_int_equal(p.steps->state.status, STEP_PENDING);
    assert_int_equal(p.steps->state.attempt, 0);
    assert_int_equal(run_projection_apply(&p, 9, RUN_EVENT_RunPaused, STR_ABSENT, 1, &fault),
                     TRANSITION_INVALID);
    assert_string_equal(fault.prior, "PENDING");
    assert_string_equal(fault.attempted, "PAUSED");
    assert_int_equal(p.status, RUN_PENDING);
    assert_int_equal(p.last_seq, 9);
    assert_int_equal(p.invalid, 2);
    run_projection_start(&p, a); /* once more, with the same table */
    assert_null(run_projection_step(&p, STR("x")));
    assert_true(!p.steps && !p.step_count && !p.last_seq && !p.invalid && p.status == RUN_PENDING);
    run_projection_free(&p);
}
