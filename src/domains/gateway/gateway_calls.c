/* Calls to core: claims, and batches of heartbeats and reports, one of each kind in flight. */
#include <string.h>

#include "base/log.h"
#include "base/must.h"
#include "domains/gateway/gateway_internal.h"

#include "base/banned.h"

/* --- claims -------------------------------------------------------------------------------------- */

static void claim_answered(void *self, const struct worker_answer *answer)
{
    struct claim_loop *l = self;
    struct gateway *g = l->gateway;
    int64_t now_ms = clock_mono_ms(g->clock);
    l->call = NULL;
    g->count -= l->asked;
    l->asked = 0;
    for (size_t i = 0; i < answer->task_count; i++) {
        g->count++;
        sending_begin(g, sending_new(&answer->tasks[i]), now_ms);
    }
    if (answer->kind != WORKER_ANSWERED)
        l->claim_after_ms = now_ms + EMPTY_PAUSE_MS;
}

static void claim(struct gateway *g, int64_t now_ms)
{
    for (size_t i = 0; i < CLAIM_LOOPS && !g->draining; i++) {
        struct claim_loop *l = &g->loops[i];
        uint32_t room = g->count < IN_FLIGHT_MAX ? IN_FLIGHT_MAX - g->count : 0;
        if (l->call || !room || now_ms < l->claim_after_ms || !worker_client_can_call(g->client))
            continue;
        struct worker_claim ask = {.worker_id = str_of(l->worker_id),
                                   .queues = l->queues,
                                   .queue_count = LENGTH_OF(l->queues),
                                   .max = room < CLAIM_MAX ? room : CLAIM_MAX,
                                   .wait_ms = CLAIM_WAIT_MS,
                                   .start = true};
        l->asked = ask.max;
        g->count += l->asked;
        l->call = worker_client_claim(g->client, &ask, claim_answered, l);
    }
}

void gateway_abandon_claims(struct gateway *g)
{
    for (size_t i = 0; i < CLAIM_LOOPS; i++)
        if (g->loops[i].call) {
            worker_client_abandon(g->client, g->loops[i].call);
            g->loops[i].call = NULL;
            g->count -= g->loops[i].asked;
            g->loops[i].asked = 0;
        }
}

/* --- batches ------------------------------------------------------------------------------------- */

static void report_answered(void *self, const struct worker_answer *answer)
{
    struct gateway *g = self;
    g->finish.call = NULL;
    for (size_t i = 0; i < g->finish.count; i++) {
        struct sending *s = g->finish.items[i];
        if (answer->kind == WORKER_AWAY) {
            s->phase = SENDING_DONE;
            TAILQ_INSERT_HEAD(&g->done, s, link);
        } else {
            sending_free(g, s);
        }
    }
}

static void heartbeat_answered(void *self, const struct worker_answer *answer)
{
    struct gateway *g = self;
    (void)answer; /* a delivery whose lease is lost is sent all the same: its report changes nothing */
    g->heartbeat.call = NULL;
    for (size_t i = 0; i < g->heartbeat.count; i++) {
        struct sending *s = g->heartbeat.items[i];
        s->beating = false;
        if (s->gone)
            sending_free(g, s);
    }
}

static size_t take_done(struct gateway *g)
{
    g->finish.count = 0;
    for (struct sending *s; g->finish.count < WORKER_BATCH_MAX && (s = TAILQ_FIRST(&g->done));
         g->finish.count++) {
        TAILQ_REMOVE(&g->done, s, link);
        s->phase = SENDING_REPORTING;
        g->finish.items[g->finish.count] = s;
    }
    return g->finish.count;
}

static void send_heartbeats(struct gateway *g)
{
    struct worker_task_ref refs[WORKER_BATCH_MAX];
    for (size_t i = 0; i < g->heartbeat.count; i++)
        refs[i] = g->heartbeat.items[i]->ref;
    g->heartbeat.call = worker_client_heartbeat(g->client, refs, g->heartbeat.count, heartbeat_answered, g);
}

static void send_reports(struct gateway *g)
{
    static struct worker_finish reports[WORKER_BATCH_MAX]; /* one thread; too large for a stack */
    for (size_t i = 0; i < g->finish.count; i++)
        reports[i] = sending_report(g->finish.items[i]);
    g->finish.call = worker_client_finish(g->client, reports, g->finish.count, report_answered, g);
}

/* Those that have been out for a while: most are answered before their first beat. What does not fit into
 * one heartbeat is in the next, at once. */
static void beat(struct gateway *g, int64_t now_ms)
{
    struct sending *s = NULL;
    if (now_ms < g->beat_at_ms || g->heartbeat.call || !worker_client_can_call(g->client))
        return;
    g->heartbeat.count = 0;
    TAILQ_FOREACH(s, &g->out, link)
    {
        if (g->heartbeat.count == WORKER_BATCH_MAX || now_ms - s->begun_ms < g->config->heartbeat_ms)
            break; /* oldest first */
        if (now_ms - s->beaten_ms < g->config->heartbeat_ms)
            continue;
        s->beating = true;
        s->beaten_ms = now_ms;
        g->heartbeat.items[g->heartbeat.count++] = s;
    }
    if (g->heartbeat.count < WORKER_BATCH_MAX)
        g->beat_at_ms = now_ms + g->config->heartbeat_ms;
    if (g->heartbeat.count)
        send_heartbeats(g);
}

void gateway_pump(struct gateway *g, int64_t now_ms)
{
    if (!g->finish.call && worker_client_can_call(g->client) && take_done(g))
        send_reports(g);
    beat(g, now_ms);
    claim(g, now_ms);
    span_export_pump(g->spans, now_ms);
    policy_asker_pump(g->policy, now_ms);
}

static int64_t earlier(int64_t at_ms, int64_t other_ms, int64_t now_ms)
{
    return other_ms > now_ms && other_ms < at_ms ? other_ms : at_ms;
}

/* What could be sent now has been sent: only instants still to come count. Otherwise a long poll of a core
 * that has just come back, which is answered much later, would be waited for without sleeping. */
int64_t gateway_next_at_ms(const struct gateway *g, int64_t now_ms)
{
    int64_t spans = span_export_next_at_ms(g->spans);
    int64_t at = earlier(INT64_MAX, worker_client_ready_at_ms(g->client), now_ms);
    at = earlier(at, policy_asker_next_at_ms(g->policy), now_ms);
    if (!TAILQ_EMPTY(&g->out) && !g->heartbeat.call)
        at = earlier(at, g->beat_at_ms, now_ms);
    for (size_t i = 0; i < CLAIM_LOOPS && !g->draining; i++)
        if (!g->loops[i].call && g->count < IN_FLIGHT_MAX)
            at = earlier(at, g->loops[i].claim_after_ms, now_ms);
    return spans < at ? spans : at;
}
