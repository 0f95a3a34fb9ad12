#include "base/must.h"
#include "jobs/job_move.h"

#include "base/banned.h"

void job_cancel(struct unit *u, struct task *t, const char *reason)
{
    unit_task_touch(u, t);
    if (t->phase == TASK_LEASED || t->phase == TASK_RUNNING)
        lease_remember_ended(u, t, LEASE_CUT);
    struct str extra = reason ? job_reason(u, reason, STR_ABSENT) : STR_ABSENT;
    MUST(job_move(u, t, JOB_ON_CANCEL, extra, NULL)); /* every live state has this move */
}
