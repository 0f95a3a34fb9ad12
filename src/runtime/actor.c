#include "runtime/actor.h"

#include <stdlib.h>

#include "base/must.h"
#include "runtime/supervision.h"

#include "base/banned.h"

struct actor {
    enum actor_state state;
    void *self; /* the object that `start` made; valid while `started` */
    bool started;
    int64_t start_ms; /* of RESTARTS */
    uint64_t restarts;
    void **mailbox; /* a ring of mailbox_max */
    uint32_t first, count;
};

struct actors {
    struct actors_config config;
    struct supervision supervision;
    struct actor *each;
    bool ended;
};

static struct actor *actor_at(const struct actors *a, uint32_t partition)
{
    MUST(partition < a->config.actors);
    return &a->each[partition];
}

/* ---- mailbox ---- */

static void put_last(const struct actors *a, struct actor *x, void *message)
{
    x->mailbox[(x->first + x->count++) % a->config.mailbox_max] = message;
}

static void *take_first(const struct actors *a, struct actor *x)
{
    void *message = x->mailbox[x->first];
    x->first = (x->first + 1) % a->config.mailbox_max;
    x->count--;
    return message;
}

static void drop(struct actors *a, uint32_t partition, void *message, enum actor_drop why)
{
    if (a->config.verbs->drop)
        a->config.verbs->drop(a->config.context, partition, message, why);
}

/* ---- start, failure, end ---- */

static void stop_one(struct actors *a, struct actor *x)
{
    if (x->started && a->config.verbs->stop)
        a->config.verbs->stop(x->self);
    x->started = false;
    x->self = NULL;
}

static void end_all(struct actors *a)
{
    a->ended = true;
    for (uint32_t p = 0; p < a->config.actors; p++) {
        struct actor *x = &a->each[p];
        stop_one(a, x);
        x->state = ACTOR_ENDED;
        while (x->count > 0)
            drop(a, p, take_first(a, x), ACTOR_DROP_ENDED);
    }
}

void actors_fail(struct actors *a, uint32_t partition, const char *reason, int64_t now_ms)
{
    struct actor *x = actor_at(a, partition);
    if (a->ended || x->state == ACTOR_RESTARTS)
        return; /* it is about to start again anyway */
    stop_one(a, x);
    struct supervision_answer answer =
        supervision_child_failed(&a->supervision, FAILURE_MODE_ACTOR_FAILED, partition, now_ms);
    bool restarts = answer.verdict == SUPERVISION_RESTART;
    x->state = ACTOR_RESTARTS;
    x->start_ms = now_ms + answer.delay_ms;
    x->restarts += restarts;
    struct actor_failure failure = {.partition = partition,
                                    .restarts = x->restarts,
                                    .delay_ms = restarts ? answer.delay_ms : -1,
                                    .in_window = a->supervision.window.count,
                                    .reason = reason};
    if (a->config.verbs->failed)
        a->config.verbs->failed(a->config.context, &failure);
    if (!restarts)
        end_all(a);
}

static void start_one(struct actors *a, uint32_t partition, int64_t now_ms)
{
    struct actor *x = &a->each[partition];
    struct err err = {0};
    x->state = ACTOR_RUNS;
    x->started = true;
    if (!a->config.verbs->start || !a->config.verbs->start(a->config.context, partition, &x->self, &err))
        return;
    x->started = false; /* there is nothing to stop */
    actors_fail(a, partition, err.detail, now_ms);
}

struct actors *actors_new(const struct actors_config *config, int64_t now_ms)
{
    MUST(config->actors > 0 && config->actors <= ACTORS_MAX && config->mailbox_max > 0);
    struct actors *a = must_alloc(sizeof *a);
    a->config = *config;
    supervision_init(&a->supervision, config->domain, config->limits);
    a->each = must_alloc(config->actors * sizeof *a->each);
    for (uint32_t p = 0; p < config->actors; p++)
        a->each[p].mailbox = must_alloc(config->mailbox_max * sizeof *a->each[p].mailbox);
    for (uint32_t p = 0; p < config->actors && !a->ended; p++)
        start_one(a, p, now_ms);
    return a;
}

struct actors *actors_free(struct actors *a)
{
    if (!a)
        return NULL;
    end_all(a);
    for (uint32_t p = 0; p < a->config.actors; p++)
        free(a->each[p].mailbox);
    free(a->each);
    free(a);
    return NULL;
}

/* ---- messages ---- */

bool actors_send(struct actors *a, uint32_t partition, void *message)
{
    struct actor *x = actor_at(a, partition);
    if (a->ended || x->count == a->config.mailbox_max)
        return false;
    put_last(a, x, message);
    return true;
}

void actors_ready(struct actors *a, uint32_t partition)
{
    struct actor *x = actor_at(a, partition);
    if (x->state == ACTOR_WAITS)
        x->state = ACTOR_RUNS;
}

/* The message is at the actor now: it must have left the mailbox, since `handle` may send more. */
static void hand_one(struct actors *a, uint32_t partition, int64_t now_ms)
{
    struct actor *x = &a->each[partition];
    struct err err = {0};
    void *message = take_first(a, x);
    x->state = ACTOR_RUNS;
    switch (a->config.verbs->handle(x->self, message, now_ms, &err)) {
    case ACTOR_DONE:
        return;
    case ACTOR_BUSY:
        x->state = ACTOR_WAITS;
        return;
    case ACTOR_LATER:
        MUST(x->count < a->config.mailbox_max); /* its place was its own: `handle` sends elsewhere */
        x->first = (x->first + a->config.mailbox_max - 1) % a->config.mailbox_max;
        x->mailbox[x->first] = message;
        x->count++;
        x->state = ACTOR_WAITS;
        return;
    case ACTOR_FAILED:
        drop(a, partition, message, ACTOR_DROP_FAILED);
        actors_fail(a, partition, err.detail[0] ? err.detail : "failed", now_ms);
        return;
    }
}

size_t actors_run(struct actors *a, int64_t now_ms)
{
    size_t handed = 0;
    for (uint32_t p = 0; p < a->config.actors && !a->ended; p++) {
        struct actor *x = &a->each[p];
        if (x->state == ACTOR_RESTARTS && now_ms >= x->start_ms)
            start_one(a, p, now_ms);
        for (int i = 0; i < ACTORS_RUN_BURST && x->state == ACTOR_RUNS && x->count > 0; i++, handed++)
            hand_one(a, p, now_ms);
    }
    return handed;
}

int64_t actors_due(const struct actors *a)
{
    int64_t due = INT64_MAX;
    for (uint32_t p = 0; p < a->config.actors && !a->ended; p++) {
        const struct actor *x = &a->each[p];
        if (x->state == ACTOR_RUNS && x->count > 0)
            return 0;
        if (x->state == ACTOR_RESTARTS && x->start_ms < due)
            due = x->start_ms;
    }
    return due;
}

/* ---- looks ---- */

bool actors_ended(const struct actors *a)
{
    return a->ended;
}

enum actor_state actors_state(const struct actors *a, uint32_t partition)
{
    return actor_at(a, partition)->state;
}

uint32_t actors_depth(const struct actors *a, uint32_t partition)
{
    return actor_at(a, partition)->count;
}

uint64_t actors_restarts(const struct actors *a, uint32_t partition)
{
    return actor_at(a, partition)->restarts;
}

uint64_t actors_restarts_all(const struct actors *a)
{
    return a->supervision.restarts;
}
