/* Partitions: each claims the slots that are its own, sends what it is given, and fails alone. */
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "base/random.h"
#include "domains/gateway/gateway_internal.h"

#include "base/banned.h"

/* --- a partition's life --------------------------------------------------------------------------- */

static enum err_code start(void *gateway, uint32_t number, void **ret_state, struct err *err)
{
    struct gateway *g = gateway;
    (void)err;
    *ret_state = &g->partitions[number];
    return ERR_OK;
}

static enum actor_outcome handle(void *partition, void *message, int64_t now_ms, struct err *err)
{
    struct outbound *p = partition;
    enum err_code code = sending_begin(p->gateway, message, now_ms, err);
    if (code == ERR_OK)
        return ACTOR_DONE;
    return code == ERR_EXEC_QUEUE_FULL ? ACTOR_LATER : ACTOR_FAILED;
}

/* The sender carries spans and questions to the policy point, too. */
static bool is_delivery(void *gateway, void *owner)
{
    const struct gateway *g = gateway;
    return owner != g->spans && !policy_asker_owns(g->policy, owner);
}

static bool owns(void *partition, void *owner)
{
    struct outbound *p = partition;
    return is_delivery(p->gateway, owner) && ((const struct sending *)owner)->partition == p;
}

void outbound_cancel(struct gateway *g)
{
    egress_cancel(g->egress, is_delivery, g);
}

/* What it had under way goes back to core, which hands it out again. */
static void stop(void *partition)
{
    struct outbound *p = partition;
    p->stopping = true;
    egress_cancel(p->gateway->egress, owns, p);
    p->stopping = false;
    MUST(TAILQ_EMPTY(&p->out));
}

static void drop(void *gateway, uint32_t number, void *message, enum actor_drop why)
{
    (void)number;
    (void)why;
    sending_give_back(gateway, message);
}

static const struct actor_verbs verbs = {
    .start = start, .handle = handle, .stop = stop, .drop = drop, .failed = outbound_tell_failed_actor};

/* --- opening -------------------------------------------------------------------------------------- */

/* Loop i has the slots i, i + loops, ...: all of them of partition i % partitions, since both numbers are
 * powers of two and the partitions are not more than the loops. */
static void open_loop(struct gateway *g, uint32_t i)
{
    struct claim_loop *l = &g->loops[i];
    l->partition = &g->partitions[i % g->partition_count];
    snprintf(l->worker_id, sizeof l->worker_id, "%s-%lld-%u-%016llx", g->config->role->name,
             (long long)g->config->instance, i + 1, (unsigned long long)random_u64());
    for (uint32_t slot = i; slot < PARTITION_SLOTS; slot += g->loop_count) {
        struct str *queue = &l->queues[l->queue_count];
        char *name = l->names[l->queue_count++];
        MUST(slot % g->partition_count == l->partition->number);
        snprintf(name, QUEUE_NAME_MAX, "%s.%u", g->config->role->queue, slot);
        *queue = str_of(name);
    }
}

void outbound_open(struct gateway *g, int64_t now_ms)
{
    uint32_t count = g->config->partitions;
    MUST(PARTITION_SLOTS % count == 0); /* partition_count_all gave it: a power of two */
    uint32_t room = g->config->in_flight_max / count;
    g->partition_count = count;
    g->partition_room = room > PARTITION_ROOM_MIN ? room : PARTITION_ROOM_MIN;
    g->partitions = must_alloc(count * sizeof *g->partitions);
    g->loop_count = count > CLAIM_LOOPS_MIN ? count : CLAIM_LOOPS_MIN;
    g->loops = must_alloc(g->loop_count * sizeof *g->loops);
    uint32_t share = g->partition_room / (g->loop_count / count); /* each waits for its own slots */
    g->loop_share = share < 1 ? 1 : share < CLAIM_MAX ? share : CLAIM_MAX;
    for (uint32_t i = 0; i < count; i++) {
        g->partitions[i].gateway = g;
        g->partitions[i].number = i;
        TAILQ_INIT(&g->partitions[i].out);
    }
    for (uint32_t i = 0; i < g->loop_count; i++)
        open_loop(g, i);
    g->actors = actors_new(&(struct actors_config){.verbs = &verbs,
                                                   .context = g,
                                                   .actors = count,
                                                   .mailbox_max = g->partition_room,
                                                   .domain = g->config->role->domain,
                                                   .limits = g->config->limits},
                           now_ms);
}

/* --- work ----------------------------------------------------------------------------------------- */

void outbound_run(struct gateway *g, int64_t now_ms)
{
    while (actors_due(g->actors) <= now_ms && actors_run(g->actors, now_ms))
        ;
}

void outbound_room(struct gateway *g)
{
    for (uint32_t i = 0; i < g->partition_count; i++)
        actors_ready(g->actors, i);
}

/* Curl ends each request in its time. One that it has forgotten would hold its place for ever. */
void outbound_watch(struct gateway *g, int64_t now_ms)
{
    for (uint32_t i = 0; i < g->partition_count; i++) {
        const struct sending *oldest = TAILQ_FIRST(&g->partitions[i].out);
        if (oldest && now_ms - oldest->begun_ms > g->config->timeout_ms + STUCK_MS)
            actors_fail(g->actors, i, "a request has no end", now_ms);
    }
}

/* --- claims --------------------------------------------------------------------------------------- */

static void took_room(struct claim_loop *l, uint32_t asked)
{
    struct outbound *p = l->partition;
    l->asked = asked;
    p->asked += asked;
    p->count += asked;
    p->gateway->count += asked;
}

static void gave_room(struct claim_loop *l)
{
    struct outbound *p = l->partition;
    p->asked -= l->asked;
    p->count -= l->asked;
    p->gateway->count -= l->asked;
    l->asked = 0;
}

static void claim_answered(void *self, const struct worker_answer *answer)
{
    struct claim_loop *l = self;
    struct outbound *p = l->partition;
    struct gateway *g = p->gateway;
    l->call = NULL;
    gave_room(l);
    for (size_t i = 0; i < answer->task_count; i++) {
        struct sending *s = sending_new(&answer->tasks[i]);
        s->partition = p;
        p->count++;
        g->count++;
        if (!actors_send(g->actors, p->number, s))
            sending_give_back(g, s);
    }
    if (answer->kind != WORKER_ANSWERED)
        l->claim_after_ms = clock_mono_ms(g->clock) + EMPTY_PAUSE_MS;
}

/* One that is about to begin again takes nothing new: core holds it, and another gateway may have it. */
static uint32_t room_of(const struct outbound *p)
{
    const struct gateway *g = p->gateway;
    enum actor_state state = actors_state(g->actors, p->number);
    bool takes = state == ACTOR_RUNS || state == ACTOR_WAITS;
    return takes && p->count < g->partition_room ? g->partition_room - p->count : 0;
}

void outbound_claim(struct gateway *g, int64_t now_ms)
{
    for (uint32_t i = 0; i < g->loop_count && !g->draining; i++) {
        struct claim_loop *l = &g->loops[i];
        uint32_t room = room_of(l->partition);
        if (l->call || !room || now_ms < l->claim_after_ms || !worker_client_can_call(g->client))
            continue;
        struct worker_claim ask = {.worker_id = str_of(l->worker_id),
                                   .queues = l->queues,
                                   .queue_count = l->queue_count,
                                   .max = room < g->loop_share ? room : g->loop_share,
                                   .wait_ms = CLAIM_WAIT_MS,
                                   .start = true};
        took_room(l, ask.max);
        l->call = worker_client_claim(g->client, &ask, claim_answered, l);
    }
}

void outbound_abandon_claims(struct gateway *g)
{
    for (uint32_t i = 0; i < g->loop_count; i++)
        if (g->loops[i].call) {
            worker_client_abandon(g->client, g->loops[i].call);
            g->loops[i].call = NULL;
            gave_room(&g->loops[i]);
        }
}

bool outbound_has_work(const struct gateway *g)
{
    for (uint32_t i = 0; i < g->partition_count; i++)
        if (g->partitions[i].count > g->partitions[i].asked)
            return true;
    return false;
}

static int64_t earlier(int64_t at_ms, int64_t other_ms, int64_t now_ms)
{
    return other_ms > now_ms && other_ms < at_ms ? other_ms : at_ms;
}

int64_t outbound_next_at_ms(const struct gateway *g, int64_t now_ms)
{
    int64_t at = actors_due(g->actors);
    for (uint32_t i = 0; i < g->loop_count && !g->draining; i++)
        if (!g->loops[i].call && room_of(g->loops[i].partition))
            at = earlier(at, g->loops[i].claim_after_ms, now_ms);
    return at;
}
