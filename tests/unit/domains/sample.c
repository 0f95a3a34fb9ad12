/* The folder of a process, in its smallest form: two tasks at a time, each done as soon as it is begun. */
#include <stdlib.h>

#include "base/heap.h"
#include "base/must.h"
#include "domains/skeleton/domain.h"

#include "base/banned.h"

enum { PLACES = 2 };

struct sample {
    struct domain *domain;
    struct domain_room room;
    struct domain_claim claim;
};

struct sample_task {
    struct domain_task task;
    struct arena *arena; /* holds it */
};

static const struct str queue = {"default", 7};

static void sample_open(void *self, struct domain *d)
{
    struct sample *s = self;
    s->domain = d;
    domain_room_add(d, &s->room, PLACES);
    domain_claim_add(d, &s->claim, &s->room, &queue, 1, PLACES);
}

static struct domain_task *take(void *self, struct domain_room *room, const struct worker_task *claimed)
{
    struct arena *a = arena_new(256);
    struct sample_task *t = ARENA_NEW(a, struct sample_task);
    (void)self;
    (void)room;
    t->arena = a;
    t->task.ref.task_id = arena_str(a, claimed->ref.task_id);
    t->task.ref.token = arena_str(a, claimed->ref.token);
    t->task.name = arena_str(a, claimed->job_id);
    return &t->task;
}

static void begin(void *self, struct domain_task *t, int64_t now_ms)
{
    const struct sample *s = self;
    (void)now_ms;
    domain_task_ended(s->domain, t);
}

static bool report(void *self, struct domain_task *t, size_t bytes, struct arena *a,
                   struct worker_finish *ret)
{
    (void)self;
    (void)bytes;
    (void)a;
    *ret = (struct worker_finish){.ref = t->ref, .success = true, .result = STR("{\"sample\":true}")};
    return true;
}

static void drop(void *self, struct domain_task *t)
{
    (void)self;
    arena_free(CONTAINER_OF(t, struct sample_task, task)->arena);
}

int sample_main(const struct process_start *start)
{
    static const struct domain_ops ops = {.tasks = "tasks",
                                          .task_key = "job_id",
                                          .claims_max = 1,
                                          .open = sample_open,
                                          .take = take,
                                          .begin = begin,
                                          .report = report,
                                          .drop = drop};
    struct sample s = {0};
    return domain_main(start, &ops, &s);
}
