/* engine/run_begin.h - a new run of a plan: asked for, or as a repetition of another (RETRY_RUN). */
#ifndef WEIR_ENGINE_RUN_BEGIN_H
#define WEIR_ENGINE_RUN_BEGIN_H

#include "engine/append.h"

/* `row` has what never changes, but the plan's number and rule, and the params. NULL: PLAN_NOT_FOUND. */
struct run_row *run_begin(struct unit *u, const struct run_row *row, struct err *err);

#endif
