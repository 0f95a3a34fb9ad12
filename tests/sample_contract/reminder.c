/* The process of notes: it shows each as soon as it is begun. */
#include <stdlib.h>

#include "base/heap.h"
#include "base/log.h"
#include "domains/skeleton/domain.h"

#include "base/banned.h"

enum { PLACES = 8 };

struct reminder {
    struct domain *domain;
    struct domain_room room;
    struct domain_claim claim;
};

struct reminder_task {
    struct domain_task task;
    struct arena *arena; /* holds it */
};

static const struct str queue = {"~notes", 6};

static void reminder_open(void *self, struct domain *d)
{
    struct reminder *r = self;
    r->domain = d;
    domain_room_add(d, &r->room, PLACES);
    domain_claim_add(d, &r->claim, &r->room, &queue, 1, PLACES);
}

static struct domain_task *take(void *self, struct domain_room *room, const struct worker_task *claimed)
{
    struct arena *a = arena_new(256);
    struct reminder_task *t = ARENA_NEW(a, struct reminder_task);
    (void)self;
    (void)room;
    t->arena = a;
    t->task.ref.task_id = arena_str(a, claimed->ref.task_id);
    t->task.ref.token = arena_str(a, claimed->ref.token);
    t->task.name = t->task.ref.task_id;
    return &t->task;
}

static void begin(void *self, struct domain_task *t, int64_t now_ms)
{
    const struct reminder *r = self;
    (void)now_ms;
    log_line(LOG_INFO, "note_shown", "task_id", LOG_STR(t->ref.task_id), NULL);
    domain_task_ended(r->domain, t);
}

static bool report(void *self, struct domain_task *t, size_t bytes, struct arena *a,
                   struct worker_finish *ret)
{
    (void)self;
    (void)bytes;
    (void)a;
    *ret = (struct worker_finish){.ref = t->ref, .success = true, .result = STR("{}")};
    return true;
}

static void drop(void *self, struct domain_task *t)
{
    (void)self;
    arena_free(CONTAINER_OF(t, struct reminder_task, task)->arena);
}

int reminder_main(const struct process_start *start)
{
    static const struct domain_ops ops = {.tasks = "notes",
                                          .task_key = "task_id",
                                          .claims_max = 1,
                                          .open = reminder_open,
                                          .take = take,
                                          .begin = begin,
                                          .report = report,
                                          .drop = drop};
    struct reminder r = {.domain = NULL};
    return domain_main(start, &ops, &r);
}
