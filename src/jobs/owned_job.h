/* jobs/owned_job.h - the job a command names: found, and the caller's own (404 before 403, AJ-12). */
#ifndef WEIR_JOBS_OWNED_JOB_H
#define WEIR_JOBS_OWNED_JOB_H

#include "jobs/job_commands.h"

/* The load step of such a command. */
void owned_job_load(struct unit *u, struct command *base);
/* On success exactly one of *ret_task and *ret_end is set. */
MUST_CHECK enum err_code owned_job_find(struct unit *u, const struct job_command *c,
                                        const struct job_row **ret_job, struct task **ret_task,
                                        struct end_row **ret_end, struct err *err);
/* The answer every job command gives: where the job stands now. */
void owned_job_answer(struct job_command *c, const struct task *t, const struct end_row *end);

#endif
