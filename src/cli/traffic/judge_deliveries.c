/* The delivery log of a job against what its receiver does with attempts, and against what came there. */
#include <stdio.h>

#include "base/must.h"
#include "base/time_text.h"
#include "cli/traffic/judge_internal.h"
#include "cli/traffic/receiver.h"

#include "base/banned.h"

enum { CLOCKS_MS = 20 }; /* two processes' clocks, each in whole milliseconds */

static const char look_log[] = "GET /v1/jobs/JOB_ID/deliveries; the server's log";

/* The status of an attempt; 0: no answer. */
static int64_t status_of(const struct json *attempt)
{
    const struct json *j = json_get(attempt, "status");
    int64_t status = 0;
    return j && json_to_int(j, &status) ? status : 0;
}

static bool is_2xx(int64_t status)
{
    return status >= 200 && status < 300;
}

/* Attempts of a delivery in the log, counted by what came of them. */
struct tally {
    int all, good, hung, failed;
    bool last_good;
    int64_t last_ms;
};

static struct tally tally_of(const struct json *delivery)
{
    struct tally t = {0};
    const struct json *list = json_get(delivery, "attempts"), *j;
    for (const struct json *a = list ? list->child : NULL; a; a = a->next) {
        int64_t status = status_of(a);
        t.all++;
        t.last_good = is_2xx(status);
        t.good += t.last_good;
        t.failed += status == 500;
        t.hung += !status && str_is(json_text(a, "error"), "timeout");
        t.last_ms = (j = json_get(a, "duration_ms")) && json_to_int(j, &t.last_ms) ? t.last_ms : 0;
    }
    return t;
}

/* How a delivery must have ended, in words; NULL: it did. */
static const char *fault_of(enum traffic_help help, bool first, struct str state, const struct tally *t)
{
    if (help == HELP_RECEIVER_FAILS && first)
        return str_is(state, "exhausted") && t->failed && !t->good
                   ? NULL
                   : "given up (exhausted) after answers of 500";
    if (!str_is(state, "delivered") || t->good != 1 || !t->last_good)
        return "delivered, by its last attempt and only by that one";
    if (help == HELP_RECEIVER_HANGS && !t->hung)
        return "delivered after an attempt without an answer (timeout)";
    if (help == HELP_RECEIVER_FAILS_ONCE && !t->failed &&
        !t->hung) /* on a busy machine 500 may come too late */
        return "delivered after an attempt that was answered 500";
    if (help == HELP_RECEIVER_SLOW && t->last_ms < RECEIVER_SLOW_MS - CLOCKS_MS)
        return "delivered by an attempt that took as long as its slow receiver";
    return NULL;
}

static bool one_is_right(enum traffic_help help, bool first, const struct json *delivery,
                         const struct traffic_delivery *seen, struct traffic_finding *f)
{
    char expected[150];
    struct str state = json_text(delivery, "state"), name = json_text(delivery, "event_name");
    struct tally t = tally_of(delivery);
    const char *fault = fault_of(help, first, state, &t);
    if (fault) {
        snprintf(expected, sizeof expected, "%.*s %s", (int)(name.len < 40 ? name.len : 40),
                 name.ptr ? name.ptr : "", fault);
        return finding_set(f, look_log, expected,
                           "%.*s after %d attempts: %d times 2xx, %d times 500, %d without answer",
                           (int)(state.len < 20 ? state.len : 20), state.ptr ? state.ptr : "", t.all, t.good,
                           t.failed, t.hung);
    }
    if (!str_equal(json_text(delivery, "delivery_id"), seen->id))
        return finding_set(f, look_log, "deliveries in the order of the events",
                           "webhook-id %.*s came in its place", (int)(seen->id.len < 60 ? seen->id.len : 60),
                           seen->id.ptr);
    if (seen->attempts > t.all)
        return finding_set(f, look_log, "every attempt in the delivery log",
                           "%d requests came, %d are logged", seen->attempts, t.all);
    return true;
}

/* When the server means to try one of them next; 0: all have ended. -1: one waits for another. */
static int64_t open_until_us(const struct json *items)
{
    int64_t next_us = 0, us;
    for (const struct json *d = items->child; d; d = d->next)
        if (str_is(json_text(d, "state"), "pending")) {
            if (!next_us)
                next_us = -1;
            if (time_parse_us(json_text(d, "next_attempt_at"), &us) && us > next_us)
                next_us = us;
        }
    return next_us;
}

enum judge_log judge_deliveries(enum traffic_help help, const struct json *page,
                                const struct traffic_delivery *seen, int count, int64_t *ret_next_us,
                                struct traffic_finding *f)
{
    const struct json *items = json_get(page, "items");
    char expected[100];
    snprintf(expected, sizeof expected, "%d deliveries, one for each event that came", count);
    if (!items || items->type != JSON_ARRAY) {
        finding_set(f, look_log, expected, "an answer without items");
        return LOG_WRONG;
    }
    *ret_next_us = open_until_us(items);
    if (*ret_next_us) {
        finding_set(f, look_log, "every delivery delivered or given up", "one is still pending");
        return LOG_OPEN;
    }
    if ((int)items->count != count) {
        finding_set(f, look_log, expected, "%d are in the log", (int)items->count);
        return LOG_WRONG;
    }
    for (const struct json *d = items->child; d; d = d->next, count--)
        if (!one_is_right(help, count == 1, d, &seen[count - 1], f))
            return LOG_WRONG;
    return LOG_RIGHT;
}
