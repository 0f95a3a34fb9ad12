/* Which callbacks of a case have come, and whether the delivery log agrees.
 *
 * The log is read when the receiver has seen all of them, and now and then before that. Once nothing in it
 * is pending, it is judged. Patience is not a fixed time: it starts anew with each request that comes, and
 * lasts until the next one that the log announces. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/must.h"
#include "cli/traffic/traffic_internal.h"

#include "base/banned.h"

enum { LOOK_EVERY_MS = 200, LOG_SOON_MS = 1000, LOG_EVERY_MS = 5000 };

static const char look_log[] = "GET /v1/jobs/JOB_ID/deliveries; the server's log";

static struct traffic_delivery *delivery_of(struct traffic_case *c, struct str id)
{
    for (int i = 0; i < c->delivery_count; i++)
        if (str_equal(c->deliveries[i].id, id))
            return &c->deliveries[i];
    if (c->delivery_count == TRAFFIC_DELIVERIES_KEPT)
        return NULL;
    struct traffic_delivery *d = &c->deliveries[c->delivery_count++];
    char *copy = must_alloc(id.len + 1);
    if (id.len)
        memcpy(copy, id.ptr, id.len);
    d->id = (struct str){copy, id.len};
    return d;
}

struct receiver_history traffic_delivery_arrived(void *owner, const struct signed_message *m)
{
    struct traffic_case *c = owner;
    struct traffic_delivery *d = c ? delivery_of(c, m->id) : NULL;
    if (!d) /* the first probe has no case; and more messages than are kept are answered as repeated ones */
        return (struct receiver_history){.attempts = 1};
    if (c->account->secret[0] && !d->fault)
        d->fault = signature_fault(m, str_of(c->account->secret), clock_wall_us(&clock_system) / 1000000);
    c->deliveries_until_ms = traffic_now_ms() + TRAFFIC_DELIVERY_MS_MAX;
    traffic_moved(c->sim);
    return (struct receiver_history){.attempts = d->attempts++, .first_message = d == c->deliveries};
}

/* --- is that all? ------------------------------------------------------------------------------------ */

/* How many attempts of each message the receiver must have seen. */
static int attempts_wanted(enum traffic_help help)
{
    return help == HELP_RECEIVER_HANGS || help == HELP_RECEIVER_FAILS_ONCE ? 2 : 1;
}

static int complete(const struct traffic_case *c)
{
    int n = 0;
    for (int i = 0; i < c->delivery_count; i++)
        n += c->deliveries[i].attempts >= attempts_wanted(c->yard.expected->help);
    return n;
}

static void too_late(struct traffic_case *c)
{
    struct traffic_finding f;
    char expected[120];
    snprintf(expected, sizeof expected, "%d messages, each tried %d time(s) or more", c->event_count,
             attempts_wanted(c->yard.expected->help));
    finding_set(&f, look_log, expected, "%d messages came, %d of them often enough, and no more for %d s",
                c->delivery_count, complete(c), TRAFFIC_DELIVERY_MS_MAX / 1000);
    traffic_case_end(c, &f);
}

static void log_came(void *self, const struct traffic_answer *a)
{
    struct traffic_case *c = self;
    struct traffic_finding f;
    int64_t next_us = 0, now_ms = traffic_now_ms();
    if (a->status != 200) {
        finding_set(&f, look_log, "200 and the delivery log", "HTTP %ld %.*s", a->status,
                    STR_ARG(json_text(a->json, "code")));
        traffic_case_end(c, &f);
        return;
    }
    enum judge_log log =
        judge_deliveries(c->yard.expected->help, a->json, c->deliveries, c->delivery_count, &next_us, &f);
    if (log != LOG_OPEN) {
        traffic_case_end(c, log == LOG_RIGHT ? NULL : &f);
        return;
    }
    int64_t next_ms = now_ms + (next_us - traffic_server_us(c->sim)) / 1000 + TRAFFIC_DELIVERY_MS_MAX;
    if (next_us > 0 && next_ms > c->deliveries_until_ms)
        c->deliveries_until_ms = next_ms;
    if (now_ms >= c->deliveries_until_ms || now_ms >= c->deliveries_end_ms) {
        too_late(c);
        return;
    }
    traffic_moved(c->sim); /* it waits for a time that the server named */
    heap_put(&c->sim->timers, &c->timer, (uint64_t)(now_ms + LOOK_EVERY_MS));
}

void traffic_deliveries_look(struct traffic_case *c)
{
    struct traffic_finding f;
    int64_t now_ms = traffic_now_ms();
    for (int i = 0; i < c->delivery_count; i++)
        if (c->deliveries[i].fault) {
            finding_set(&f, "docs/webhooks.md: signatures; the client's webhook_secret", "a signed callback",
                        "%s", c->deliveries[i].fault);
            traffic_case_end(c, &f);
            return;
        }
    if (now_ms - c->log_read_ms >= (complete(c) < c->event_count ? LOG_EVERY_MS : LOG_SOON_MS)) {
        c->log_read_ms = now_ms;
        traffic_case_call(c, "GET", "/deliveries?limit=200", log_came);
    } else {
        heap_put(&c->sim->timers, &c->timer, (uint64_t)(now_ms + LOOK_EVERY_MS));
    }
}

void traffic_deliveries_await(struct traffic_case *c)
{
    int64_t now_ms = traffic_now_ms();
    c->step = STEP_DELIVERIES;
    c->log_read_ms = now_ms - LOG_SOON_MS; /* at once when all have come already */
    c->deliveries_until_ms = now_ms + TRAFFIC_DELIVERY_MS_MAX;
    c->deliveries_end_ms = now_ms + TRAFFIC_DELIVERIES_MS_MAX;
    traffic_deliveries_look(c);
}
