#include "lifecycle/task_lifecycle.h"

#include "base/must.h"

#include "base/banned.h"

/* Every move there is. Absent means refused. */
static const struct {
    enum task_phase from;
    enum task_trigger on;
    enum task_phase to;
} moves[] = {
    {TASK_WAITING, TASK_ON_DUE, TASK_READY},     {TASK_READY, TASK_ON_CLAIM, TASK_LEASED},
    {TASK_LEASED, TASK_ON_START, TASK_RUNNING},  {TASK_LEASED, TASK_ON_RETURN, TASK_READY},
    {TASK_RUNNING, TASK_ON_RETURN, TASK_READY},  {TASK_RUNNING, TASK_ON_RETRY, TASK_READY},
    {TASK_RUNNING, TASK_ON_DRAIN, TASK_WAITING},
};

bool task_move(enum task_phase from, enum task_trigger on, enum task_phase *ret_to)
{
    for (size_t i = 0; i < LENGTH_OF(moves); i++)
        if (moves[i].from == from && moves[i].on == on) {
            *ret_to = moves[i].to;
            return true;
        }
    return false;
}
