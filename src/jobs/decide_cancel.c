/* Cancel: any unfinished job, at once. A final job is left as it is and its state told (no event). */
#include "base/must.h"
#include "jobs/job_move.h"
#include "jobs/owned_job.h"

#include "base/banned.h"

static enum err_code decide_cancel(struct unit *u, struct command *base, struct err *err)
{
    struct job_command *c = (struct job_command *)base;
    const struct job_row *job;
    struct task *t;
    struct end_row *end;
    if (owned_job_find(u, c, &job, &t, &end, err) != ERR_OK)
        return err->code;
    if (t) {
        job_cancel(u, t, NULL);
        c->changed = true;
    }
    owned_job_answer(c, t, end); /* the task's memory lives until the batch is published */
    return ERR_OK;
}

const struct command_type cancel_command_type = {"cancel", owned_job_load, decide_cancel,
                                                 COMMAND_ANSWER(struct job_command, state), .critical = true};
