/* cli/traffic/judge.h - what a job says of itself against what its kind must do. Pure.
 *
 * Only what any client can read goes in: the job as GET /v1/jobs shows it, and its report. The first
 * difference ends a judgement: one wrong state would drag ten more differences behind it. */
#ifndef WEIR_TRAFFIC_JUDGE_H
#define WEIR_TRAFFIC_JUDGE_H

#include "base/json_members.h"
#include "cli/traffic/expectation.h"

struct traffic_finding {
    char expected[160], found[200];
    const char *next; /* the field to look at; static text */
    bool about_time;  /* of a run: a wrong --time-scale gives these by the hundred */
};

struct traffic_yardstick {
    const struct traffic_expectation *expected;
    double time_scale;
    double early;     /* how much earlier a run may end, as a part of it: the error of a learnt scale */
    int64_t slack_ms; /* how much later than it should a run may end */
    int64_t max_retries, max_runtime_ms; /* of the job; filled by judge_job */
    int64_t due_us;                      /* execution_at; 0: none */
    int64_t late_from_us;                /* RESTART: the server was being stopped from here.. */
    int64_t late_stopped_us; /* and stands still from here: jobs that are due before may be queued */
    int64_t late_killed_us;  /* and was killed here: nothing is queued before */
    int64_t late_until_us;   /* ..to here; due in between means queued behind it */
};

/* State, outcome, attempt, definition, error. True: as it should be. */
bool judge_job(struct traffic_yardstick *y, const struct json *job, struct traffic_finding *ret);
/* Outcome, events and their order, times, result. Fills ret_us: from submit to final, by the events. */
bool judge_report(const struct traffic_yardstick *y, const struct json *report, int64_t *ret_us,
                  struct traffic_finding *ret);
/* One delivery as its receiver saw it. */
struct traffic_delivery {
    struct str id; /* webhook-id; owned by the case */
    int attempts;
    const char *fault; /* of its signature; NULL: none */
};
enum judge_log { LOG_RIGHT, LOG_OPEN /* not all of it is delivered or given up yet */, LOG_WRONG };
/* The delivery log of a callback (newest first) against the kind and against what its receiver saw, oldest
 * first. Fills `ret` unless RIGHT, and of an OPEN one ret_next_us: when the server means to try again. */
enum judge_log judge_deliveries(enum traffic_help help, const struct json *page,
                                const struct traffic_delivery *seen, int count, int64_t *ret_next_us,
                                struct traffic_finding *ret);
/* A refusal of the API: HTTP status and code against the wanted ones. */
bool judge_refusal(long status, const struct json *problem, long wanted_status, const char *wanted_code,
                   struct traffic_finding *ret);

/* The scale that a run of this length points to; 0 when it tells nothing. */
double judge_scale_of(int64_t ran_ms, int64_t duration_ms);

bool finding_set(struct traffic_finding *f, const char *next, const char *expected, const char *found_format,
                 ...) __attribute__((format(printf, 4, 5))); /* always false */

#endif
