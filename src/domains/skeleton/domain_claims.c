/* Rooms and the claims that fill them. Claims take turns: an answered claim goes behind the others. */
#include <inttypes.h>
#include <stdio.h>

#include "base/must.h"
#include "base/random.h"
#include "domains/skeleton/domain_internal.h"

#include "base/banned.h"

enum {
    CLAIM_WAIT_MS = 20000, /* of a long poll */
    EMPTY_PAUSE_MS = 100,  /* after one that came back empty before its time */
};

static uint32_t places_free(const struct domain_room *room)
{
    return !room->closed && room->taken < room->places ? room->places - room->taken : 0;
}

static void claim_wants(struct domain *d, struct domain_claim *c)
{
    if (c->waits || c->call)
        return;
    c->waits = true;
    TAILQ_INSERT_TAIL(&d->claims, c, link);
}

void domain_room_has_place(struct domain *d, struct domain_room *room)
{
    for (struct domain_claim *c = room->claims; c && places_free(room); c = c->next_of_room)
        claim_wants(d, c);
}

void domain_room_add(struct domain *d, struct domain_room *room, uint32_t places)
{
    room->places = places;
    TAILQ_INSERT_TAIL(&d->rooms, room, link);
}

void domain_room_close(struct domain_room *room)
{
    room->closed = true;
}

void domain_room_open(struct domain *d, struct domain_room *room)
{
    room->closed = false;
    domain_room_has_place(d, room);
}

void domain_claim_add(struct domain *d, struct domain_claim *c, struct domain_room *room,
                      const struct str *queues, size_t queue_count, uint32_t max)
{
    c->domain = d;
    c->room = room;
    c->queues = queues;
    c->queue_count = queue_count;
    c->max = max;
    c->next_of_room = room->claims;
    room->claims = c;
    snprintf(c->worker_id, sizeof c->worker_id, "%s-%d-w%u-%016" PRIx64, d->process->kind->name,
             d->process->instance, ++d->claim_count, random_u64());
    claim_wants(d, c);
}

/* The call is over: places that it did not fill are free again. */
static void call_over(struct domain_claim *c)
{
    c->call = NULL;
    c->domain->claims_in_flight--;
    c->room->taken -= c->asked;
    c->room->asked -= c->asked;
    c->asked = 0;
}

static void claim_answered(void *self, const struct worker_answer *answer)
{
    struct domain_claim *c = self;
    struct domain *d = c->domain;
    int64_t now_ms = domain_now_ms();
    call_over(c);
    domain_note_answer(d, answer);
    for (size_t i = 0; i < answer->task_count; i++)
        domain_task_new(d, c->room, &answer->tasks[i]);
    /* Empty, and sooner than asked: core is stopping or shedding, so do not ask in a circle. */
    if (answer->kind == WORKER_ANSWERED && answer->task_count == 0 && now_ms - c->called_ms < EMPTY_PAUSE_MS)
        d->claim_after_ms = now_ms + EMPTY_PAUSE_MS;
    domain_room_has_place(d, c->room);
}

static void call(struct domain *d, struct domain_claim *c, uint32_t places, int64_t now_ms)
{
    struct worker_claim claim = {
        .worker_id = str_of(c->worker_id),
        .queues = c->queues,
        .queue_count = c->queue_count,
        .max = places < c->max ? places : c->max,
        .wait_ms = CLAIM_WAIT_MS,
        .start = d->ops->starts_with_claim,
    };
    c->called_ms = now_ms;
    c->asked = claim.max;
    c->room->taken += claim.max;
    c->room->asked += claim.max;
    c->call = worker_client_claim(d->client, &claim, claim_answered, c);
    d->claims_in_flight++;
}

void domain_claims_pump(struct domain *d, int64_t now_ms)
{
    if (d->draining || now_ms < d->claim_after_ms)
        return;
    for (struct domain_claim *c; d->claims_in_flight < d->ops->claims_max && (c = TAILQ_FIRST(&d->claims)) &&
                                 worker_client_can_call(d->client);) {
        TAILQ_REMOVE(&d->claims, c, link);
        c->waits = false;
        uint32_t places = places_free(c->room);
        if (places) /* else it comes again with the next place */
            call(d, c, places, now_ms);
    }
}

void domain_claims_abandon(struct domain *d)
{
    for (struct domain_room *room = TAILQ_FIRST(&d->rooms); room; room = TAILQ_NEXT(room, link))
        for (struct domain_claim *c = room->claims; c; c = c->next_of_room)
            if (c->call) {
                worker_client_abandon(d->client, c->call);
                call_over(c);
            }
}
