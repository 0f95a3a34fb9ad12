/* cli/simulate/judge_internal.h - the parts of a judgement about events and times. */
#ifndef WEIR_SIMULATE_JUDGE_INTERNAL_H
#define WEIR_SIMULATE_JUDGE_INTERNAL_H

#include "cli/simulate/judge.h"

enum { JUDGE_EVENTS_MAX = 8192 }; /* 1000 retries with four events each, and their neighbours */

int64_t judge_attempts(const struct sim_yardstick *y);
/* Names in order, seq, states that join, rising times, the scenario in each. */
bool judge_events(const struct sim_yardstick *y, const struct json *events, int64_t *ret_us,
                  struct sim_finding *f);
/* How long each run took, when a due job was queued, started_at, finished_at, duration_ms. */
bool judge_times(const struct sim_yardstick *y, const struct json *report, const struct json *events,
                 struct sim_finding *f);

#endif
