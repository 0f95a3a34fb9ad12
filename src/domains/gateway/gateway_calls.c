/* Calls to core: batches of heartbeats, reports and what goes back, one of each kind in flight. */
#include <string.h>

#include "base/log.h"
#include "base/must.h"
#include "domains/gateway/gateway_internal.h"

#include "base/banned.h"

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

static void release_answered(void *self, const struct worker_answer *answer)
{
    struct gateway *g = self;
    g->release.call = NULL;
    for (size_t i = 0; i < g->release.count; i++) {
        struct sending *s = g->release.items[i];
        if (answer->kind == WORKER_AWAY)
            sending_give_back(g, s);
        else
            sending_free(g, s);
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

static size_t take(struct sending_list *from, struct gateway_batch *to, enum sending_phase phase)
{
    to->count = 0;
    for (struct sending *s; to->count < WORKER_BATCH_MAX && (s = TAILQ_FIRST(from)); to->count++) {
        TAILQ_REMOVE(from, s, link);
        s->phase = phase;
        to->items[to->count] = s;
    }
    return to->count;
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

static void send_releases(struct gateway *g)
{
    struct worker_task_ref refs[WORKER_BATCH_MAX];
    for (size_t i = 0; i < g->release.count; i++)
        refs[i] = g->release.items[i]->ref;
    g->release.call = worker_client_release(g->client, refs, g->release.count, release_answered, g);
}

static void beat_one(struct gateway *g, struct sending *s, int64_t now_ms)
{
    s->beating = true;
    s->beaten_ms = now_ms;
    g->heartbeat.items[g->heartbeat.count++] = s;
}

/* Those that have been out for a while: most are answered before their first beat. What does not fit into
 * one heartbeat is in the next, at once. */
static void beat(struct gateway *g, int64_t now_ms)
{
    struct sending *s = NULL;
    if (now_ms < g->beat_at_ms || g->heartbeat.call || !worker_client_can_call(g->client))
        return;
    outbound_watch(g, now_ms);
    g->heartbeat.count = 0;
    for (uint32_t i = 0; i < g->partition_count; i++)
        TAILQ_FOREACH(s, &g->partitions[i].out, link)
        {
            if (g->heartbeat.count == WORKER_BATCH_MAX || now_ms - s->begun_ms < g->config->heartbeat_ms)
                break; /* oldest first */
            if (now_ms - s->beaten_ms >= g->config->heartbeat_ms)
                beat_one(g, s, now_ms);
        }
    if (g->heartbeat.count < WORKER_BATCH_MAX)
        g->beat_at_ms = now_ms + g->config->heartbeat_ms;
    if (g->heartbeat.count)
        send_heartbeats(g);
}

void gateway_pump(struct gateway *g, int64_t now_ms)
{
    outbound_run(g, now_ms);
    if (!g->finish.call && worker_client_can_call(g->client) && take(&g->done, &g->finish, SENDING_REPORTING))
        send_reports(g);
    if (!g->release.call && worker_client_can_call(g->client) &&
        take(&g->back, &g->release, SENDING_GIVING_BACK))
        send_releases(g);
    beat(g, now_ms);
    outbound_claim(g, now_ms);
    gateway_report(g, now_ms);
    span_export_pump(g->spans, now_ms);
    policy_asker_pump(g->policy, now_ms);
    key_fetcher_pump(g->keys, now_ms);
}

static int64_t earlier(int64_t at_ms, int64_t other_ms, int64_t now_ms)
{
    return other_ms > now_ms && other_ms < at_ms ? other_ms : at_ms;
}

/* What could be sent now has been sent: only instants still to come count. Otherwise a long poll of a core
 * that has just come back, which is answered much later, would be waited for without sleeping. */
int64_t gateway_next_at_ms(const struct gateway *g, int64_t now_ms)
{
    int64_t spans = span_export_next_at_ms(g->spans), outbound = outbound_next_at_ms(g, now_ms);
    int64_t at = earlier(outbound, worker_client_ready_at_ms(g->client), now_ms);
    at = earlier(at, policy_asker_next_at_ms(g->policy), now_ms);
    at = earlier(at, key_fetcher_next_at_ms(g->keys), now_ms);
    if (egress_in_flight(g->egress) && !g->heartbeat.call)
        at = earlier(at, g->beat_at_ms, now_ms);
    if (!g->report)
        at = earlier(at, g->report_at_ms, now_ms);
    return spans < at ? spans : at;
}
