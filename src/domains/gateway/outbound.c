/* Partitions: each has the slots that are its own, sends what it is given, and fails alone. */
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
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

/* The sender carries spans, questions to the policy point and fetches of keys, too. */
static bool is_delivery(void *gateway, void *owner)
{
    (void)gateway;
    return ((const struct request_owner *)owner)->over == sending_over;
}

static bool owns(void *partition, void *owner)
{
    return is_delivery(NULL, owner) && CONTAINER_OF(owner, struct sending, owner)->partition == partition;
}

void outbound_cancel(struct gateway *g)
{
    egress_cancel(g->egress, is_delivery, g);
}

/* Its deliveries under way go back to core, which hands them out again. */
static void stop(void *partition)
{
    struct outbound *p = partition;
    p->stopping = true;
    egress_cancel(p->gateway->egress, owns, p);
    p->stopping = false;
    MUST(TAILQ_EMPTY(&p->out));
}

static void give_back(struct gateway *g, struct sending *s)
{
    domain_task_back(g->domain, &s->task);
}

static void drop(void *gateway, uint32_t number, void *message, enum actor_drop why)
{
    (void)number;
    (void)why;
    give_back(gateway, message);
}

static const struct actor_verbs verbs = {
    .start = start, .handle = handle, .stop = stop, .drop = drop, .failed = outbound_tell_failed_actor};

/* --- opening -------------------------------------------------------------------------------------- */

/* Loop i has the slots i, i + loops, ...: all of them of partition i % partitions, since both numbers are
 * powers of two and the partitions are not more than the loops. */
static void open_loop(struct gateway *g, uint32_t i, uint32_t loops, uint32_t share)
{
    struct claim_loop *l = &g->loops[i];
    struct outbound *p = &g->partitions[i % g->partition_count];
    size_t count = 0;
    for (uint32_t slot = i; slot < PARTITION_SLOTS; slot += loops, count++) {
        MUST(slot % g->partition_count == p->number);
        snprintf(l->names[count], QUEUE_NAME_MAX, "%s.%u", g->role->queue, slot);
        l->queues[count] = str_of(l->names[count]);
    }
    domain_claim_add(g->domain, &l->claim, &p->room, l->queues, count, share);
}

static void open_loops(struct gateway *g, uint32_t room)
{
    uint32_t loops = g->partition_count > CLAIM_LOOPS_MIN ? g->partition_count : CLAIM_LOOPS_MIN;
    uint32_t share = room / (loops / g->partition_count); /* each waits for its own slots */
    g->loops = must_alloc(loops * sizeof *g->loops);
    for (uint32_t i = 0; i < loops; i++)
        open_loop(g, i, loops, share < 1 ? 1 : share < CLAIM_MAX ? share : CLAIM_MAX);
}

uint32_t outbound_open(struct gateway *g, int64_t now_ms)
{
    uint32_t count = g->partition_count;
    MUST(PARTITION_SLOTS % count == 0); /* partition_count_all gave it: a power of two */
    uint32_t room = (uint32_t)g->role->in_flight / count;
    room = room > PARTITION_ROOM_MIN ? room : PARTITION_ROOM_MIN;
    g->partitions = must_alloc(count * sizeof *g->partitions);
    for (uint32_t i = 0; i < count; i++) {
        struct outbound *p = &g->partitions[i];
        p->gateway = g;
        p->number = i;
        TAILQ_INIT(&p->out);
        domain_room_add(g->domain, &p->room, room);
    }
    open_loops(g, room);
    domain_report_rooms(g->domain, partition_rules[g->role->partitions].name);
    g->actors = actors_new(&(struct actors_config){.verbs = &verbs,
                                                   .context = g,
                                                   .actors = count,
                                                   .mailbox_max = room,
                                                   .domain = g->process->kind->domain,
                                                   .limits = g->limits},
                           now_ms);
    return count * room;
}

void outbound_close(struct gateway *g)
{
    actors_free(g->actors);
}

/* --- work ----------------------------------------------------------------------------------------- */

void outbound_take(struct gateway *g, struct sending *s)
{
    if (!actors_send(g->actors, s->partition->number, s))
        give_back(g, s);
}

/* Curl ends each request in its time. One that it has forgotten would hold its place for ever. */
static void watch(struct gateway *g, struct outbound *p, int64_t now_ms)
{
    const struct sending *oldest = TAILQ_FIRST(&p->out);
    if (oldest && now_ms - oldest->begun_ms > g->process->settings->webhooks_timeout_ms + STUCK_MS)
        actors_fail(g->actors, p->number, "a request has no end", now_ms);
}

/* One that is about to begin again takes nothing new: core holds it, and another gateway may have it. */
static void open_or_close(struct gateway *g, struct outbound *p)
{
    enum actor_state state = actors_state(g->actors, p->number);
    bool takes = state == ACTOR_RUNS || state == ACTOR_WAITS;
    if (!takes)
        domain_room_close(&p->room);
    else if (p->room.closed)
        domain_room_open(g->domain, &p->room);
}

void outbound_run(struct gateway *g, int64_t now_ms)
{
    while (actors_due(g->actors) <= now_ms && actors_run(g->actors, now_ms))
        ;
    for (uint32_t i = 0; i < g->partition_count; i++) {
        watch(g, &g->partitions[i], now_ms);
        open_or_close(g, &g->partitions[i]);
    }
}

void outbound_room(struct gateway *g)
{
    for (uint32_t i = 0; i < g->partition_count; i++)
        actors_ready(g->actors, i);
}
