/* Tasks against their moves, written out a second time. */
#include "case.h"

#include "lifecycle/job_lifecycle.h"

#include "base/banned.h"

enum { NO = -1 };

static const int moves[TASK_ENDED + 1][TASK_TRIGGER_COUNT] = {
    /* due, claim, start, return, retry, drain */
    [TASK_WAITING] = {TASK_READY, NO, NO, NO, NO, NO},
    [TASK_READY] = {NO, TASK_LEASED, NO, NO, NO, NO},
    [TASK_LEASED] = {NO, NO, TASK_RUNNING, TASK_READY, NO, NO},
    [TASK_RUNNING] = {NO, NO, NO, TASK_READY, TASK_READY, TASK_WAITING},
    [TASK_ENDED] = {NO, NO, NO, NO, NO, NO},
};

TEST(test_every_trigger_in_every_state)
{
    for (int from = 0; from <= TASK_ENDED; from++)
        for (int on = 0; on < TASK_TRIGGER_COUNT; on++) {
            enum task_phase to;
            bool is_move = task_move((enum task_phase)from, (enum task_trigger)on, &to);
            assert_int_equal(is_move ? (int)to : NO, moves[from][on]);
        }
}

/* The state of a job fits that of its task. */
TEST(test_an_unfinished_state_of_a_job_is_the_one_of_its_task)
{
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        assert_int_equal(job_state_phase((enum job_state)i), i < TASK_ENDED ? i : TASK_ENDED);
}
