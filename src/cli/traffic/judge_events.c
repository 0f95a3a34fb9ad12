#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "base/time_text.h"
#include "cli/traffic/judge_internal.h"

#include "base/banned.h"

/* A due job is queued within a second; a --slack beyond its default widens this too. */
enum { DUE_MS_MAX = 1000, SLACK_MS_DEFAULT = 2000 };

static const char look_events[] = "weir job report JOB_ID shows every event";
static const char look_schedule[] = "was the server overloaded or its clock set? weir job report JOB_ID";
static const char look_scale[] =
    "--time-scale must be the server's runner.time_scale; weir job report JOB_ID";

static struct str name_of(const struct json *event)
{
    struct str name = json_text(event, "event_name");
    return str_starts(name, "job.") ? (struct str){name.ptr + 4, name.len - 4} : name;
}

static int64_t time_of(const struct json *event)
{
    int64_t us = 0;
    return time_parse_us(json_text(event, "timestamp"), &us) ? us : 0;
}

/* The pattern with its bracket written out, as "created queued ... ". */
static void expand(const struct traffic_yardstick *y, struct strbuf *out)
{
    int64_t attempts = judge_attempts(y);
    struct str head = str_of(y->expected->events), group = STR_ABSENT, tail = STR_ABSENT;
    if (strchr(y->expected->events, '(')) {
        tail = head;
        head = str_cut(&tail, '(');
        group = str_cut(&tail, ')');
    }
    strbuf_addf(out, "%.*s ", STR_ARG(str_trim(head)));
    for (int64_t i = 0; group.ptr && i < attempts && out->len < 65536; i++)
        strbuf_addf(out, "%.*s ", STR_ARG(group));
    if (str_trim(tail).len)
        strbuf_addf(out, "%.*s ", STR_ARG(str_trim(tail)));
    else if (y->expected->ends == JOB_FAILED && attempts == y->max_retries + 1)
        strbuf_add_text(out, "retries_exhausted "); /* a server that allows no retry says so at once */
}

/* A worker that was lost before it started gives the job back: legal anywhere, so not compared. */
static const struct json *skip_recovery(const struct json *event)
{
    while (event && event->next && str_is(name_of(event), "assigned") &&
           str_is(name_of(event->next), "lease_expired"))
        event = event->next->next;
    return event;
}

static bool names_match(const struct traffic_yardstick *y, const struct json *events,
                        struct traffic_finding *f)
{
    struct strbuf wanted CLEANUP(strbuf_free) = {0}, found CLEANUP(strbuf_free) = {0};
    expand(y, &wanted);
    const struct json *e = events ? events->child : NULL;
    for (int n = 0; e && n < JUDGE_EVENTS_MAX; n++) {
        e = skip_recovery(e);
        if (e)
            strbuf_addf(&found, "%.*s ", STR_ARG(name_of(e)));
        e = e ? e->next : NULL;
    }
    if (str_equal(strbuf_str(&wanted), strbuf_str(&found)))
        return true;
    char expected[160];
    snprintf(expected, sizeof expected, "events %s", wanted.ptr);
    return finding_set(f, look_events, expected, "events %s", found.ptr ? found.ptr : "none");
}

static bool event_joins(const struct json *before, const struct json *e, int64_t seq,
                        struct traffic_finding *f)
{
    int64_t found_seq = 0;
    const struct json *j = json_get(e, "seq");
    if (!j || !json_to_int(j, &found_seq) || found_seq != seq)
        return finding_set(f, look_events, "events numbered 1, 2, 3, ...", "seq %lld in place %lld",
                           (long long)found_seq, (long long)seq);
    if (!before)
        return true;
    if (!str_equal(json_text(e, "prev_state"), json_text(before, "next_state")))
        return finding_set(f, look_events, "each event begins in the state where the one before ended",
                           "event %lld begins in %.*s, the one before ended in %.*s", (long long)seq,
                           STR_ARG(json_text(e, "prev_state")), STR_ARG(json_text(before, "next_state")));
    if (time_of(e) <= time_of(before))
        return finding_set(f, look_events, "event times that rise",
                           "event %lld is not later than the one before", (long long)seq);
    return true;
}

bool judge_events(const struct traffic_yardstick *y, const struct json *events, int64_t *ret_us,
                  struct traffic_finding *f)
{
    const struct json *before = NULL;
    int64_t seq = 0;
    if (!names_match(y, events, f))
        return false;
    for (const struct json *e = events->child; e; before = e, e = e->next) {
        struct str scenario = json_text(json_get(e, "payload"), "scenario");
        if (!event_joins(before, e, ++seq, f))
            return false;
        if (!str_is(scenario, y->expected->name))
            return finding_set(f, look_events, "payload.scenario is the work kind", "event %lld has \"%.*s\"",
                               (long long)seq, (int)(scenario.len < 60 ? scenario.len : 60),
                               scenario.ptr ? scenario.ptr : "");
    }
    *ret_us = before ? time_of(before) - time_of(events->child) : 0;
    return true;
}

/* --- times ---------------------------------------------------------------------------------------- */

static bool run_took(const struct traffic_yardstick *y, int64_t ran_us, struct traffic_finding *f)
{
    const struct traffic_expectation *e = y->expected;
    char expected[120];
    int64_t simulated_ms = e->clock == CLOCK_LIMIT ? y->max_runtime_ms : e->duration_ms;
    double full_ms = ceil((double)simulated_ms * y->time_scale), ran_ms = (double)ran_us / 1000;
    double least_ms = e->clock == CLOCK_CUT ? 0 : full_ms * (1 - y->early) - 1;
    double most_ms = full_ms + (double)y->slack_ms;
    if (ran_ms >= least_ms && ran_ms <= most_ms)
        return true;
    snprintf(expected, sizeof expected, "a run of %.0f to %.0f ms (catalog: %lld ms, scale %g)",
             least_ms > 0 ? least_ms : 0, most_ms, (long long)simulated_ms, y->time_scale);
    finding_set(f, look_scale, expected, "it ran %.1f ms", ran_ms);
    f->about_time = true;
    return false;
}

/* Every attempt, from its job.running to what came next. */
static bool runs_took(const struct traffic_yardstick *y, const struct json *events, struct traffic_finding *f)
{
    for (const struct json *e = events->child; e && e->next; e = e->next)
        if (str_is(name_of(e), "running") && !run_took(y, time_of(e->next) - time_of(e), f))
            return false;
    return true;
}

static bool queued_when_due(const struct traffic_yardstick *y, const struct json *events,
                            struct traffic_finding *f)
{
    const struct json *e = events->child;
    while (e && !str_is(name_of(e), "queued"))
        e = e->next;
    if (!y->due_us || !e)
        return true;
    int64_t late_us = time_of(e) - y->due_us;
    bool was_away = y->due_us >= y->late_from_us && y->due_us < y->late_until_us;
    int64_t away_us = was_away ? y->late_until_us - y->due_us : 0;
    int64_t early_us = was_away && y->due_us >= y->late_stopped_us ? y->late_killed_us - y->due_us : 0;
    int64_t wider_ms = y->slack_ms > SLACK_MS_DEFAULT ? y->slack_ms - SLACK_MS_DEFAULT : 0;
    if (late_us >= 0 && late_us >= early_us && late_us <= away_us + (DUE_MS_MAX + wider_ms) * 1000)
        return true;
    return finding_set(f, look_schedule,
                       was_away ? "queued by the restarted server, within 1 s after its restart"
                                : "queued within 1 s after execution_at, never before",
                       "queued %.3f s after execution_at", (double)late_us / 1e6);
}

static bool report_agrees(const struct json *report, const struct json *events, struct traffic_finding *f)
{
    const struct json *running = NULL, *last = NULL, *j = json_get(report, "duration_ms");
    int64_t started_us = 0, finished_us = 0, duration_ms = -1;
    for (const struct json *e = events->child; e; e = e->next) {
        running = str_is(name_of(e), "running") ? e : running;
        last = str_is(name_of(e), "retries_exhausted") ? last : e;
    }
    bool started = time_parse_us(json_text(report, "started_at"), &started_us);
    bool finished = time_parse_us(json_text(report, "finished_at"), &finished_us);
    if (started != (running != NULL) || !finished || !j || !json_to_int(j, &duration_ms))
        return finding_set(
            f, look_events, "started_at exactly when it ran; finished_at and duration_ms always",
            "started_at %s, job.running %s", started ? "set" : "null", running ? "seen" : "absent");
    int64_t wanted_ms = started ? (finished_us - started_us) / 1000 : 0;
    /* The report has whole milliseconds, the events have all of them. */
    bool same_times = llabs(finished_us - time_of(last)) <= 1000 &&
                      (!running || llabs(started_us - time_of(running)) <= 1000);
    if (same_times && llabs(duration_ms - wanted_ms) <= 1)
        return true;
    return finding_set(f, look_events, "report times equal to the event times",
                       "duration_ms %lld, events say %lld", (long long)duration_ms, (long long)wanted_ms);
}

bool judge_times(const struct traffic_yardstick *y, const struct json *report, const struct json *events,
                 struct traffic_finding *f)
{
    return report_agrees(report, events, f) && queued_when_due(y, events, f) &&
           (y->expected->clock == CLOCK_NEVER || runs_took(y, events, f));
}
