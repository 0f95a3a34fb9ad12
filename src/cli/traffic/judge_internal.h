/* cli/traffic/judge_internal.h - the parts of a judgement about events and times. */
#ifndef WEIR_TRAFFIC_JUDGE_INTERNAL_H
#define WEIR_TRAFFIC_JUDGE_INTERNAL_H

#include "cli/traffic/judge.h"

enum { JUDGE_EVENTS_MAX = 8192 }; /* 1000 retries with four events each, and their neighbours */

int64_t judge_attempts(const struct traffic_yardstick *y);
/* Names in order, seq, states that join, rising times, the scenario in each. */
bool judge_events(const struct traffic_yardstick *y, const struct json *events, int64_t *ret_us,
                  struct traffic_finding *f);
/* How long each run took, when a due job was queued, started_at, finished_at, duration_ms. */
bool judge_times(const struct traffic_yardstick *y, const struct json *report, const struct json *events,
                 struct traffic_finding *f);

#endif
