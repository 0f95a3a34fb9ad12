/* api/jobs/submit.h - a submit body, decoded into a command item; shared by single and batch submit. Pure, so
 * it can be fuzzed. The body has passed the contract's schema. */
#ifndef WEIR_API_JOBS_SUBMIT_H
#define WEIR_API_JOBS_SUBMIT_H

#include "base/json.h"
#include "jobs/job_commands.h"

void submit_decode(const struct json *body, struct submit_item *ret_item);

#endif
