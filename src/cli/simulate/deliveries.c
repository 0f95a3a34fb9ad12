/* Which callbacks of a case have come, and whether they are what its receiver makes of them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/must.h"
#include "cli/simulate/simulate_internal.h"

#include "base/banned.h"

enum { LOOK_EVERY_MS = 200 };

static struct sim_case *case_numbered(struct simulation *s, struct str path)
{
    int64_t number;
    if (!str_starts(path, "/") ||
        !str_to_int((struct str){path.ptr + 1, path.len - 1}, 1, INT64_MAX, &number))
        return NULL;
    for (struct map_node *n = map_first(&s->by_number, hash_mix((uint64_t)number)); n; n = map_next(n)) {
        struct sim_case *c = CONTAINER_OF(n, struct sim_case, node);
        if (c->number == number)
            return c;
    }
    return NULL;
}

static struct sim_delivery *delivery_of(struct sim_case *c, struct str id)
{
    for (int i = 0; i < c->delivery_count; i++)
        if (str_equal(c->deliveries[i].id, id))
            return &c->deliveries[i];
    if (c->delivery_count == SIM_DELIVERIES_KEPT)
        return NULL;
    struct sim_delivery *d = &c->deliveries[c->delivery_count++];
    char *copy = must_alloc(id.len + 1);
    if (id.len)
        memcpy(copy, id.ptr, id.len);
    d->id = (struct str){copy, id.len};
    return d;
}

int sim_delivery_arrived(void *self, const struct receiver_message *m)
{
    struct simulation *s = self;
    struct sim_case *c = case_numbered(s, m->path);
    struct sim_delivery *d = c ? delivery_of(c, m->signed_message.id) : NULL;
    if (!d)
        return 1; /* of a job that was judged already: answered as a repeated one */
    if (c->account->secret[0] && !d->fault)
        d->fault = signature_fault(&m->signed_message, str_of(c->account->secret),
                                   clock_wall_us(&clock_system) / 1000000);
    sim_moved(s);
    return d->attempts++;
}

/* How many attempts of each message the receiver must have seen. */
static int attempts_wanted(enum sim_help help)
{
    return help == HELP_RECEIVER_OK || help == HELP_RECEIVER_SLOW ? 1 : 2;
}

static int complete(const struct sim_case *c)
{
    int n = 0;
    for (int i = 0; i < c->delivery_count; i++)
        n += c->deliveries[i].attempts >= attempts_wanted(c->yard.expected->help);
    return n;
}

void sim_deliveries_await(struct sim_case *c)
{
    struct sim_finding f;
    char expected[120];
    int64_t now_ms = sim_now_ms();
    /* A receiver that always fails holds back what stands behind its first message. */
    int wanted = c->yard.expected->help == HELP_RECEIVER_FAILS ? 1 : c->event_count;
    wanted = wanted < SIM_DELIVERIES_KEPT ? wanted : SIM_DELIVERIES_KEPT;
    if (c->step != STEP_DELIVERIES)
        c->deliveries_until_ms = now_ms + SIM_DELIVERY_MS_MAX;
    c->step = STEP_DELIVERIES;
    for (int i = 0; i < c->delivery_count; i++)
        if (c->deliveries[i].fault) {
            finding_set(&f, "docs: Standard Webhooks 1.0; the client's webhook_secret", "a signed callback",
                        "%s", c->deliveries[i].fault);
            sim_case_end(c, &f);
            return;
        }
    if (complete(c) >= wanted) {
        sim_case_end(c, NULL);
    } else if (now_ms < c->deliveries_until_ms) {
        heap_put(&c->sim->timers, &c->timer, (uint64_t)(now_ms + LOOK_EVERY_MS));
    } else {
        snprintf(expected, sizeof expected, "%d messages, each tried %d time(s) or more within %d s", wanted,
                 attempts_wanted(c->yard.expected->help), SIM_DELIVERY_MS_MAX / 1000);
        finding_set(&f, "GET /v1/jobs/JOB_ID/deliveries; the server's log", expected,
                    "%d messages came, %d of them often enough", c->delivery_count, complete(c));
        sim_case_end(c, &f);
    }
}
